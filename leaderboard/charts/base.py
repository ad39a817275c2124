"""What every chart shares: neutralised labels, the table twin, colours, and a small layout.

Plotly's own template adds 6 KB to a figure, so ours is a few keys; ink, grid and background follow
the page's theme in static/js/charts.js.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

Figure = dict[str, Any]

# After Okabe and Ito's colour-blind-safe set, one colour a word, readable on light and dark paper;
# the legend and the table twin name each.
COLOURS = {
    "fast": "#1f86c4",
    "even": "#8ecbf0",
    "slow": "#e69f00",
    "correct": "#009e73",
    "wrong": "#d55e00",
    "build": "#cc79a7",
    "timeout": "#8c6d31",
    "forbidden": "#7b4ea3",
    "memory": "#a6761d",
    "crash": "#a03c3c",
    "impossible": "#5e3c99",
    "unstable": "#b8a200",
    "rejected": "#6b2d2d",
    "suspect": "#9a9a9a",
    "held": "#7d8a97",
    "stale": "#b5b5b5",
    "not attempted": "#d0d0d0",
}
LEGEND = {"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom", "traceorder": "normal"}
ROW_HEIGHT = 26  # pixels a method, so that names stay readable with fifty of them
# The last are the wide forms of the first, which some spreadsheets take for them.
FORMULA_START = (*"=+-@\t\r\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True, slots=True)
class Table:
    """A chart's numbers: the same that the picture shows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True)
class Twin:
    """A table beside its picture, by the picture's title."""

    title: str
    table: Table


def label(text: str) -> str:
    """A name as plotly text: plotly renders a subset of HTML in labels, so it is escaped here."""
    return escape(text, quote=False)


def layout(rows: int, **more: Any) -> dict[str, Any]:
    return {
        "margin": {"l": 10, "r": 10, "t": 40, "b": 48},
        "height": 90 + ROW_HEIGHT * max(rows, 3),
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"size": 12},
        "hovermode": "closest",
        **more,
    }


def csv_text(table: Table) -> str:
    """RFC 4180 with a header; text that a spreadsheet would run as a formula is disarmed."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(table.columns)
    writer.writerows([csv_cell(value) for value in row] for row in table.rows)
    return out.getvalue()


def csv_cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA_START):
        return "'" + value
    return "" if value is None else value


def significant(value: float) -> float:
    """Four significant digits: one more than shown, and short in JSON."""
    return float(f"{value:.4g}")


def log2_ticks(values: Sequence[float]) -> tuple[list[float], list[str]]:
    """Powers of two that cover the ratios, at least 1/4x to 4x, for a plotly log axis."""
    low, high = min([0.25, *values]), max([4.0, *values])
    ticks, tick = [], 1.0
    while tick > low:
        tick /= 2
    while tick < high * 1.001:
        ticks.append(tick)
        tick *= 2
    step = 1 + len(ticks) // 10
    kept = [tick for i, tick in enumerate(ticks) if (i - ticks.index(1.0)) % step == 0]
    return kept, [f"{tick:g}x" if tick >= 1 else f"1/{1 / tick:g}x" for tick in kept]
