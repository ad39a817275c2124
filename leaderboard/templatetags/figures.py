"""Template filters over leaderboard.figures, and the small drawings of table cells."""

import math
from typing import Any

from django import template

from leaderboard import figures
from leaderboard.listing import listing

register = template.Library()
register.filter("figure", figures.figure)
register.filter("error_figure", figures.error_figure)
register.filter("listing", listing)
register.filter("speed_word", figures.speed_word)

AXIS = 2.0  # log2 units either side of 1.0x on the whisker: 1/4x to 4x


@register.filter
def word_class(word: str) -> str:
    """The colour class of a result's word."""
    if word in ("suspect", "stale", "ignored"):
        return "held"
    return word if word in ("fast", "even", "slow", "correct") else "bad"


@register.filter
def verdict_word(verdict: str) -> str:
    return figures.verdict_word(verdict)


@register.filter
def at(mapping: Any, key: Any) -> Any:
    """mapping[key], None where it is not there."""
    return mapping.get(key)


@register.filter
def axis_percent(ratio: float) -> str:
    """Where a speedup stands on the whisker's log2 axis, in percent, clamped to its ends."""
    position = (math.log2(ratio) + AXIS) / (2 * AXIS) if ratio > 0 else 0.0
    return f"{100 * min(1.0, max(0.0, position)):.1f}"


@register.filter
def mebibytes(count: int | None) -> str:
    return figures.MISSING if count is None else f"{figures.figure(count / 2**20)} MiB"


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
