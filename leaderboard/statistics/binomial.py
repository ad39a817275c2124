"""The binomial distribution: exact for a fair coin, quantiles for any."""

import math
from functools import lru_cache


@lru_cache(maxsize=4096)
def fair_two_sided(k: int, n: int) -> float:
    """The chance that `n` throws of a fair coin split at least as unevenly as `k` to `n - k`.

    Exact, in integers until the last division. 1 for no throw: nothing speaks against fairness.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no count of successes")
    fewer = min(k, n - k)
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(fewer + 1)) / 2**n)


@lru_cache(maxsize=4096)
def quantile(tail: float, n: int, share: float) -> int:
    """The smallest x with P(X <= x) >= `tail` for `n` throws that succeed with chance `share`."""
    if not 0 <= share <= 1:
        raise ValueError(f"{share} is no probability")
    if share in (0, 1):
        return n if share else 0
    below = 0.0
    for x in range(n):
        below += _chance(x, n, share)
        if below >= tail:
            return x
    return n


def _chance(x: int, n: int, share: float) -> float:
    """By logarithms, because comb(n, x) leaves the range of floats near n = 1030."""
    ways = math.lgamma(n + 1) - math.lgamma(x + 1) - math.lgamma(n - x + 1)
    return math.exp(ways + x * math.log(share) + (n - x) * math.log1p(-share))
