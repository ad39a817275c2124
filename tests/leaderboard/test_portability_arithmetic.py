"""Golden numbers for what is compared between devices: orders, ratios, agreement, best GPU."""

import math
import random
from itertools import combinations
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark import vocabulary
from leaderboard import devices_compared as compared
from leaderboard.figures import Interval
from leaderboard.lazily import Rows
from leaderboard.rows import COUNTED, GpuRow, Result
from leaderboard.statistics.arrays import numpy
from leaderboard.statistics.correlation import (
    agreement,
    inversions,
    kendall,
    mid_ranks,
    spearman,
)

A = GpuRow(1, "a", "A", "sm_90", True, 9)
B = GpuRow(2, "b", "B", "sm_80", True, 9)
C = GpuRow(3, "c", "C", "sm_89", True, 9)
CPU = GpuRow(4, "cpu", "CPU", "", False, 9)


def judged(gpu, task, speedup=None, method=1, source=7, verdict="passed", state=COUNTED):
    interval = Interval(speedup, speedup, speedup) if speedup else None
    return gpu, Result(method, task, 0, str(uuid4()), verdict, "time", interval, state, source)


def grid(rows, gpus):
    """Of what was judged on each of the GPUs."""
    return compared.grid(
        [compared.column(gpu, [result for on, result in rows if on == gpu]) for gpu in gpus]
    )


def failed(gpu, task, **fields):
    return judged(gpu, task, verdict=vocabulary.WRONG_VALUES, **fields)


# W. J. Conover's and Wikipedia's example of Spearman's rho: IQ and hours of television.
IQ = [106, 100, 86, 101, 99, 103, 97, 113, 112, 110]
HOURS = [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]


def test_spearman_of_the_textbook():
    assert spearman(IQ, HOURS) == pytest.approx(-29 / 165)


def test_kendall_of_the_textbook():
    assert kendall(IQ, HOURS) == pytest.approx((20 - 25) / 45)  # concordant less discordant


@pytest.mark.parametrize("seed", range(5))
def test_ties_are_counted_as_scipy_does(seed):
    stats = pytest.importorskip("scipy.stats")
    generator = random.Random(seed)
    left = [generator.randrange(5) for _ in range(60)]
    right = [value + generator.randrange(4) for value in left]
    assert kendall(left, right) == pytest.approx(stats.kendalltau(left, right).statistic)
    assert spearman(left, right) == pytest.approx(stats.spearmanr(left, right).statistic)


def test_equal_values_share_their_ranks():
    assert mid_ranks([10, 20, 20, 5]).tolist() == [2, 3.5, 3.5, 1]


@given(st.lists(st.integers(0, 6), max_size=40))
def test_inversions_are_pairs_in_the_wrong_order(values):
    expected = sum(first > second for first, second in combinations(values, 2))
    assert inversions(numpy().array(values, dtype=int)) == expected


def test_nothing_to_correlate_is_no_number():
    for values in ([], [1.0], [2.0, 2.0, 2.0]):
        found = agreement(values, values)
        assert found.spearman is None
        assert found.kendall is None


def test_intervals_after_bonett_and_wright():
    found = agreement(IQ, HOURS)
    rho = -29 / 165
    reach = 1.959964 * math.sqrt((1 + rho**2 / 2) / 7)
    assert found.spearman.interval.low == pytest.approx(math.tanh(math.atanh(rho) - reach))
    assert found.spearman.interval.high == pytest.approx(math.tanh(math.atanh(rho) + reach))
    assert found.spearman.text == "-0.18 [-0.73, 0.51]"


def test_too_few_or_perfect_have_no_interval():
    assert agreement(IQ[:9], HOURS[:9]).spearman.interval is None
    assert agreement(IQ, IQ).spearman.interval is None
    assert agreement(IQ, IQ).spearman.value == pytest.approx(1)


def test_shared_tasks_widen_the_interval():
    left = [random.Random(i).random() for i in range(40)]
    right = [value + random.Random(i + 99).random() for i, value in enumerate(left)]
    narrow, wide = agreement(left, right).spearman, agreement(left, right, 12).spearman
    assert wide.value == narrow.value
    assert wide.interval.low < narrow.interval.low


def test_only_the_same_source_is_compared():
    found = [judged(A, 1, 2.0), judged(B, 1, 1.0, source=8), judged(A, 2, 2.0), judged(B, 2, 1.0)]
    assert [row.task for row in compared.ratios(grid(found, [A, B]))] == [2]
    assert compared.mixed(grid(found, [A, B])) == 1


def test_results_that_do_not_count_are_not_compared():
    held = judged(B, 1, 9.0, state="suspect")
    found = [judged(A, 1, 2.0), held]
    assert not compared.ratios(grid(found, [A, B]))
    assert not compared.disagreements(grid(found, [A, B]))


def test_passes_here_and_fails_there():
    found = [judged(A, 1, 2.0), failed(B, 1), judged(C, 1, 1.0)]
    (row,) = compared.disagreements(grid(found, [A, B, C]))
    assert [gpu.slug for gpu, _ in row.passed] == ["a", "c"]
    assert [gpu.slug for gpu, _ in row.failed] == ["b"]
    assert row.among_gpus


def test_the_interpreter_disagrees_but_not_as_a_gpu():
    found = [failed(A, 1), judged(CPU, 1)]
    (row,) = compared.disagreements(grid(found, [A, CPU]))
    assert not row.among_gpus


def test_the_interpreter_has_no_speedup():
    found = [judged(A, 1, 2.0), judged(CPU, 1, 50.0)]
    assert not compared.ratios(grid(found, [A, CPU]))
    pair = compared.pair(grid(found, [A, CPU]), 0, 1, {}, {})
    assert pair.both == 1
    assert pair.kernels is None


def test_a_pair_counts_all_four_outcomes():
    rows = [judged(A, 1, 1.0), judged(B, 1, 2.0), judged(A, 2, 1.0), failed(B, 2)]
    rows += [failed(A, 3), judged(B, 3, 1.0), failed(A, 4), failed(B, 4), judged(A, 5, 1.0)]
    pair = compared.pair(grid(rows, [A, B]), 0, 1, {}, {})
    assert (pair.both, pair.only_left, pair.only_right, pair.neither) == (1, 1, 1, 1)
    assert (pair.judged, pair.differ) == (4, 2)


def test_a_pair_is_of_two_devices_whatever_a_third_found():
    """Pairs outlive what changes on other devices."""
    speeds = [
        (task, gpu, 1.0 + (7 * task + 3 * gpu.id) % 11) for task in range(20) for gpu in (A, B)
    ]
    rows = [judged(gpu, task, speed) for task, gpu, speed in speeds]
    third = [judged(C, task, 2.0) for task in (30, 3, 1)] + [failed(C, 4)]
    alone = compared.pair(grid(rows, [A, B]).judged_on_several(), 0, 1, {}, {})
    beside = compared.pair(grid(third + rows, [C, A, B]).judged_on_several(), 1, 2, {}, {})
    assert alone == beside
    assert alone.kernels.n == 20


def test_methods_are_compared_by_their_places():
    left, right = {7: 1, 8: 2, 9: 3}, {7: 1, 8: 3, 9: 2, 10: 4}
    pair = compared.pair(grid([], [A, B]), 0, 1, left, right)
    assert pair.methods.n == 3
    assert pair.methods.spearman.value == pytest.approx(0.5)
    assert pair.methods.kendall.value == pytest.approx(1 / 3)


def test_the_ratio_names_its_ends_and_comes_largest_first():
    rows = [judged(A, 1, 1.0), judged(B, 1, 2.0), judged(C, 1, 0.5)]
    rows += [judged(A, 2, 3.0), judged(B, 2, 0.5)]
    first, second = compared.ratios(grid(rows, [A, B, C]))
    assert (first.task, first.ratio, first.gpus) == (2, 6.0, 2)
    assert (second.ratio, second.best[0].slug, second.worst[0].slug) == (4.0, "b", "c")


def test_a_failed_run_has_no_speedup_even_where_one_was_recorded():
    found = [judged(A, 1, 2.0), judged(B, 1, 90.0, verdict=vocabulary.IMPOSSIBLE)]
    assert not compared.ratios(grid(found, [A, B]))


def test_the_summary_of_ratios():
    found = compared.ratio_summary([1.0, 1.5, 2.5, 9.0])
    assert (found.n, found.median, found.mean, found.maximum) == (4, 2.0, 3.5, 9.0)
    assert found.above_two == 2
    assert found.median_interval is None
    assert compared.ratio_summary([]) is None


@pytest.mark.parametrize(
    ("n", "low", "high"),
    [(6, 1, 6), (10, 2, 9), (25, 8, 18), (40, 14, 27)],  # Conover's table of the sign test
)
def test_the_median_interval_is_exact(n, low, high):
    found = compared.median_interval([float(i) for i in range(1, n + 1)])
    assert (found.low, found.high) == (low, high)
    covered = sum(math.comb(n, k) for k in range(low, high)) / 2**n
    assert covered >= 0.95


def test_the_median_interval_takes_many_values():
    found = compared.median_interval([float(i) for i in range(5000)])
    assert found.low == pytest.approx(2499.5 - 0.98 * math.sqrt(5000), abs=2)


def test_bins_hold_every_value():
    bins = compared.binned([1.0, 1.1, 2.0, 21.4])
    assert sum(count for _, _, count in bins) == 4
    assert bins[0][2] == 2
    assert bins[4][:2] == (2.0, pytest.approx(2**1.25))
    assert compared.binned([]) == ()


def test_relative_compares_the_same_candidates():
    """B looks better by its own mean only because it solves another, easier task as well."""
    rows = [judged(A, 1, 2.0), judged(B, 1, 1.0), judged(A, 2, 2.0), judged(B, 2, 1.0)]
    rows += [judged(B, 3, 100.0), failed(A, 3)]
    found = compared.relative(grid(rows, [A, B]))
    assert (found.n, found.best) == (2, A.id)
    assert found.shares[A.id].value == pytest.approx(1)
    assert found.shares[B.id].value == pytest.approx(0.5, rel=1e-6)


def test_relative_needs_two_gpus_and_a_common_candidate():
    assert compared.relative(grid([judged(A, 1, 2.0)], [A, B])) is None
    apart = [judged(A, 1, 2.0), judged(B, 2, 2.0)]
    assert compared.relative(grid(apart, [A, B])) is None


def kendall_by_pairs(left, right):
    """tau-b by its definition, over all pairs."""
    pairs = [
        ((b > a) - (b < a), (d > c) - (d < c))
        for (a, c), (b, d) in combinations(zip(left, right, strict=True), 2)
    ]
    first, second = sum(a != 0 for a, _ in pairs), sum(b != 0 for _, b in pairs)
    return sum(a * b for a, b in pairs) / math.sqrt(first * second) if first * second else None


VALUES = st.integers(0, 9)


@given(st.lists(st.tuples(VALUES, VALUES), max_size=40))
def test_kendall_is_its_definition(pairs):
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    expected = kendall_by_pairs(left, right)
    found = kendall(left, right)
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected)


def outside_from_zero(n):
    """The chances added up from no head on, times 2**n."""
    below, term, outside = 0, 1, 0
    while outside + term <= 2**n // compared.TAIL:
        outside += term
        term = term * (n - below) // (below + 1)
        below += 1
    return below


def test_the_median_interval_is_counted_from_the_middle_as_from_zero():
    for n in [*range(200), 999, 1000, 6808]:
        values = [float(i) for i in range(n)]
        below, found = outside_from_zero(n), compared.median_interval(values)
        assert (found is None) == (not below)
        assert not found or (found.low, found.high) == (values[below - 1], values[n - below])


class TestByHand:
    """What arrays find in random results is what dictionaries find, row by row, in that order."""

    GPUS = (A, B, C, CPU)

    @pytest.fixture(params=range(4))
    def rows(self, request):
        """Of 5 methods on 12 tasks; a fifth of the candidates differ between devices, speeds tie
        now and then. The last seed's ids need more than 63 bits together.
        """
        generator, huge = random.Random(request.param), request.param == 3
        return [
            judged(
                gpu, task * (2**40 if huge else 1), generator.choice([0.5, 1.0, 2.0, 3.0, None]),
                method=method * (2**20 if huge else 1), source=generator.choice([7, 7, 7, 7, 8]),
                verdict=generator.choice(["passed", "passed", vocabulary.WRONG_VALUES]),
                state=generator.choice([COUNTED, COUNTED, COUNTED, "suspect"]),
            )
            for gpu in self.GPUS
            for method, task in generator.sample([(m, t) for m in range(5) for t in range(12)], 50)
        ]  # fmt: skip

    @pytest.fixture
    def by_candidate(self, rows):
        """Candidate -> GPU -> result, in the order in which they were judged."""
        found = {}
        for gpu, one in rows:
            if one.is_judged:
                place = (one.method, one.task, one.submission, one.round)
                found.setdefault(place, {})[gpu] = one
        return found

    def test_the_grid(self, rows, by_candidate):
        found = grid(rows, self.GPUS)
        assert list(map(tuple, found.ids.tolist())) == list(by_candidate)
        for row, on in enumerate(by_candidate.values()):
            for place, gpu in enumerate(self.GPUS):
                assert found.solved[row, place] == (on[gpu].is_solved if gpu in on else -1)
                assert (found.at[row, place] >= 0) == (gpu in on)
                assert gpu not in on or found.result(row, place) == (gpu, on[gpu])
        several = found.judged_on_several()
        assert len(several) == sum(len(on) > 1 for on in by_candidate.values())

    def test_mixed(self, rows, by_candidate):
        kinds = [place[:2] for place in by_candidate]
        assert compared.mixed(grid(rows, self.GPUS)) == sum(kinds.count(k) > 1 for k in {*kinds})

    def test_ratios(self, rows, by_candidate):
        expected = []
        for (method, task, *_), on in by_candidate.items():
            timed = [
                (gpu, one)
                for gpu, one in on.items()
                if gpu.can_time and one.is_solved and one.speedup
            ]
            if len(timed) > 1:
                best = max(timed, key=lambda end: end[1].speedup.value)
                worst = min(timed, key=lambda end: end[1].speedup.value)
                ratio = best[1].speedup.value / worst[1].speedup.value
                expected.append(compared.Ratio(method, task, ratio, len(timed), best, worst))
        expected.sort(key=lambda row: (-row.ratio, row.method, row.task))
        found = compared.ratios(grid(rows, self.GPUS))
        assert list(found) == expected
        assert found.values == [row.ratio for row in expected]

    def test_disagreements(self, rows, by_candidate):
        expected = []
        for (method, task, *_), on in by_candidate.items():
            passed = tuple(end for end in on.items() if end[1].is_solved)
            failed = tuple(end for end in on.items() if not end[1].is_solved)
            if passed and failed:
                expected.append(compared.Disagreement(method, task, passed, failed))
        found = compared.disagreements(grid(rows, self.GPUS))
        assert list(found) == expected
        assert found.candidates == [(row.method, row.task) for row in expected]
        assert found.among_gpus == [row.among_gpus for row in expected]

    def test_relatives(self, rows):
        found = compared.relatives(grid(rows, (B, A)))
        methods = {one.method for _, one in rows}
        own = {m: [(gpu, one) for gpu, one in rows if one.method == m] for m in methods}
        expected = {m: compared.relative(grid(mine, (B, A))) for m, mine in own.items()}
        assert found == {m: shares for m, shares in expected.items() if shares}
        assert found


def test_rows_are_made_when_they_are_looked_at():
    made = []
    rows = Rows(4, lambda place: made.append(place) or 10 * place)
    assert (len(rows), bool(rows), rows[1], rows[-1]) == (4, True, 10, 30)
    assert made == [1, 3]
    assert list(rows[1:3]) == [10, 20]
    assert list(rows.only([2, 0])[1:]) == [0]
    assert list(reversed(rows)) == [30, 20, 10, 0]
    with pytest.raises(IndexError):
        rows[4]
    assert not Rows(0, made.append)
