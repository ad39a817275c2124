"""What refinement did by round: correct tasks, speedup, and the split of its change."""

import math

from leaderboard.charts.base import (
    COLOURS,
    LEGEND,
    Figure,
    Table,
    layout,
    log2_ticks,
    significant,
)
from leaderboard.refinement import FATES, Change, Step, word_of
from leaderboard.rows import Result
from leaderboard.selectors.rounds import Index, Refined

LEAST_SHOWN = 0.5  # the axis covers 1/2x to 2x at least: small changes shall look small
KEPT, GAINED, GONE = "correct before too", "newly correct", "no longer correct"


def correct_figure(found: Refined) -> Figure:
    """Tasks where the method stands after each round; what it lost hangs below the axis."""
    names = [f"round {row.number}" for row in found.rounds]
    counts = [step.counts for step in found.steps]
    kept = [0, *(c["persistent"] for c in counts)]
    gained = [found.first.correct, *(c["rescued"] + c["new"] for c in counts)]
    gone = [0, *(-c["lost"] for c in counts)]
    return {
        "data": [
            _bars(names, kept, KEPT, COLOURS["correct"]),
            _bars(names, gained, GAINED, COLOURS["fast"]),
            _bars(names, gone, GONE, COLOURS["wrong"]),
        ],
        "layout": layout(
            9,
            barmode="relative",
            showlegend=True,
            legend=LEGEND,
            xaxis={"type": "category"},
            yaxis={
                "title": {"text": f"tasks, of {len(found.tasks)}"},
                "automargin": True,
                "rangemode": "tozero",
            },
        ),
    }


def speed_figure(found: Refined) -> Figure:
    """Geometric mean after each round, with its interval."""
    timed = [(row, row.speedup) for row in found.rounds if row.speedup]
    ends = [end for _, s in timed for end in (s.low, s.high)]
    ticks, words = log2_ticks(ends)
    low, high = min([LEAST_SHOWN, *ends]), max([1 / LEAST_SHOWN, *ends])
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [f"round {row.number}" for row, _ in timed],
                "y": [significant(s.value) for _, s in timed],
                "error_y": {
                    "array": [significant(s.high - s.value) for _, s in timed],
                    "arrayminus": [significant(s.value - s.low) for _, s in timed],
                    "thickness": 1,
                    "color": "#888888",
                },
                "text": [f"n = {row.timed}" for row, _ in timed],
                "hovertemplate": "%{x}: %{y}x, %{text}<extra></extra>",
                "marker": {"size": 10, "color": COLOURS["fast"]},
                "line": {"width": 1.5, "color": COLOURS["fast"]},
            }
        ],
        "layout": layout(
            9,
            xaxis={"type": "category"},
            yaxis={
                "type": "log",
                "tickvals": ticks,
                "ticktext": words,
                "range": [math.log10(low / 1.05), math.log10(high * 1.05)],
                "title": {"text": "geometric-mean speedup", "standoff": 14},
                "automargin": True,
            },
        ),
    }


ROUND_COLUMNS = (
    *("round", "tasks", "judged", "correct", "offered in it", "correct of those"),
    *("timed", "geometric mean", "low", "high", "arithmetic mean"),
)


def rounds_table(found: Refined) -> Table:
    return Table(
        ROUND_COLUMNS,
        tuple(
            (
                *(row.number, len(found.tasks), row.judged, row.correct),
                *(row.offered, row.offered_correct, row.timed),
                *((s.value, s.low, s.high) if (s := row.speedup) else (None, None, None)),
                row.arithmetic,
            )
            for row in found.rounds
        ),
    )


SPLIT_COLUMNS = (
    *("from", "to", "mean", "before", "after", "real", "real low", "real high"),
    *("entering", "leaving", "composition", "in both", "entered", "left"),
)


def splits_table(found: Refined) -> Table:
    """Factors for the geometric mean, differences for the arithmetic one."""
    steps = (*found.steps, found.whole) if len(found.steps) > 1 else found.steps
    return Table(SPLIT_COLUMNS, tuple(row for step in steps for row in _splits(step)))


def fates_table(found: Refined) -> Table:
    """Every task from the first round to the last."""
    return Table(
        (
            "task",
            "category",
            "what became of it",
            "before",
            "after",
            "speedup before",
            "speedup after",
            "run before",
            "run after",
        ),
        tuple(
            (
                found.tasks[change.task].slug,
                found.tasks[change.task].category,
                change.fate,
                word_of(change.before),
                word_of(change.after),
                _speed(change.before),
                _speed(change.after),
                *_runs(change),
            )
            for fate in FATES
            for change in found.whole.of(fate)
        ),
    )


def transitions_table(found: Refined) -> Table:
    moves = found.transitions
    return Table(
        ("before", *moves.words), tuple((before, *counts) for before, counts in moves.rows)
    )


def index_table(found: Index) -> Table:
    return Table(
        (
            "method",
            "GPU",
            "tasks",
            "rounds",
            "correct first",
            "correct last",
            "rescued",
            "new",
            "lost",
            "speedup first",
            "speedup last",
            "real",
            "composition",
            "timed in both",
        ),
        tuple(
            (
                *(row.method.name, found.gpu.name, found.tasks, row.rounds),
                *(row.first.correct, row.last.correct),
                *(row.whole.counts[fate] for fate in ("rescued", "new", "lost")),
                *(row.first.geometric, row.last.geometric),
                *((g.real, g.composition, g.both) if (g := row.whole.geometric) else (None,) * 3),
            )
            for row in found.rows
        ),
    )


def _bars(names: list[str], counts: list[int], word: str, colour: str) -> dict:
    return {
        "type": "bar",
        "name": word,
        "x": names,
        "y": counts,
        "marker": {"color": colour},
        "hovertemplate": "%{x}: %{y} " + word + "<extra></extra>",
    }


def _splits(step: Step) -> list[tuple]:
    rows: list[tuple] = []
    if g := step.geometric:
        low, high = (g.real_interval.low, g.real_interval.high) if g.real_interval else (None, None)
        rows.append(
            (
                step.start,
                step.end,
                "geometric",
                g.before,
                g.after,
                g.real,
                low,
                high,
                g.entering,
                g.leaving,
                g.composition,
                g.both,
                g.entered,
                g.left,
            )
        )
    if a := step.arithmetic:
        rows.append(
            (
                step.start,
                step.end,
                "arithmetic",
                a.before,
                a.after,
                a.real,
                None,
                None,
                a.entering,
                a.leaving,
                a.composition,
                a.both,
                a.entered,
                a.left,
            )
        )
    return rows


def _speed(result: Result | None) -> float | None:
    return result.speedup.value if result and result.is_solved and result.speedup else None


def _runs(change: Change) -> tuple[str | None, str | None]:
    return (
        str(change.before.run) if change.before else None,
        str(change.after.run) if change.after else None,
    )
