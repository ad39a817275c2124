"""Rank correlation of paired values: Spearman's rho and Kendall's tau-b, with 95 % intervals.

Intervals after D. G. Bonett and T. A. Wright, "Sample size requirements for estimating Pearson,
Kendall and Spearman correlations", Psychometrika 65 (2000): Fisher's z with the variance
(1 + rho^2 / 2) / (n - 3) for Spearman and 0.437 / (n - 4) for Kendall.
"""

import math
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import StatisticsError, correlation

from leaderboard.figures import Interval

FEWEST = 10  # below it, the normal approximation behind the intervals is not to be trusted
NORMAL = 1.959964  # the normal distribution's 97.5 % point


@dataclass(frozen=True, slots=True)
class Coefficient:
    """`interval` is None where too few values, or a perfect agreement, allow none."""

    value: float
    interval: Interval | None

    @property
    def text(self) -> str:
        """Two decimals: a third one is never sure here."""
        if self.interval is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} [{self.interval.low:.2f}, {self.interval.high:.2f}]"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How alike two orders are. `n` pairs of values, of which `independent` count in intervals.

    A coefficient is None where there are fewer than two pairs or where one side is all equal.
    """

    n: int
    independent: int
    spearman: Coefficient | None
    kendall: Coefficient | None


def agreement(
    left: Sequence[float], right: Sequence[float], independent: int | None = None
) -> Agreement:
    """`independent`: how many of the pairs are, where some share a cause; by default all."""
    n = len(left)
    sure = n if independent is None else independent
    rho, tau = spearman(left, right), kendall(left, right)
    return Agreement(
        n=n,
        independent=sure,
        spearman=_coefficient(rho, lambda r: (1 + r * r / 2) / (sure - 3), sure),
        kendall=_coefficient(tau, lambda _: 0.437 / (sure - 4), sure),
    )


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation of the mid-ranks."""
    try:
        return correlation(mid_ranks(left), mid_ranks(right))
    except StatisticsError:  # fewer than two, or a constant
        return None


def kendall(left: Sequence[float], right: Sequence[float]) -> float | None:
    """tau-b: (concordant - discordant) over the geometric mean of the pairs untied on each side.

    Sorted by the left value, a pair is discordant where a larger right value came before.
    """
    pairs = sorted(zip(left, right, strict=True))
    seen: list[float] = []
    discordant = 0
    for _, value in pairs:
        discordant += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    total = math.comb(len(pairs), 2)
    ties_left, ties_right, ties_both = _tied(left), _tied(right), _tied(pairs)
    untied = (total - ties_left) * (total - ties_right)
    if not untied:
        return None
    return (total - ties_left - ties_right + ties_both - 2 * discordant) / math.sqrt(untied)


def mid_ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of their places."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for position in order[start:end]:
            ranks[position] = (start + end + 1) / 2
        start = end
    return ranks


def _tied(values: Iterable[Hashable]) -> int:
    """Pairs of equal values."""
    return sum(math.comb(count, 2) for count in Counter(values).values())


def _coefficient(
    value: float | None, variance: Callable[[float], float], independent: int
) -> Coefficient | None:
    if value is None:
        return None
    if independent < FEWEST or abs(value) >= 1 - 1e-9:  # Fisher's z of 1 is infinite
        return Coefficient(value, None)
    reach = NORMAL * math.sqrt(variance(value))
    z = math.atanh(value)
    return Coefficient(value, Interval(value, math.tanh(z - reach), math.tanh(z + reach)))
