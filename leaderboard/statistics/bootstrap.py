"""Percentile intervals by resampling; the seed is fixed, so that each visit shows the same."""

import math
import random
from functools import lru_cache

DRAWS = 1000
SEED = 176
TAIL = 0.025


@lru_cache(maxsize=256)  # by value: the same numbers always have the same interval
def mean_interval(
    values: tuple[float, ...], draws: int = DRAWS, seed: int = SEED
) -> tuple[float, float]:
    """The middle 95 % of the means of `draws` resamplings with replacement.

    It holds the mean itself. Raises ValueError for no values.
    """
    if not values:
        raise ValueError("no values, so no mean")
    generator = random.Random(seed)  # noqa: S311  resampling, no secret
    mean = math.fsum(values) / len(values)
    means = sorted(
        sum(generator.choices(values, k=len(values))) / len(values) for _ in range(draws)
    )
    low = means[math.floor(TAIL * (draws - 1))]
    high = means[math.ceil((1 - TAIL) * (draws - 1))]
    return min(low, mean), max(high, mean)
