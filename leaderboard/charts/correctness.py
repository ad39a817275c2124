"""Correct k of n by method and category, as a heat map."""

from leaderboard.charts.base import Figure, Table, label, layout
from leaderboard.rows import Cell, Heatmap

SCALE = [[0, "#eef5fa"], [1, "#0b5f8a"]]  # opaque, so that plotly finds a readable text colour


def figure(heatmap: Heatmap) -> Figure:
    """Cells without a share (not attempted, not applicable) stay blank and say so in words."""
    return {
        "data": [
            {
                "type": "heatmap",
                "x": [category.label for category in heatmap.categories],
                "y": [label(row.method.name) for row in heatmap.rows],
                "z": [[_share(cell) for cell in row.cells] for row in heatmap.rows],
                "text": [[_words(cell) for cell in row.cells] for row in heatmap.rows],
                "texttemplate": "%{text}",
                "hovertemplate": "%{y}<br>%{x}: %{text}<extra></extra>",
                "zmin": 0,
                "zmax": 1,
                "colorscale": SCALE,
                "showscale": False,
                "xgap": 2,
                "ygap": 2,
            }
        ],
        "layout": layout(
            len(heatmap.rows),
            yaxis={"autorange": "reversed", "automargin": True, "type": "category"},
            xaxis={"side": "top", "tickangle": -40, "automargin": True, "type": "category"},
        ),
    }


def table(heatmap: Heatmap) -> Table:
    return Table(
        ("method", "category", "correct", "tasks", "judged", "state"),
        tuple(
            (row.method.name, category.label, *_numbers(cell), cell.state)
            for row in heatmap.rows
            for category, cell in zip(heatmap.categories, row.cells, strict=True)
        ),
    )


def _share(cell: Cell) -> float | None:
    return round(cell.share, 4) if cell.state == "counted" else None


def _words(cell: Cell) -> str:
    if cell.state == "counted":
        return f"{cell.correct}/{cell.tasks}"
    return "n/a" if cell.state == "not-applicable" else "\N{EN DASH}"


def _numbers(cell: Cell) -> tuple[int | None, int, int]:
    return (cell.correct if cell.state == "counted" else None, cell.tasks, cell.judged)
