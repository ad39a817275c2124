"""Numbers and verdicts as people read them: three significant digits, a word beside each colour."""

import math
from functools import lru_cache
from typing import NamedTuple

from benchmark import vocabulary

MISSING = "\N{EN DASH}"
KEPT_FIGURES = 8192  # the longest page shows 2,000; they take 1 MB


@lru_cache(maxsize=KEPT_FIGURES)  # most numbers of a page are still there when it is made anew
def figure(value: float | None) -> str:
    """Three significant digits without an exponent; a dash where nothing was measured."""
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    decimals = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, decimals)
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))  # 9.996 has become 10.0
    return f"{rounded:,.{decimals}f}"


def error_figure(value: float | None) -> str:
    """An error: three significant digits, with an exponent where it is tiny or huge."""
    if value is None:
        return MISSING
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return figure(value)
    return f"{value:.2e}"


class Interval(NamedTuple):
    """A value with its 95 % interval, in the unit of its place (ratios for speedups, else ms).

    A tuple, as a board holds thousands and tuples are made in half the time.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{figure(self.value)} [{figure(self.low)}, {figure(self.high)}]"

    @property
    def ratio(self) -> str:
        return f"{figure(self.value)}x [{figure(self.low)}, {figure(self.high)}]"


def interval(value: float | None, low: float | None, high: float | None) -> Interval | None:
    """The interval, or None where a part is missing: a bare number looks surer than it is."""
    if value is None or low is None or high is None:
        return None
    return Interval(value, low, high)


def is_fast(speedup: float) -> bool:
    """Above the neutral band around 1.0x."""
    return speedup > 1 + vocabulary.NEUTRAL_BAND


def speed_word(speedup: float | None) -> str:
    """fast, even or slow against the baseline, with the neutral band around 1.0x."""
    if speedup is None:
        return "correct"
    if is_fast(speedup):
        return "fast"
    if speedup < 1 / (1 + vocabulary.NEUTRAL_BAND):
        return "slow"
    return "even"


VERDICT_WORDS = {
    vocabulary.FORBIDDEN: "forbidden",
    vocabulary.LOAD_ERROR: "build",
    vocabulary.CALL_ERROR: "build",
    vocabulary.WRONG_SHAPE: "wrong",
    vocabulary.WRONG_DTYPE: "wrong",
    vocabulary.WRONG_VALUES: "wrong",
    vocabulary.NON_FINITE: "wrong",
    vocabulary.INPUT_MUTATED: "wrong",
    vocabulary.TIMEOUT: "timeout",
    vocabulary.OUT_OF_MEMORY: "memory",
    vocabulary.CRASHED: "crash",
    vocabulary.IMPOSSIBLE: "impossible",
    vocabulary.UNSTABLE: "unstable",
}


def verdict_word(verdict: str, speedup: float | None = None) -> str:
    """One short word for a run, the class of its colour as well."""
    if verdict == vocabulary.PASSED:
        return speed_word(speedup)
    return VERDICT_WORDS[verdict]
