"""Pure arithmetic on times: medians, ratios, their intervals, when to stop. Standard library only.

The unit of evidence is a pair of neighbouring blocks, one of PyTorch and one of the candidate: what
drifts over seconds (clocks, temperature) cancels in their ratio. Samples inside a block are not
independent, so they are not resampled.
"""

import functools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from statistics import median

from benchmark.student import NORMAL, quantile

RESAMPLES = 1000
SYSTEMATIC = 0.004  # two processes with the same code differ by up to 0.3 %, measured on an H200
GATES = (
    (0.05, 0.01),
    (0.01, 0.02),
    (0.0, 0.05),
)  # from ms on: half-width of the interval that is narrow enough


@dataclass(frozen=True)
class Interval:
    """A value between a lower and an upper bound, at 95 %."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Relative to the value."""
        return (self.high - self.low) / (2 * self.value)


@dataclass(frozen=True)
class Pair:
    """The samples, in ms, of two neighbouring blocks."""

    reference: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def log_ratio(self) -> float:
        """log(reference time / candidate time) by the blocks' medians: positive is faster."""
        return math.log(median(self.reference) / median(self.candidate))


def gate(milliseconds: float) -> float:
    """The half-width at which a case of this length has been measured well enough."""
    return next(width for least, width in GATES if milliseconds >= least)


def student(pairs: int) -> float:
    """How much wider than normal the 95 % interval of a mean of so few is, resampling's own bias
    included.
    """
    freedom = pairs - 1
    return quantile(freedom) / NORMAL * math.sqrt(pairs / freedom)


def time_of(blocks: Sequence[Sequence[float]], seed: int = 0) -> Interval:
    """Median of the blocks' medians, with the interval that resampling the blocks gives."""
    medians = [median(block) for block in blocks]
    found = _resampled([medians], lambda groups: median(groups[0]), seed)
    return Interval(median(medians), *found)


def speedup_of(cases: Sequence[Sequence[Pair]], seed: int = 0) -> Interval:
    """Geometric mean over cases of the ratio of times. Each case is the mean of its pairs' logs."""
    logs = [[pair.log_ratio for pair in pairs] for pairs in cases]
    centre = _mean([_mean(values) for values in logs])
    low, high = _resampled(logs, lambda groups: _mean([_mean(values) for values in groups]), seed)
    wider = student(min(len(values) for values in logs))
    below = math.hypot((centre - low) * wider, SYSTEMATIC)
    above = math.hypot((high - centre) * wider, SYSTEMATIC)
    return Interval(math.exp(centre), math.exp(centre - below), math.exp(centre + above))


def _resampled(groups, statistic, seed: int) -> tuple[float, float]:  # type: ignore[no-untyped-def]
    """2.5 % and 97.5 % of a statistic over resamples of each group, with a fixed seed."""
    picks = _picks(tuple(len(values) for values in groups), seed)
    found = sorted(
        statistic([pick(values) for pick, values in zip(picked, groups, strict=True)])
        for picked in picks
    )
    return found[int(0.025 * RESAMPLES)], found[int(0.975 * RESAMPLES) - 1]


@functools.lru_cache(maxsize=32)
def _picks(sizes: tuple[int, ...], seed: int) -> list[tuple[Callable[[Sequence], Sequence], ...]]:
    """What takes each resample out of groups of these sizes. Kept: a board waits for intervals, and
    drawing is most of the work.
    """
    draw = random.Random(seed)  # noqa: S311 - statistics, not secrets
    return [
        tuple(_pick(draw.choices(range(size), k=size)) for size in sizes) for _ in range(RESAMPLES)
    ]


def _pick(places: list[int]) -> Callable[[Sequence], Sequence]:
    return itemgetter(*places) if len(places) > 1 else lambda values: values[:1]


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def narrow_enough(pairs: Sequence[Pair]) -> bool:
    """Has this case been measured well enough? Looks at the candidate's time for the gate."""
    milliseconds = median(median(pair.candidate) for pair in pairs)
    return speedup_of([pairs]).half_width <= gate(milliseconds)
