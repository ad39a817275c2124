"""Colours of cells that compare devices or rounds."""

import math
from collections.abc import Mapping
from typing import Any

from django import template

from benchmark import vocabulary
from leaderboard import kept
from leaderboard.devices_compared import Relative
from leaderboard.figures import MISSING, Interval, figure
from leaderboard.rows import GpuRow

register = template.Library()
STEP = 0.5  # log2 units a step of colour
STEPS = 4  # either side of 1.0x: the last from 4x and 1/4x


@register.filter
def log2_class(ratio: float) -> str:
    """level within the neutral band, else up1 to up4 above 1.0x and down1 to down4 below."""
    distance = abs(math.log2(ratio))
    if distance <= math.log2(1 + vocabulary.NEUTRAL_BAND):
        return "level"
    return f"{'up' if ratio > 1 else 'down'}{min(STEPS, math.ceil(distance / STEP))}"


@register.filter
def share_step(share: float) -> int:
    """0 to 8: the step on the ramp of a share."""
    return round(8 * min(1.0, max(0.0, share)))


@register.filter
def share_on(relative: Relative | None, gpu: GpuRow) -> Interval | None:
    """The method's share of its own best GPU there."""
    return relative.shares.get(gpu.id) if relative else None


@register.filter
def factor(ratio: float | None) -> str:
    """A change as a factor, with its sign; a dash where none can be told."""
    return MISSING if ratio is None else f"\N{MULTIPLICATION SIGN}\N{NO-BREAK SPACE}{figure(ratio)}"


@register.filter
def signed(value: float | None) -> str:
    """A difference with its sign, a true minus, and two decimals as means have."""
    if value is None:
        return MISSING
    text = f"{abs(value):.3f}"
    if float(text) == 0:
        return text
    return ("\N{MINUS SIGN}" if value < 0 else "+") + text


# Names under which views hand results to their templates.
RESULTS = ("board", "changes", "found", "gpu_links", "gpus", "index", "on_gpus", "offers")


@register.simple_tag(takes_context=True)
def shows_made_up(context: Mapping[str, Any]) -> bool:
    """Whether the page may show results that `manage.py seed` made up: any device that it knows."""
    shown = context.get("run")
    if shown is not None and hasattr(shown, "gpu_slug"):
        return str(shown.gpu_slug).startswith(vocabulary.SYNTHETIC)
    now = getattr(context.get("request"), "generation", None)
    if not now or not any(name in context for name in RESULTS):
        return False
    return any(gpu.is_made_up and gpu.runs for gpu in kept.gpus(now))


@register.filter
def at_index(items: Any, index: int) -> Any:
    return items[index]
