"""fast_p: the share of all tasks with a speedup of at least p, with a bootstrap band.

Resampling n tasks with replacement, of which k reach p, gives a share whose count is binomial
(n, k / n). The band is therefore known without drawing: it is where the percentile bootstrap ends
with ever more draws. It holds point by point, and has no width at 0 and at n of n.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.statistics.binomial import quantile
from leaderboard.statistics.bootstrap import TAIL


@dataclass(frozen=True, slots=True)
class Step:
    """`count` of the tasks reach `at`; the shares lie between 0 and 1."""

    at: float
    count: int
    share: float
    low: float
    high: float


def steps(values: Sequence[float], total: int) -> tuple[Step, ...]:
    """The curve's steps, ascending: down to the step before and up to its own `at`, it is `share`.

    `total` counts the tasks without a value too: they reach nothing. Raises ValueError if it is
    less than the number of values.
    """
    ordered = sorted(values)
    found: list[Step] = []
    for below, at in enumerate(ordered):
        if not found or at != found[-1].at:
            found.append(_step(at, len(ordered) - below, total))
    return tuple(found)


def reaching(values: Sequence[float], total: int, at: float) -> Step:
    """How many of `total` reach `at`."""
    return _step(at, sum(value >= at for value in values), total)


def _step(at: float, count: int, total: int) -> Step:
    if count > total or total < 1:
        raise ValueError(f"{count} of {total} tasks is no share")
    share = count / total
    low, high = (quantile(tail, total, share) / total for tail in (TAIL, 1 - TAIL))
    return Step(at, count, share, low, high)
