"""Shares with their intervals: how many correct kernels are slower than PyTorch."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from leaderboard.figures import Interval, speed_word

LEVEL = 0.95
Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


@dataclass(frozen=True, slots=True)
class Speeds:
    """`timed` correct kernels by speed. `slower` is below 1.0x, whatever the neutral band says."""

    name: str
    timed: int
    slower: int
    slow: int
    even: int
    fast: int

    @property
    def share(self) -> Interval | None:
        return wilson(self.slower, self.timed)

    @property
    def slow_share(self) -> Interval | None:
        """Slower by more than the neutral band."""
        return wilson(self.slow, self.timed)

    def of(self, count: int) -> float:
        return count / self.timed if self.timed else 0.0


def wilson(count: int, of: int) -> Interval | None:
    """A share with Wilson's 95 % score interval (J. Am. Stat. Assoc. 22, 1927); None of nothing."""
    if not of:
        return None
    share = count / of
    spread = 1 + Z * Z / of
    centre = (share + Z * Z / (2 * of)) / spread
    half = Z * math.sqrt(share * (1 - share) / of + (Z / (2 * of)) ** 2) / spread
    return Interval(share, max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share)))


def speeds(name: str, speedups: Iterable[float]) -> Speeds:
    ratios = tuple(speedups)
    words = [speed_word(ratio) for ratio in ratios]
    return Speeds(
        name,
        timed=len(ratios),
        slower=sum(ratio < 1 for ratio in ratios),
        slow=words.count("slow"),
        even=words.count("even"),
        fast=words.count("fast"),
    )


def pooled(shares: Sequence[float], counts: Sequence[int]) -> float | None:
    """The share of all kernels from each method's share and its number of kernels."""
    total = sum(counts)
    if not total:
        return None
    return sum(share * count for share, count in zip(shares, counts, strict=True)) / total
