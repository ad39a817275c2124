"""Two methods task by task: the paired scatter, and the tables of outcomes, pairs and tasks."""

import math
from typing import Any

from benchmark import vocabulary
from leaderboard.charts.base import (
    LEGEND,
    Figure,
    Table,
    label,
    layout,
    log2_ticks,
    significant,
)
from leaderboard.charts.ecdf import LINES
from leaderboard.comparison import OUTCOMES, Comparison, Pair
from leaderboard.figures import Interval

BAND = 1 + vocabulary.NEUTRAL_BAND
EVEN_COLOUR = "#8a8a8a"
ROOM = 1.2
SIDES = ("a", "b")


def figure(c: Comparison) -> Figure:
    """A point for each task that both solved: the first's speedup over the second's, log2."""
    speedups = [s.value for pair in c.timed for s in pair.speedups if s]
    ticks, words = log2_ticks(speedups)
    ends = [min([0.5, *speedups]) / ROOM, max([2.0, *speedups]) * ROOM]
    axis = {"type": "log", "tickvals": ticks, "ticktext": words, "range": _log10(ends)}
    first, second = label(_short(c.first.name)), label(_short(c.second.name))
    return {
        "data": [*_diagonal(ends), *_points(c)],
        "layout": layout(
            15,
            showlegend=True,
            legend=LEGEND,
            xaxis={
                **axis,
                "constrain": "domain",
                "title": {"text": f"{second}: speedup, log scale"},
            },
            yaxis={
                **axis,
                "constrain": "domain",
                "scaleanchor": "x",
                "automargin": True,
                "title": {"text": f"{first}: speedup", "standoff": 12},
            },
            shapes=[_line("x"), _line("y")],
        ),
    }


def pairs(c: Comparison) -> Table:
    """Tasks with a speedup of both, from the first's best to the second's."""
    columns = ("task", "category", *_columns("method", "speedup", "low", "high", "run"))
    return Table(
        (*columns, "ratio", "ahead"),
        tuple(
            (
                pair.task.slug,
                pair.task.category,
                *_timed(c, pair, 0),
                *_timed(c, pair, 1),
                pair.ratio,
                ahead(c, pair),
            )
            for pair in c.timed
        ),
    )


def tasks(c: Comparison) -> Table:
    """Every task of the selection with what became of both."""
    columns = _columns("method", "outcome", "word", "speedup", "low", "high", "run")
    return Table(
        ("task", "category", "difficulty", *columns, "ratio"),
        tuple(
            (
                pair.task.slug,
                pair.task.category,
                pair.task.difficulty,
                *_side(c, pair, 0),
                *_side(c, pair, 1),
                pair.ratio,
            )
            for pair in c.pairs
        ),
    )


def outcomes(c: Comparison) -> Table:
    """Tasks by both methods' outcomes; `mcnemar_p` is of the tasks that one of them solved."""
    return Table(
        ("method_a", "outcome_a", "method_b", "outcome_b", "tasks", "mcnemar_p"),
        tuple(
            (c.first.name, a, c.second.name, b, c.count(a, b), c.mcnemar.p)
            for a in OUTCOMES
            for b in OUTCOMES
        ),
    )


def ahead(c: Comparison, pair: Pair) -> str:
    """Who is faster by more than the neutral band, or "even"; "" without a ratio."""
    if pair.ratio is None:
        return ""
    if pair.ratio > BAND:
        return c.first.name
    return c.second.name if pair.ratio < 1 / BAND else "even"


def _points(c: Comparison) -> list[dict]:
    groups: list[tuple[str, str, str, list[Pair]]] = [
        (f"{c.first.name} faster", LINES[0][0], "triangle-up", []),
        (f"{c.second.name} faster", LINES[1][0], "triangle-down", []),
        ("within 5 %", EVEN_COLOUR, "circle", []),
    ]
    for pair in c.timed:
        ratio = pair.ratio or 1.0
        groups[0 if ratio > BAND else 1 if ratio < 1 / BAND else 2][3].append(pair)
    return [_trace(*group) for group in groups]


def _trace(name: str, colour: str, symbol: str, of: list[Pair]) -> dict:
    both = [pair.speedups for pair in of]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{label(name)} ({len(of)})",
        "x": [significant(b.value) for _, b in both if b],
        "y": [significant(a.value) for a, _ in both if a],
        "text": [label(f"{pair.task.slug}: {significant(pair.ratio or 1)}x") for pair in of],
        "hovertemplate": "%{text}<br>%{y:.3g}x against %{x:.3g}x<extra></extra>",
        "marker": {"color": colour, "symbol": symbol, "size": 9, "opacity": 0.8},
    }


def _diagonal(ends: list[float]) -> list[dict]:
    """Equal speed, and the neutral band around it."""
    low, high = ends
    area = {
        "x": [low, high, high, low],
        "y": [low * BAND, high * BAND, high / BAND, low / BAND],
        "fill": "toself",
        "fillcolor": EVEN_COLOUR + "40",
        "line": {"width": 0},
    }
    line = {"x": ends, "y": ends, "line": {"width": 1, "color": EVEN_COLOUR}}
    shared = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "showlegend": False}
    return [{**shared, **area}, {**shared, **line}]


def _line(axis: str) -> dict:
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": 1, f"{axis}1": 1, f"{other}0": 0, f"{other}1": 1}
    line = {"width": 1, "dash": "dot", "color": "#888888"}
    return {"type": "line", **ends, f"{other}ref": f"{other} domain", "line": line}


def _log10(ends: list[float]) -> list[float]:
    return [round(math.log10(end), 4) for end in ends]


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"


def _columns(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}_{side}" for side in SIDES for name in names)


def _timed(c: Comparison, pair: Pair, side: int) -> tuple[Any, ...]:
    return (_name(c, side), *_numbers(pair.speedups[side]), _run(pair, side))


def _side(c: Comparison, pair: Pair, side: int) -> tuple[Any, ...]:
    words = (pair.outcomes[side], pair.words[side])
    return (_name(c, side), *words, *_numbers(pair.speedups[side]), _run(pair, side))


def _name(c: Comparison, side: int) -> str:
    return (c.first, c.second)[side].name


def _run(pair: Pair, side: int) -> str | None:
    result = (pair.first, pair.second)[side]
    return str(result.run) if result else None


def _numbers(speedup: Interval | None) -> tuple[float | None, ...]:
    return (speedup.value, speedup.low, speedup.high) if speedup else (None,) * 3
