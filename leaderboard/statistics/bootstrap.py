"""Percentile intervals by resampling; the seed is fixed, so that each visit shows the same."""

import math
from functools import lru_cache

from leaderboard.statistics.arrays import Array, numpy

DRAWS = 1000
SEED = 176
TAIL = 0.025
KEPT_SIZES = 64  # whose draws are kept: those of 176 values take 350 KB


@lru_cache(maxsize=256)  # by value: the same numbers always have the same interval
def mean_interval(
    values: tuple[float, ...], draws: int = DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """The middle 95 % of the means of `draws` resamplings with replacement.

    It holds the mean itself. Raises ValueError for no values.
    """
    if not values:
        raise ValueError("no values, so no mean")
    np = numpy()
    sums = resamplings(len(values), draws, seed) @ np.array(values)
    means = np.sort(sums / len(values))
    low, high = ends(draws)
    mean = math.fsum(values) / len(values)
    return min(float(means[low]), mean), max(float(means[high]), mean)


def resamplings(size: int, draws: int = DRAWS, seed: int = SEED) -> Array:
    """Draws x values: how often each draw of `size` out of `size` values takes each of them."""
    return _counts(size, draws, seed).astype(float)


def ends(count: int) -> tuple[int, int]:
    """Where the middle 95 % of `count` ordered values begin and end."""
    return math.floor(TAIL * (count - 1)), math.ceil((1 - TAIL) * (count - 1))


@lru_cache(maxsize=KEPT_SIZES)  # a selection's size has always the same draws
def _counts(size: int, draws: int, seed: int) -> Array:
    np = numpy()
    # Of the legacy generator, whose numbers are promised never to change.
    taken = np.random.RandomState(seed).randint(0, size, size=(draws, size))
    taken += size * np.arange(draws)[:, None]
    counts = np.bincount(taken.ravel(), minlength=draws * size)
    return counts.reshape(draws, size).astype(np.uint16)
