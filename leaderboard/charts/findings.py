"""Charts of the findings: what explains correctness, speeds, endings, and the roofline."""

import math
from collections.abc import Mapping, Sequence

from leaderboard.charts.base import COLOURS, LEGEND, Figure, Table, label, layout, significant
from leaderboard.findings.attribution import Attribution
from leaderboard.findings.roofline import COMPUTE, Kernel
from leaderboard.findings.shares import Speeds
from leaderboard.findings.taxonomy import CORRECT, Endings

SLOWER_WORDS = ("slow", "even", "fast")
LEFT_EDGE = 1 / 64  # FLOP per byte; a log axis has no 0, so kernels that only move data stand here
UNKNOWN = COLOURS["suspect"]
MODEL_NAMES = {
    "method": "method",
    "category": "category",
    "both": "both",
    "interaction": "both, with interaction",
}


def explained_figure(sources: Sequence[tuple[str, Attribution]]) -> Figure:
    """Explained deviance by model, one bar for each of (name, attribution); a tick for chance."""
    colours = (COLOURS["fast"], "#7a818a", "#b9bec4")  # ours in colour, the paper's in greys
    names = list(MODEL_NAMES.values())
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": label(name),
            "y": names,
            "x": [_percent(found, key) for key in MODEL_NAMES],
            "marker": {"color": colour},
            "hovertemplate": "%{y}: %{x} %<extra>" + label(name) + "</extra>",
        }
        for (name, found), colour in zip(sources, colours, strict=False)
    ]
    return {
        "data": bars,
        "layout": layout(
            3 * len(sources) + 1,
            barmode="group",
            legend=LEGEND,
            yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
            xaxis={
                "title": {"text": "explained deviance of correctness, %"},
                "rangemode": "tozero",
            },
        ),
    }


def explained_table(sources: Sequence[tuple[str, Attribution]]) -> Table:
    return Table(
        ("data", "model", "explained %", "df", "% per df", "by chance %", "deviance", "BIC"),
        tuple(
            (
                name,
                MODEL_NAMES.get(model.name, "one rate for all"),
                100 * model.explained,
                model.df,
                100 * model.per_df,
                100 * model.chance,
                model.deviance,
                model.bic,
            )
            for name, found in sources
            for model in found.models
        ),
    )


def speeds_figure(rows: Sequence[Speeds]) -> Figure:
    return _shares(
        [label(row.name) for row in rows],
        {
            word: [(row.of(getattr(row, word)), getattr(row, word)) for row in rows]
            for word in SLOWER_WORDS
        },
        "correct and timed kernels, %",
    )


def speeds_table(rows: Sequence[Speeds]) -> Table:
    head = ("method", "timed", "slower than 1.0x", "share %", "low %", "high %")
    return Table(
        (*head, "slow beyond the band", "within the band", "fast beyond the band"),
        tuple(
            (row.name, row.timed, row.slower, *_interval(row), row.slow, row.even, row.fast)
            for row in rows
        ),
    )


def endings_figure(rows: Sequence[Endings], words: Sequence[str]) -> Figure:
    """Shares by category; the counts stand in the bars."""
    return _shares(
        [f"{row.category} ({row.judged})" for row in rows],
        {
            word: [(row.share(word), row.words.get(word)) for row in rows]
            for word in (CORRECT, *words)
        },
        "judged candidates, %",
    )


def _shares(
    names: Sequence[str], parts: Mapping[str, Sequence[tuple[float, int | None]]], title: str
) -> Figure:
    """Stacked bars, one a name: for each word its (share, count), the count written in the bar."""
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": word,
                "y": list(names),
                "x": [round(100 * share, 1) for share, _ in of],
                "text": [str(count or "") for _, count in of],
                "marker": {"color": COLOURS.get(word, UNKNOWN)},
                "hovertemplate": "%{y}: %{x} % " + word + " (%{text})<extra></extra>",
            }
            for word, of in parts.items()
        ],
        "layout": layout(
            len(names),
            barmode="stack",
            legend=LEGEND,
            yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
            xaxis={"title": {"text": title}, "range": [0, 100]},
        ),
    }


def endings_table(rows: Sequence[Endings], words: Sequence[str]) -> Table:
    return Table(
        ("category", "judged", CORRECT, *words, "tasks", "tasks nobody solves"),
        tuple(
            (
                *(row.category, row.judged, row.correct),
                *(row.words.get(word, 0) for word in words),
                *(row.tasks, row.unsolved),
            )
            for row in rows
        ),
    )


def roofline_figure(best: Sequence[Kernel]) -> Figure:
    """Each task's best kernel and, hollow, PyTorch's on the same cases."""
    low, high = _reach(best)
    return {
        "data": [
            _points("PyTorch eager", best, [k.reference_share for k in best], "circle-open"),
            _points(
                "best kernel, bound by memory",
                [k for k in best if k.bound != COMPUTE],
                [k.share for k in best if k.bound != COMPUTE],
                "circle",
                COLOURS["fast"],
            ),
            _points(
                "best kernel, bound by compute",
                [k for k in best if k.bound == COMPUTE],
                [k.share for k in best if k.bound == COMPUTE],
                "diamond",
                COLOURS["slow"],
            ),
        ],
        "layout": layout(
            13,
            legend=LEGEND,
            xaxis={
                "type": "log",
                "title": {"text": "FLOP per byte, by the cost model"},
                "automargin": True,
                "tickvals": [LEFT_EDGE, 0.1, 1, 10, 100, 1000, 10000],
                "ticktext": ["near 0", "0.1", "1", "10", "100", "1000", "10000"],
            },
            yaxis={
                "type": "log",
                "title": {"text": "share of the roofline", "standoff": 14},
                "automargin": True,
                "range": [low, high],
                "tickvals": [0.001, 0.01, 0.1, 0.25, 0.5, 1],
                "ticktext": ["0.1 %", "1 %", "10 %", "25 %", "50 %", "roof"],
            },
            shapes=[_roof_line()],
        ),
    }


def roofline_table(best: Sequence[Kernel]) -> Table:
    return Table(
        ("task", "category", "method", "FLOP per byte", "bound by", "share %", "PyTorch %"),
        tuple(
            (
                *(k.task, k.category, k.method, _finite(k.intensity), k.bound),
                *(100 * k.share, 100 * k.reference_share),
            )
            for k in best
        ),
    )


def _points(
    name: str,
    kernels: Sequence[Kernel],
    shares: Sequence[float],
    symbol: str,
    colour: str = "#888888",
) -> dict:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [significant(max(LEFT_EDGE, min(k.intensity, 1e6))) for k in kernels],
        "y": [significant(share) for share in shares],
        "text": [label(f"{k.task}, {k.method}") for k in kernels],
        "hovertemplate": "%{text}<br>%{y:.1%} of the roofline at %{x} FLOP per byte<extra></extra>",
        "marker": {"color": colour, "size": 7, "symbol": symbol, "opacity": 0.8},
    }


def _reach(best: Sequence[Kernel]) -> tuple[float, float]:
    """The y axis in log10: from below the lowest share to above the roof."""
    shares = [share for k in best for share in (k.share, k.reference_share)]
    return (
        math.floor(10 * math.log10(min([*shares, 0.1]))) / 10 - 0.1,
        math.ceil(10 * math.log10(max([*shares, 1.0]))) / 10 + 0.1,
    )


def _roof_line() -> dict:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": 1,
        "y1": 1,
        "line": {"width": 1, "dash": "dot", "color": "#888888"},
    }


def _percent(found: Attribution, name: str) -> float | None:
    model = found.model(name)
    return significant(100 * model.explained) if model else None


def _interval(row: Speeds) -> tuple[float | None, ...]:
    share = row.share
    return (100 * share.value, 100 * share.low, 100 * share.high) if share else (None,) * 3


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
