"""Two methods on the same tasks: who solves more (McNemar), who is faster (sign test)."""

from collections.abc import Iterable
from dataclasses import dataclass

from leaderboard.statistics.binomial import fair_two_sided

LEVEL = 0.05  # below this, a p value says that a difference is more than chance


@dataclass(frozen=True, slots=True)
class McNemar:
    """The exact test: tasks solved by one only fall to either side as a fair coin would."""

    only_first: int
    only_second: int

    @property
    def p(self) -> float:
        return fair_two_sided(self.only_first, self.only_first + self.only_second)

    @property
    def is_told(self) -> bool:
        return self.p < LEVEL


@dataclass(frozen=True, slots=True)
class SignTest:
    """Pairs in which the first is ahead, behind, or within the neutral band (not counted)."""

    ahead: int
    behind: int
    even: int

    @property
    def decided(self) -> int:
        return self.ahead + self.behind

    @property
    def p(self) -> float:
        return fair_two_sided(self.ahead, self.decided)

    @property
    def is_told(self) -> bool:
        return self.p < LEVEL


def sign_test(ratios: Iterable[float], band: float) -> SignTest:
    """Of positive ratios; those from 1 / (1 + band) to 1 + band are even."""
    ahead = behind = even = 0
    for ratio in ratios:
        if ratio > 1 + band:
            ahead += 1
        elif ratio < 1 / (1 + band):
            behind += 1
        else:
            even += 1
    return SignTest(ahead, behind, even)
