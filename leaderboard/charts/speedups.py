"""Speedups of solved tasks on a log2 axis; beside it, the tasks that have no speedup, by reason."""

from collections.abc import Sequence

from leaderboard.charts.base import (
    COLOURS,
    LEGEND,
    Figure,
    Table,
    label,
    layout,
    log2_ticks,
    significant,
)
from leaderboard.rows import Spread

PICTURE = [0, 0.7]  # shares of the width: distribution left, failures right
BESIDE = [0.74, 1]


def figure(spreads: Sequence[Spread]) -> Figure:
    ticks, words = log2_ticks([ratio for spread in spreads for _, ratio in spread.speedups])
    names = [label(spread.method.name) for spread in spreads]
    return {
        "data": [*(_box(spread) for spread in spreads), *_failure_bars(spreads, names)],
        "layout": layout(
            len(spreads),
            barmode="stack",
            showlegend=True,
            legend=LEGEND,
            yaxis={
                "autorange": "reversed",
                "automargin": True,
                "type": "category",
                "categoryorder": "array",
                "categoryarray": names,
            },
            xaxis={
                "domain": PICTURE,
                "type": "log",
                "tickvals": ticks,
                "ticktext": words,
                "title": {"text": "speedup over PyTorch eager, log scale"},
            },
            xaxis2={"domain": BESIDE, "title": {"text": "tasks without one"}},
            shapes=[_even_line()],
        ),
    }


def table(spreads: Sequence[Spread]) -> Table:
    """Five-number summaries, and the counts of what has no speedup."""
    words = _failure_words(spreads)
    head = ("method", "tasks", "timed", "minimum", "quarter", "median", "three quarters", "maximum")
    return Table(
        (*head, "correct, not timed", *words, "not attempted"),
        tuple(
            (
                spread.method.name,
                spread.tasks,
                len(spread.speedups),
                *_five_numbers([ratio for _, ratio in spread.speedups]),
                spread.untimed,
                *(spread.failures.get(word, 0) for word in words),
                spread.missing,
            )
            for spread in spreads
        ),
    )


def _box(spread: Spread) -> dict:
    return {
        "type": "box",
        "orientation": "h",
        "x": [significant(ratio) for _, ratio in spread.speedups],
        "y": [label(spread.method.name)] * len(spread.speedups),
        "text": [task for task, _ in spread.speedups],
        "hovertemplate": "%{text}: %{x}x<extra></extra>",
        "boxpoints": "all",
        "jitter": 0.5,
        "pointpos": 0,
        "marker": {"size": 4, "opacity": 0.55, "color": COLOURS["fast"]},
        "line": {"width": 1.2, "color": COLOURS["fast"]},
        "fillcolor": "rgba(31,134,196,0.12)",
        "showlegend": False,
    }


def _failure_bars(spreads: Sequence[Spread], names: list[str]) -> list[dict]:
    counted = [
        (word, [s.failures.get(word, 0) for s in spreads]) for word in _failure_words(spreads)
    ]
    if any(spread.untimed for spread in spreads):
        counted.insert(0, ("correct", [spread.untimed for spread in spreads]))
    counted.append(("not attempted", [spread.missing for spread in spreads]))
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": word,
            "x": counts,
            "y": names,
            "xaxis": "x2",
            "marker": {"color": COLOURS.get(word, COLOURS["suspect"])},
            "hovertemplate": "%{y}: %{x} " + word + "<extra></extra>",
        }
        for word, counts in counted
    ]


def _failure_words(spreads: Sequence[Spread]) -> list[str]:
    return sorted({word for spread in spreads for word in spread.failures})


def _even_line() -> dict:
    return {
        "type": "line",
        "x0": 1,
        "x1": 1,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"width": 1, "dash": "dot", "color": "#888888"},
    }


def _five_numbers(ratios: Sequence[float]) -> tuple[float | None, ...]:
    """Minimum, quartiles and maximum of sorted ratios; quartiles by linear interpolation."""
    if not ratios:
        return (None,) * 5
    return tuple(significant(_quantile(ratios, share)) for share in (0, 0.25, 0.5, 0.75, 1))


def _quantile(ratios: Sequence[float], share: float) -> float:
    position = share * (len(ratios) - 1)
    below = int(position)
    above = min(below + 1, len(ratios) - 1)
    return ratios[below] + (position - below) * (ratios[above] - ratios[below])
