"""Correct share against geometric-mean speedup: who is not beaten in both."""

from collections.abc import Sequence

from leaderboard.charts.base import (
    COLOURS,
    Figure,
    Table,
    label,
    layout,
    log2_ticks,
    significant,
)
from leaderboard.rows import Standing


def figure(standings: Sequence[Standing]) -> Figure:
    """Methods without a speedup have no place on the picture; the table names them."""
    timed = [(s, s.speedup) for s in standings if s.speedup]
    ticks, words = log2_ticks([speedup.value for _, speedup in timed])
    best = front(standings)
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [round(s.funnel.share, 1) for s, _ in timed],
                "y": [significant(speedup.value) for _, speedup in timed],
                "error_y": {
                    "array": [significant(speedup.high - speedup.value) for _, speedup in timed],
                    "arrayminus": [
                        significant(speedup.value - speedup.low) for _, speedup in timed
                    ],
                    "thickness": 1,
                    "color": "#888888",
                },
                "text": [label(s.method.name) for s, _ in timed],
                "textposition": "top center",
                "hovertemplate": "%{text}: %{x} % correct, %{y}x<extra></extra>",
                "marker": {
                    "size": 10,
                    "color": [
                        COLOURS["fast" if s.method.slug in best else "stale"] for s, _ in timed
                    ],
                    "symbol": ["diamond" if s.method.slug in best else "circle" for s, _ in timed],
                },
                "cliponaxis": False,
            }
        ],
        "layout": layout(
            12,
            xaxis={"title": {"text": "correct, % of all tasks"}, "range": [-4, 104]},
            yaxis={
                "automargin": True,
                "type": "log",
                "tickvals": ticks,
                "ticktext": words,
                "title": {"text": "geometric-mean speedup", "standoff": 14},
            },
        ),
    }


def table(standings: Sequence[Standing]) -> Table:
    best = front(standings)
    return Table(
        ("method", "correct", "tasks", "timed", "speedup", "low", "high", "on the front"),
        tuple(
            (s.method.name, s.funnel.correct, s.funnel.tasks, s.timed)
            + ((s.speedup.value, s.speedup.low, s.speedup.high) if s.speedup else (None,) * 3)
            + ("yes" if s.method.slug in best else "no",)
            for s in standings
        ),
    )


def front(standings: Sequence[Standing]) -> set[str]:
    """Slugs of methods that no other beats in one of the two and equals or beats in the other."""
    points = [(s.method.slug, s.funnel.correct, s.speedup.value) for s in standings if s.speedup]
    return {
        slug
        for slug, correct, speedup in points
        if not any(
            c >= correct and v >= speedup and (c > correct or v > speedup) for _, c, v in points
        )
    }
