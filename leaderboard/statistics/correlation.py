"""Rank correlation of paired values: Spearman's rho and Kendall's tau-b, with 95 % intervals.

Intervals after D. G. Bonett and T. A. Wright, "Sample size requirements for estimating Pearson,
Kendall and Spearman correlations", Psychometrika 65 (2000): Fisher's z with the variance
(1 + rho^2 / 2) / (n - 3) for Spearman and 0.437 / (n - 4) for Kendall.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leaderboard.figures import Interval
from leaderboard.statistics.arrays import Array, numpy

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
    np = numpy()
    ranks = [mid_ranks(values) for values in (left, right)]
    away = [own - own.mean() for own in ranks if len(own)]
    squares = [float((own * own).sum()) for own in away]
    if not squares or not all(squares):  # none, or a constant
        return None
    return float(np.dot(*away)) / math.sqrt(math.prod(squares))


def kendall(left: Sequence[float], right: Sequence[float]) -> float | None:
    """tau-b: (concordant - discordant) over the geometric mean of the pairs untied on each side.

    Sorted by the left value, a pair is discordant where a larger right value came before.
    """
    np = numpy()
    first, second = (np.unique(values, return_inverse=True)[1] for values in (left, right))
    order = np.lexsort((second, first))
    discordant = inversions(second[order])
    total = math.comb(len(order), 2)
    both = first * (len(order) + 1) + second
    ties_left, ties_right, ties_both = (_tied(values) for values in (first, second, both))
    untied = (total - ties_left) * (total - ties_right)
    if not untied:
        return None
    return (total - ties_left - ties_right + ties_both - 2 * discordant) / math.sqrt(untied)


def inversions(values: Array) -> int:
    """Pairs of whole numbers from 0 of which the larger comes first: counted while sorting, by
    merging neighbours of ever more values, all of one width at once.
    """
    np = numpy()
    count, width = len(values), 1
    above = int(values.max(initial=0)) + 1
    blocks = np.full(1 << max(0, count - 1).bit_length(), above)  # what is filled up is no smaller
    blocks[:count] = values
    found = 0
    while width < count:
        pairs = blocks.reshape(-1, 2, width)
        shift = (above + 1) * np.arange(len(pairs))[:, None]  # so that no block meets another
        left, right = ((pairs[:, side] + shift).ravel() for side in (0, 1))
        not_above = np.searchsorted(left, right, side="right").reshape(len(pairs), width)
        found += int((width - (not_above - width * np.arange(len(pairs))[:, None])).sum())
        blocks = np.sort(blocks.reshape(-1, 2 * width), axis=1)
        width *= 2
    return found


def mid_ranks(values: Sequence[float]) -> Array:
    """Ranks from 1; equal values share the mean of their places."""
    np = numpy()
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _tied(values: Array) -> int:
    """Pairs of equal values."""
    counts = numpy().unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


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
