"""Statistics against published, enumerated and hand-computed values."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.statistics import bootstrap, ecdf
from leaderboard.statistics.binomial import fair_two_sided, quantile
from leaderboard.statistics.paired import McNemar, SignTest, sign_test


@pytest.mark.parametrize(
    ("k", "n", "numerator", "power"),
    [
        (0, 5, 2, 5),
        (0, 6, 2, 6),
        (8, 10, 2 * (1 + 10 + 45), 10),
        (3, 8, 2 * (1 + 8 + 28 + 56), 8),
        (6, 22, 2 * (1 + 22 + 231 + 1540 + 7315 + 26334 + 74613), 22),
    ],
)
def test_the_exact_binomial_by_hand(k, n, numerator, power):
    assert fair_two_sided(k, n) == numerator / 2**power
    assert fair_two_sided(n - k, n) == numerator / 2**power


def test_an_even_split_and_no_throw_say_nothing():
    assert fair_two_sided(4, 8) == 1
    assert fair_two_sided(0, 0) == 1
    with pytest.raises(ValueError, match="9 of 8"):
        fair_two_sided(9, 8)


@pytest.mark.parametrize("n", range(1, 11))
def test_the_exact_binomial_equals_every_order_of_coins(n):
    heads = [sum(coins) for coins in itertools.product((0, 1), repeat=n)]
    for k in range(n + 1):
        as_uneven = sum(abs(2 * h - n) >= abs(2 * k - n) for h in heads)
        assert fair_two_sided(k, n) == as_uneven / 2**n


def test_mcnemar_as_published():
    """Bentur et al.'s children, 1 against 7, in Fagerland, Lydersen and Laake 2013: exact 0.070.

    The chi-squared test (0.034) would tell them apart, the exact one does not.
    """
    test = McNemar(1, 7)
    assert test.p == 2 * (1 + 8) / 256
    assert round(test.p, 3) == 0.070
    assert not test.is_told
    assert McNemar(6, 17).is_told


def test_mcnemar_sees_only_what_one_alone_solved():
    assert McNemar(0, 0).p == 1
    assert McNemar(0, 6).p == 2 / 64
    assert McNemar(121, 59).p == pytest.approx(4.43445e-6, rel=1e-5)  # also by scipy's binomtest


def test_the_sign_test_leaves_out_the_neutral_band():
    test = sign_test([2.0, 1.06, 1.05, 1.0, 1 / 1.05, 0.94, 0.5, 1.2], band=0.05)
    assert test == SignTest(ahead=3, behind=2, even=3)
    assert test.p == 1
    assert sign_test([1.01] * 40, band=0.05) == SignTest(0, 0, 40)


def test_five_pairs_never_tell_and_six_can():
    assert not sign_test([2.0] * 5, band=0.05).is_told
    assert sign_test([2.0] * 6, band=0.05).is_told


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_binomial_is_symmetric_and_falls_outwards(a, b):
    n, k = a + b, min(a, b)
    p = fair_two_sided(a, n)
    assert 0 < p <= 1
    assert p == fair_two_sided(b, n)
    if k:
        assert fair_two_sided(k - 1, n) < p or p == 1


@pytest.mark.parametrize(
    ("tail", "n", "share", "expected"),
    [
        (0.025, 10, 0.5, 2),  # cumulative: 11 / 1024 at 1, 56 / 1024 at 2
        (0.975, 10, 0.5, 8),
        (0.5, 1, 0.5, 0),
        (0.51, 1, 0.5, 1),
        (0.025, 7, 0.0, 0),
        (0.975, 7, 1.0, 7),
        (0.5, 5000, 0.25, 1250),
    ],
)
def test_binomial_quantiles(tail, n, share, expected):
    assert quantile(tail, n, share) == expected


@given(st.integers(1, 60), st.data())
def test_a_quantile_is_where_the_exact_sum_passes_the_tail(n, data):
    k = data.draw(st.integers(0, n))

    def cumulated(x):
        ways = sum(math.comb(n, i) * k**i * (n - k) ** (n - i) for i in range(x + 1))
        return ways / n**n

    for tail in (0.025, 0.975):
        x = quantile(tail, n, k / n)
        assert cumulated(x) >= tail - 1e-9
        assert x == 0 or cumulated(x - 1) < tail + 1e-9


def test_the_bootstrap_of_a_mean_has_the_width_of_its_standard_error():
    """100 values of variance 1: the interval is about 1.96 / 10 to either side."""
    values = tuple([-1.0, 1.0] * 50)
    low, high = bootstrap.mean_interval(values)
    assert low == pytest.approx(-0.196, abs=0.03)
    assert high == pytest.approx(0.196, abs=0.03)


def test_the_bootstrap_of_equal_values_has_no_width():
    assert bootstrap.mean_interval((0.5,) * 9) == (0.5, 0.5)
    with pytest.raises(ValueError, match="no values"):
        bootstrap.mean_interval(())


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=8).map(tuple))
def test_the_bootstrap_interval_holds_the_mean_and_stays_within_the_values(values):
    low, high = bootstrap.mean_interval(values, draws=50)
    assert low <= math.fsum(values) / len(values) <= high
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9


def test_fast_p_counts_failures_in_the_denominator():
    """Two solved of ten tasks twice as fast, one of them eight times."""
    two, eight = ecdf.steps([8.0, 2.0], 10)
    assert (two.at, two.count, two.share) == (2.0, 2, 0.2)
    assert (eight.at, eight.count, eight.share) == (8.0, 1, 0.1)
    assert ecdf.reaching([8.0, 2.0], 10, 2.0).share == 0.2
    assert ecdf.reaching([8.0, 2.0], 10, 2.01).share == 0.1
    assert ecdf.reaching([8.0, 2.0], 10, 9).share == 0


def test_equal_speedups_make_one_step():
    (step,) = ecdf.steps([1.5, 1.5], 4)
    assert (step.count, step.share) == (2, 0.5)
    with pytest.raises(ValueError, match="2 of 1"):
        ecdf.steps([1.0, 2.0], 1)


def test_the_band_is_the_bootstraps():
    """5 of 10: the middle 95 % of binomial (10, 1/2) counts are 2 to 8."""
    step = ecdf.reaching([1.0] * 5, 10, 1.0)
    assert (step.low, step.high) == (0.2, 0.8)
    drawn = bootstrap.mean_interval((1.0,) * 5 + (0.0,) * 5)
    assert (step.low, step.high) == drawn


def test_the_band_has_no_width_at_none_and_all():
    assert ecdf.reaching([], 10, 1.0).high == 0
    assert ecdf.reaching([1.0] * 10, 10, 1.0).low == 1
