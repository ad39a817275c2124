"""Template filters over leaderboard.figures, and the small drawings of table cells."""

import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.utils.html import escape, format_html_join
from django.utils.safestring import SafeString, mark_safe

from leaderboard import figures
from leaderboard.listing import listing, unseen
from leaderboard.rows import Cell

register = template.Library()
register.filter("figure", figures.figure)
register.filter("error_figure", figures.error_figure)
register.filter("listing", listing)
register.filter("unseen", unseen)
register.filter("speed_word", figures.speed_word)

_CODE = re.compile(r"`([^`]+)`")
AXIS = 2.0  # log2 units either side of 1.0x on the whisker: 1/4x to 4x


@register.filter
def word_class(word: str) -> str:
    """The colour class of a result's word."""
    if word in ("suspect", "held", "stale", "ignored"):
        return "held"
    return word if word in ("fast", "even", "slow", "correct") else "bad"


@register.filter
def verdict_word(verdict: str) -> str:
    return figures.verdict_word(verdict)


@register.filter
def beside(items: Iterable[Any], others: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
    """Each of `others` with its item."""
    return zip(others, items, strict=True)


@register.filter
def at(mapping: Any, key: Any) -> Any:
    """mapping[key], None where it is not there."""
    return mapping.get(key)


@register.filter
@lru_cache(maxsize=4096)  # a heat map has 750 cells and few different ones
def heat_cell(cell: Cell) -> SafeString:
    """A heat map's cell, drawn once for all that are equal."""
    html = render_to_string("includes/_cell.html", {"cell": cell})
    return mark_safe(html)  # noqa: S308  the template escapes


@register.filter
def axis_percent(ratio: float) -> str:
    """Where a speedup stands on the whisker's log2 axis, in percent, clamped to its ends."""
    position = (math.log2(ratio) + AXIS) / (2 * AXIS) if ratio > 0 else 0.0
    return f"{100 * min(1.0, max(0.0, position)):.1f}"


@register.filter
def mebibytes(count: int | None) -> str:
    return figures.MISSING if count is None else f"{figures.figure(count / 2**20)} MiB"


@register.filter
def kibibytes(count: int) -> str:
    return f"{figures.figure(count / 2**10) if count else 0} KiB"


@register.filter
def number(value: Any) -> str:
    """A number out of JSON, which may be null or, in an odd report, no number at all."""
    return figures.figure(value) if isinstance(value, int | float) else figures.MISSING


@register.filter
def percent(share: float) -> str:
    return figures.figure(100 * share)


@register.filter
def cell(value: Any) -> str:
    """A cell of a chart's table twin: counts whole, ratios to three digits, text as it is."""
    if isinstance(value, float):
        return figures.figure(value)
    return figures.MISSING if value is None else str(value)


@register.filter
def any_speedup(lines: Sequence[Any]) -> bool:
    """Whether a list of runs has a speedup to show: else it needs no column for them."""
    return any(line.speedup for line in lines)


@register.filter
def any_timed(on_gpus: Sequence[Any]) -> bool:
    """Whether any of a method's devices can time: else no column about speed is shown."""
    return any(row.gpu.can_time for row in on_gpus)


@register.filter
def prose(text: str) -> SafeString:
    """A docstring as HTML: its lines flow, blank lines part paragraphs, `names` are code."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    return format_html_join("", "<p>{}</p>", ((inline_code(part),) for part in paragraphs))


@register.filter
def inline_code(text: str) -> SafeString:
    """A line with its `names` as code."""
    return mark_safe(_CODE.sub(r"<code>\1</code>", escape(text)))  # noqa: S308  escaped first


@register.filter
def without_words(shape: str, case: Any) -> str:
    """A case's shape without the dtype and the spread that stand in columns of their own."""
    return " ".join(word for word in shape.split() if word not in (case.dtype, case.family))
