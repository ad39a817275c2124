"""How every task of the selection ended, by method: one bar, adding up to all tasks."""

from collections import Counter
from collections.abc import Sequence

from leaderboard.charts.base import COLOURS, LEGEND, Figure, Table, label, layout
from leaderboard.figures import speed_word
from leaderboard.rows import Spread


def figure(spreads: Sequence[Spread]) -> Figure:
    counts = [_counts(spread) for spread in spreads]
    names = [label(spread.method.name) for spread in spreads]
    words = [word for word in COLOURS if any(count[word] for count in counts)]
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": word,
                "x": [count[word] for count in counts],
                "y": names,
                "marker": {"color": COLOURS[word]},
                "hovertemplate": "%{y}: %{x} " + word + "<extra></extra>",
            }
            for word in words
        ],
        "layout": layout(
            len(spreads),
            barmode="stack",
            legend=LEGEND,
            yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
            xaxis={"title": {"text": "tasks"}},
        ),
    }


def table(spreads: Sequence[Spread]) -> Table:
    counts = [_counts(spread) for spread in spreads]
    words = [word for word in COLOURS if any(count[word] for count in counts)]
    return Table(
        ("method", "tasks", *words),
        tuple(
            (spread.method.name, spread.tasks, *(count[word] for word in words))
            for spread, count in zip(spreads, counts, strict=True)
        ),
    )


def _counts(spread: Spread) -> Counter[str]:
    counts = Counter(spread.failures)
    counts.update(speed_word(ratio) for _, ratio in spread.speedups)
    counts["correct"] += spread.untimed
    counts["not attempted"] += spread.missing
    return counts
