"""Golden numbers of the split of a mean's change, and what rounds make of each task."""

import math
from statistics import fmean
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark import vocabulary
from leaderboard import refinement
from leaderboard.figures import Interval
from leaderboard.ranking import geometric_mean
from leaderboard.rows import COUNTED, REJECTED, SUSPECT, Result


def result(task, speedup=None, verdict=vocabulary.PASSED, state=COUNTED, round=0):
    interval = Interval(speedup, speedup, speedup) if speedup else None
    return Result(1, task, round, str(uuid4()), verdict, "time", interval, state)


def step(rounds, start, end):
    after = refinement.standings(rounds)
    return refinement.Step(after[start], after[end])


def wrong(task):
    return result(task, verdict=vocabulary.WRONG_VALUES)


class TestPaper:
    """The published fall of GEAK's mean speedup, from the figures that the paper gives (section 4)
    and the counts of the 176 tasks in its corpus: 32 correct, then 15 rescued, then 7."""

    OLD = {f"old {i}": 1.58 for i in range(32)}
    FIRST = {f"first {i}": 1.158 for i in range(15)}

    def test_the_first_round_of_repair_is_composition(self):
        found = refinement.split(self.OLD, self.OLD | self.FIRST)
        assert found.after == pytest.approx(1.445, abs=5e-4)
        assert found.real == 0
        assert found.entering == pytest.approx(15 / 47 * (1.158 - 1.58))
        assert found.composition == pytest.approx(found.after - found.before)

    def test_both_rounds_are_composition(self):
        second = {f"second {i}": 1.315 for i in range(7)}
        before = {f"kept {i}": 1.46 for i in range(46)}
        found = refinement.split(before, before | second)
        assert found.after == pytest.approx(1.441, abs=5e-4)
        assert round(found.after, 2) == 1.44
        assert found.real == 0

    def test_from_first_to_last_nothing_that_worked_became_slower(self):
        """1.58 to 1.44 with the one kernel lost that round 1's two means imply (0.76x)."""
        lost = 47 * 1.445 - 46 * 1.46
        assert lost == pytest.approx(0.755)
        old = {**{f"old {i}": 1.58 for i in range(31)}, "lost": lost}
        # The other 31 keep what makes round 0's mean 1.58 together with the lost one.
        for i in range(31):
            old[f"old {i}"] = (32 * 1.58 - lost) / 31
        after = {key: value for key, value in old.items() if key != "lost"}
        after |= self.FIRST | {f"second {i}": 1.315 for i in range(7)}
        found = refinement.split(old, after)
        assert found.before == pytest.approx(1.58)
        assert round(found.after, 2) == 1.44
        assert found.real == pytest.approx(0)
        assert (found.both, found.entered, found.left) == (31, 22, 1)


def test_a_split_by_hand():
    """Kept a: 2 to 3; left b: 6; entered c: 1. The mean falls from 4 to 2 though a is faster."""
    found = refinement.split({"a": 2.0, "b": 6.0}, {"a": 3.0, "c": 1.0})
    assert (found.before, found.after) == (4, 2)
    assert found.real == 1
    assert found.entering == -1
    assert found.leaving == -2
    assert (found.both, found.entered, found.left) == (1, 1, 1)


def test_a_ratio_split_by_hand():
    found = refinement.ratio_split({"a": 2.0, "b": 8.0}, {"a": 4.0, "c": 1.0})
    assert (found.before, found.after) == (pytest.approx(4), pytest.approx(2))
    assert found.real == pytest.approx(2)
    assert found.entering == pytest.approx(1 / 2)
    assert found.leaving == pytest.approx(1 / 2)
    assert found.real_interval.value == pytest.approx(2, rel=1e-6)


SPEEDUPS = st.dictionaries(st.integers(0, 12), st.floats(0.01, 100), min_size=1)


@given(SPEEDUPS, SPEEDUPS)
def test_the_parts_always_add_up(before, after):
    found = refinement.split(before, after)
    parts = (found.real or 0) + found.composition
    assert parts == pytest.approx(found.after - found.before, abs=1e-9)
    factors = refinement.ratio_split(before, after)
    product = (factors.real or 1) * factors.composition
    assert product == pytest.approx(factors.change, rel=1e-9)


@given(SPEEDUPS, SPEEDUPS)
def test_without_a_kept_task_there_is_no_real_change(before, after):
    found = refinement.split(before, after)
    assert (found.real is None) == (not before.keys() & after.keys())


def test_nothing_timed_is_nothing_to_split():
    assert refinement.split({}, {"a": 1.0}) is None
    assert refinement.ratio_split({"a": 1.0}, {}) is None


ROUNDS = {
    0: {1: result(1, 2.0), 2: wrong(2), 3: result(3, 1.0), 4: wrong(4)},
    1: {2: result(2, 0.5), 3: wrong(3), 5: result(5, 1.0)},
    2: {1: result(1, 4.0)},
}


def test_a_task_without_a_new_candidate_keeps_its_result():
    after = {number: one.results for number, one in refinement.standings(ROUNDS).items()}
    assert after[1][1] is ROUNDS[0][1]
    assert after[2][1] is ROUNDS[2][1]
    assert sorted(after[2]) == [1, 2, 3, 4, 5]


def test_summaries_tell_the_round_from_where_the_method_stands():
    first, second, third = refinement.summaries(refinement.standings(ROUNDS), [1, 2, 3, 4, 5, 6])
    assert (first.correct, first.judged, first.offered) == (2, 4, 4)
    assert (second.correct, second.judged) == (3, 5)
    assert (second.offered_correct, second.offered) == (2, 3)
    assert second.geometric == pytest.approx(1.0)
    assert second.arithmetic == pytest.approx(3.5 / 3)
    assert third.geometric == pytest.approx(2 ** (1 / 3))
    assert third.speedup.value == pytest.approx(2 ** (1 / 3), rel=1e-6)


def test_fates():
    found = step(ROUNDS, 0, 1)
    fates = {change.task: change.fate for change in found.changes}
    assert fates == {1: "persistent", 2: "rescued", 3: "lost", 4: "failing", 5: "new"}
    assert found.offered == 3
    assert sum(found.counts.values()) == 5


def test_the_whole_way_is_one_step():
    found = step(ROUNDS, 0, 2)
    (kept,) = found.of("persistent")
    assert kept.ratio == 2
    assert found.geometric.both == found.renewed == 1
    assert found.geometric.real == pytest.approx(2)
    assert step(ROUNDS, 0, 1).renewed == 0


def test_what_counts_for_nothing_is_neither_correct_nor_failed():
    rounds = {
        0: {1: result(1, 2.0), 2: result(2, 90.0, state=SUSPECT)},
        1: {1: result(1, 3.0, state=SUSPECT), 2: result(2, 1.0)},
    }
    found = step(rounds, 0, 1)
    assert {change.task: change.fate for change in found.changes} == {1: "lost", 2: "new"}
    assert found.geometric.real is None
    assert refinement.word_of(rounds[1][1]) == "suspect"


def test_a_rejected_candidate_failed():
    rounds = {0: {1: result(1, 2.0, state=REJECTED)}, 1: {1: result(1, 1.0)}}
    (change,) = step(rounds, 0, 1).changes
    assert change.fate == "rescued"


def test_transitions_add_up_to_the_tasks():
    found = refinement.transitions(step(ROUNDS, 0, 1))
    assert found.words == ("passed", "wrong-values", "not judged")
    assert dict(found.rows) == {
        "passed": (1, 1, 0),
        "wrong-values": (1, 1, 0),
        "not judged": (1, 0, 0),
    }
    assert sum(sum(counts) for _, counts in found.rows) == found.total == 5


def test_a_correct_candidate_without_a_time_is_in_no_mean():
    rounds = {0: {1: result(1), 2: result(2, 4.0)}, 1: {2: result(2, 2.0)}}
    first, _ = refinement.summaries(refinement.standings(rounds), [1, 2])
    assert (first.correct, first.timed, first.geometric) == (2, 1, pytest.approx(4.0))
    split = step(rounds, 0, 1).geometric
    assert math.isclose(split.real, 0.5)


OUTCOMES = st.builds(
    lambda speedup, verdict, state: result(0, speedup, verdict, state),
    st.sampled_from([None, 0.5, 1.0, 1.5, 4.0]),
    st.sampled_from([vocabulary.PASSED, vocabulary.PASSED, vocabulary.WRONG_VALUES]),
    st.sampled_from([COUNTED, COUNTED, SUSPECT, REJECTED]),
)


@given(
    st.dictionaries(
        st.integers(0, 6), st.dictionaries(st.integers(0, 12), OUTCOMES), min_size=2, max_size=5
    )
)
def test_rounds_summed_up_are_those_counted_one_by_one(rounds):
    """Also with rounds that offer nothing, and steps whose parts nobody has asked for before."""
    after = refinement.standings(rounds)
    for row, number in zip(refinement.counts(after), sorted(rounds), strict=True):
        standing = {}
        for earlier in sorted(rounds):
            standing |= rounds[earlier] if earlier <= number else {}
        solved = [one for one in standing.values() if one.is_solved]
        timed = [one.speedup.value for one in solved if one.speedup]
        assert row.number == number
        assert row.offered == sum(one.is_judged for one in rounds[number].values())
        assert row.offered_correct == sum(one.is_solved for one in rounds[number].values())
        assert row.judged == sum(one.is_judged for one in standing.values())
        assert (row.correct, row.timed) == (len(solved), len(timed))
        assert row.geometric == geometric_mean(timed)
        assert row.arithmetic == (fmean(timed) if timed else None)
    for one in (*refinement.steps(after), refinement.whole(after)):
        before, later = after[one.start].speedups, after[one.end].speedups
        assert one.geometric == refinement.ratio_split(before, later)
        assert one.arithmetic == refinement.split(before, later)
        assert [change.task for change in one.changes] == sorted(after[one.end].results)
