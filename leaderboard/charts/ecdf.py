"""fast_p: the share of all tasks that are at least p times as fast as the baseline, by method."""

from collections.abc import Sequence

from leaderboard.charts.base import LEGEND, Figure, Table, label, layout, log2_ticks, significant
from leaderboard.comparison import Curve
from leaderboard.statistics.ecdf import Step

# Okabe and Ito's, as readable on light as on dark paper; the dash tells them apart without colour.
LINES = (
    ("#1f86c4", "solid"),
    ("#d55e00", "dash"),
    ("#009e73", "dot"),
    ("#a05fb5", "dashdot"),
    ("#b8860b", "longdash"),
)
MOST = len(LINES)
BAND_OPACITY = "26"  # hexadecimal, 15 %
THRESHOLDS = (0.125, 0.25, 0.5, 0.8, 1.0, 1.05, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0)
ROOM = 1.15  # the picture goes on a little beyond the least and the greatest speedup


def figure(curves: Sequence[Curve]) -> Figure:
    speedups = [ratio for curve in curves for ratio in curve.speedups]
    ticks, words = log2_ticks(speedups)
    ends = (min([0.25, *speedups]) / ROOM, max([4.0, *speedups]) * ROOM)
    traces: list[dict] = []
    for curve, (colour, dash) in zip(curves, LINES, strict=False):
        traces += _traces(curve, ends, colour, dash)
    return {
        "data": traces,
        "layout": layout(
            11,
            showlegend=True,
            legend=LEGEND,
            xaxis={
                "type": "log",
                "tickvals": ticks,
                "ticktext": words,
                "title": {"text": "p: speedup over PyTorch eager, log scale"},
            },
            yaxis={
                "range": [0, 100],
                "ticksuffix": " %",
                "automargin": True,
                "title": {"text": "tasks at least that fast", "standoff": 14},
            },
            shapes=[_even_line()],
        ),
    }


def table(curves: Sequence[Curve]) -> Table:
    """The curves read off at round speedups; shares and their band in percent of all tasks."""
    return Table(
        ("method", "p", "tasks at least p", "of", "share", "low", "high"),
        tuple(
            (curve.method.name, p, *_percents(curve.at(p), curve.tasks))
            for p in THRESHOLDS
            for curve in curves
            if curve.tasks
        ),
    )


def _traces(curve: Curve, ends: tuple[float, float], colour: str, dash: str) -> list[dict]:
    """The lower and the upper edge of the band, the area between them, and the curve."""
    at = [ends[0], *(significant(step.at) for step in curve.steps), ends[1]]
    name = label(curve.method.name)
    edge = {
        "type": "scatter",
        "mode": "lines",
        "x": at,
        "line": {"width": 0, "shape": "vh", "color": colour},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": name,
    }
    return [
        {**edge, "y": _heights(curve, "low")},
        {
            **edge,
            "y": _heights(curve, "high"),
            "fill": "tonexty",
            "fillcolor": colour + BAND_OPACITY,
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "legendgroup": name,
            "x": at,
            "y": _heights(curve, "share"),
            "line": {"width": 2, "shape": "vh", "color": colour, "dash": dash},
            "marker": {"color": colour},
            "hovertemplate": name + ": %{y} % at least %{x:.3g}x<extra></extra>",
        },
    ]


def _heights(curve: Curve, what: str) -> list[float]:
    """Percent at the left end, at each step, and none at the right end."""
    heights = [round(100 * getattr(step, what), 1) for step in curve.steps]
    return [*heights[:1], *heights, 0.0] if heights else [0.0, 0.0]


def _percents(step: Step, tasks: int) -> tuple[int, int, float, float, float]:
    share, low, high = (round(100 * part, 2) for part in (step.share, step.low, step.high))
    return step.count, tasks, share, low, high


def _even_line() -> dict:
    line = {"width": 1, "dash": "dot", "color": "#888888"}
    return {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "line": line}
