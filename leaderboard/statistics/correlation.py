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
    first, second = _places(left), _places(right)
    rho, tau = _spearman(first, second), _kendall(first, second)
    return Agreement(
        n=n,
        independent=sure,
        spearman=_coefficient(rho, lambda r: (1 + r * r / 2) / (sure - 3), sure),
        kendall=_coefficient(tau, lambda _: 0.437 / (sure - 4), sure),
    )


def spearman(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Pearson's correlation of the mid-ranks."""
    return _spearman(_places(left), _places(right))


def kendall(left: Sequence[float], right: Sequence[float]) -> float | None:
    """tau-b: (concordant - discordant) over the geometric mean of the pairs untied on each side."""
    return _kendall(_places(left), _places(right))


def inversions(values: Array) -> int:
    """Pairs of whole numbers from 0 of which the larger comes first.

    Two numbers differ first at one bit, from the highest down: then the larger has a 1 there, the
    smaller a 0, and the bits above are equal. So of each bit, the ones before each zero are counted
    among the numbers that are equal above it.
    """
    np = numpy()
    most = int(values.max(initial=0))
    small = values.astype(np.min_scalar_type(most))  # two bytes are sorted by counting them
    found = 0
    for bit in range(most.bit_length()):
        order = np.argsort(small >> (bit + 1), kind="stable")
        bits = (small[order] >> bit) & 1
        ones = np.cumsum(bits, dtype=np.int64)
        sizes = np.bincount(small >> bit, minlength=2 * (most >> (bit + 1)) + 2).reshape(-1, 2)
        earlier = np.cumsum(sizes[:, 1]) - sizes[:, 1]  # ones among numbers that are smaller above
        found += int(ones[bits == 0].sum()) - int((sizes[:, 0] * earlier).sum())
    return found


def mid_ranks(values: Sequence[float]) -> Array:
    """Ranks from 1; equal values share the mean of their places."""
    return _mid_ranks(_places(values))


@dataclass(frozen=True, slots=True)
class _Places:
    """`place`: of each value among the different ones, from 0; `counts`: of each of those."""

    place: Array
    counts: Array


def _places(values: Sequence[float]) -> _Places:
    return _Places(*numpy().unique(values, return_inverse=True, return_counts=True)[1:])


def _mid_ranks(values: _Places) -> Array:
    return (numpy().cumsum(values.counts) - (values.counts - 1) / 2)[values.place]


def _spearman(left: _Places, right: _Places) -> float | None:
    ranks = [_mid_ranks(values) for values in (left, right)]
    away = [own - own.mean() for own in ranks if len(own)]
    squares = [float((own * own).sum()) for own in away]
    if not squares or not all(squares):  # none, or a constant
        return None
    return float(numpy().dot(*away)) / math.sqrt(math.prod(squares))


def _kendall(left: _Places, right: _Places) -> float | None:
    """Sorted by the left value, a pair is discordant where a larger right value came before."""
    np = numpy()
    width = max(1, len(right.counts))
    pairs = np.sort(left.place * width + right.place)
    discordant = inversions(pairs % width)
    total = math.comb(len(pairs), 2)
    both = np.diff(np.flatnonzero(np.diff(pairs, prepend=-1)), append=len(pairs))
    ties_left, ties_right, ties_both = (_tied(n) for n in (left.counts, right.counts, both))
    untied = (total - ties_left) * (total - ties_right)
    if not untied:
        return None
    return (total - ties_left - ties_right + ties_both - 2 * discordant) / math.sqrt(untied)


def _tied(counts: Array) -> int:
    """Pairs of equal values, from how many there are of each."""
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
