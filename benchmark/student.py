"""Student's quantiles, for intervals of few values. Standard library only."""

NORMAL = 1.96
# 97.5 % by degrees of freedom; of those that aren't here the next lower holds, and for none the
# normal one, for whoever knows the spread from elsewhere.
QUANTILES = {
    0: NORMAL, 1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306,
    9: 2.262, 10: 2.228, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.0, 120: 1.98,
}  # fmt: skip


def quantile(freedom: int) -> float:
    """Half the 95 % interval of a mean in standard errors of it."""
    return QUANTILES[max(known for known in QUANTILES if known <= freedom)]
