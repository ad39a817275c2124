"""Ranking: golden orders, ties, missing values, determinism."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaderboard.ranking import (
    Entry,
    competition_ranks,
    geometric_mean,
    rank,
    speedup_intervals,
)
from leaderboard.statistics.arrays import numpy
from leaderboard.statistics.bootstrap import resamplings

TASKS = list(range(40))


def entry(key: str, solved: range, speedup: float | None = 1.0) -> Entry:
    return Entry(key, dict.fromkeys(solved, speedup))


def test_nothing_to_rank_is_an_empty_ranking():
    assert rank([], TASKS) == []


def test_more_tasks_solved_comes_first_however_slow():
    placed = rank([entry("few", range(10), 9.0), entry("many", range(20), 0.5)], TASKS)
    assert [p.key for p in placed] == ["many", "few"]
    assert [p.rank for p in placed] == [1, 2]


def test_equal_counts_are_ordered_by_geometric_mean():
    placed = rank([entry("slow", range(10), 1.1), entry("fast", range(10, 20), 1.4)], TASKS)
    assert [p.key for p in placed] == ["fast", "slow"]
    assert placed[0].speedup is not None
    assert math.isclose(placed[0].speedup.value, 1.4, rel_tol=1e-6)


def test_a_solver_without_times_comes_after_one_with_times():
    placed = rank([entry("untimed", range(10), None), entry("timed", range(10), 0.2)], TASKS)
    assert [p.key for p in placed] == ["timed", "untimed"]
    assert placed[1].speedup is None
    assert placed[1].timed == 0


def test_who_solved_nothing_is_last_with_no_speedup():
    placed = rank([entry("none", range(0)), entry("one", range(1))], TASKS)
    assert [(p.key, p.solved) for p in placed] == [("one", 1), ("none", 0)]
    assert placed[1].speedup is None


def test_identical_results_share_rank_interval_and_group():
    placed = rank([entry("b", range(10)), entry("a", range(10))], TASKS)
    assert [(p.key, p.rank, p.group) for p in placed] == [("a", 1, 1), ("b", 1, 1)]
    assert {(p.rank_low, p.rank_high) for p in placed} == {(1, 1)}


def test_one_task_more_is_a_tie_and_twenty_more_are_not():
    close = rank([entry("a", range(21)), entry("b", range(19, 39), 1.0)], TASKS)
    assert {p.group for p in close} == {1}
    clear = rank([entry("a", range(39)), entry("b", range(10))], TASKS)
    assert [p.group for p in clear] == [1, 2]
    assert [(p.rank_low, p.rank_high) for p in clear] == [(1, 1), (2, 2)]


def test_a_subset_on_the_same_tasks_is_told_apart_better_than_other_tasks():
    """The draws are paired: who solves the same tasks and more is never behind."""
    nested = rank([entry("a", range(24)), entry("b", range(20))], TASKS)
    assert nested[0].rank_high == 1
    crossed = rank([entry("a", range(24)), entry("b", range(20, 40))], TASKS)
    assert crossed[0].rank_high == 2


def test_the_same_input_gives_the_same_intervals_in_any_order():
    entries = [entry("a", range(20), 1.3), entry("b", range(5, 26), 0.9), entry("c", range(12))]
    assert rank(entries, TASKS) == rank(entries[::-1], TASKS)


def test_a_single_task_is_as_uncertain_as_tasks_are():
    (placed,) = rank([entry("a", range(1), 2.0)], [0])
    assert (placed.rank_low, placed.rank_high) == (1, 1)
    assert str(placed.speedup) == "2.00 [0.514, 7.78]"  # 1.96 doublings either side


def test_few_tasks_take_the_spread_of_everybody():
    tasks = range(100)
    known = Entry("a", {task: 2.0 ** (task % 5 - 2) for task in tasks})
    few = Entry("b", {0: 1.0, 1: 1.0})
    many = Entry("c", dict.fromkeys(range(10), 1.0))
    placed = {one.key: one.speedup for one in rank([known, few, many], tasks)}
    spread = math.sqrt(200 / (99 + 1 + 9))  # squares of a: 4, 1, 0, 1, 4, twenty times over
    half = 2.0 * spread / math.sqrt(2)  # Student's quantile from 60 degrees of freedom on
    assert math.log2(placed["b"].high) == pytest.approx(half, rel=1e-3)
    assert math.log2(placed["b"].low) == pytest.approx(-half, rel=1e-3)
    assert placed["c"].high == pytest.approx(1.0, rel=1e-3), "ten tasks speak for themselves"


def test_without_any_task_nothing_breaks():
    (placed,) = rank([entry("a", range(0))], [])
    assert (placed.rank, placed.solved, placed.speedup) == (1, 0, None)


def test_a_golden_ranking():
    """Every rule at once: counts, means, a missing mean last, equals tied, nothing solved."""
    placed = rank(
        [
            entry("nothing", range(0)),
            entry("twin b", range(10, 30), 1.5),
            entry("most", range(31), 0.4),
            entry("untimed", range(20), None),
            entry("twin a", range(10, 30), 1.5),
            entry("slower", range(20), 1.2),
        ],
        TASKS,
    )
    assert [(p.rank, p.key, p.solved, p.timed, p.group) for p in placed] == [
        (1, "most", 31, 31, 1),
        (2, "twin a", 20, 20, 2),
        (2, "twin b", 20, 20, 2),
        (4, "slower", 20, 20, 2),
        (5, "untimed", 20, 0, 2),
        (6, "nothing", 0, 0, 3),
    ]
    assert [(p.rank_low, p.rank_high) for p in placed] == [
        (1, 1), (2, 4), (2, 4), (2, 4), (3, 5), (6, 6),
    ]  # fmt: skip


def test_a_chain_of_ties_ends_where_the_first_of_the_group_can_be_told_apart():
    """a overlaps b and b overlaps c, yet c is surely behind a: c begins a group of its own."""
    placed = rank(
        [entry("a", range(34)), entry("b", range(2, 34)), entry("c", range(5, 34))], TASKS
    )
    assert [(p.key, p.rank_low, p.rank_high, p.group) for p in placed] == [
        ("a", 1, 1, 1), ("b", 1, 2, 1), ("c", 2, 3, 2),
    ]  # fmt: skip


def test_equal_counts_and_means_from_other_tasks_share_the_rank_but_not_the_certainty():
    placed = rank([entry("a", range(10), 2.0), entry("b", range(10, 20), 2.0)], TASKS)
    assert [(p.rank, p.rank_low, p.rank_high) for p in placed] == [(1, 1, 2), (1, 1, 2)]


def test_no_speedup_is_too_small_or_too_large_to_rank():
    placed = rank([entry("tiny", range(5), 1e-300), entry("huge", range(5), 1e300)], TASKS)
    assert [p.key for p in placed] == ["huge", "tiny"]


def test_more_tasks_than_can_be_summed_exactly_are_refused():
    with pytest.raises(ValueError, match="at most 65535"):
        rank([entry("a", range(1))], range(65536))


@pytest.mark.parametrize("speedup", [2.0**64, 2.0**-64, 1.5])
def test_the_largest_sums_stay_exact(speedup):
    """Every task solved at the largest and the smallest speedup, beside an empty entry."""
    full, empty = rank(
        [entry("full", range(60_000), speedup), entry("none", range(0))], range(60_000), draws=2
    )
    assert (full.key, full.solved, full.timed) == ("full", 60_000, 60_000)
    assert math.isclose(
        full.speedup.value, speedup, rel_tol=2e-3
    )  # 16 bits of tasks leave 9 of log2
    assert (empty.solved, empty.speedup) == (0, None)


@pytest.mark.parametrize("size", [1, 3, 176])
def test_each_draw_takes_as_many_tasks_as_there_are_and_all_alike(size):
    counts = resamplings(size, 400)
    assert counts.shape == (400, size)
    assert set(counts.sum(axis=1)) == {size}
    assert all(abs(mean - 1) < 0.25 for mean in counts.mean(axis=0)), "none is preferred"


@given(st.lists(st.lists(st.integers(0, 9), min_size=5, max_size=5), min_size=1, max_size=4))
def test_ranks_count_who_is_better(rows):
    expected = [[1 + sum(other > key for other in keys) for key in keys] for keys in rows]
    assert competition_ranks(numpy().array(rows, dtype=float)).tolist() == expected


ratios = st.floats(min_value=1e-6, max_value=1e6)
solutions = st.dictionaries(st.integers(0, 11), st.one_of(st.none(), ratios))


@settings(max_examples=60, deadline=None)
@given(st.lists(solutions, min_size=1, max_size=6))
def test_sums_agree_with_plain_arithmetic(solved):
    """Arrays are only a fast way of adding: counts are exact, means nearly."""
    entries = [Entry(str(i), found) for i, found in enumerate(solved)]
    for placed in rank(entries, range(12), draws=20):
        found = solved[int(placed.key)]
        timed = [ratio for ratio in found.values() if ratio is not None]
        assert placed.solved == len(found)
        assert placed.timed == len(timed)
        assert placed.rank_low <= placed.rank <= placed.rank_high
        if timed:
            assert math.isclose(placed.speedup.value, geometric_mean(timed), rel_tol=1e-5)
            assert placed.speedup.low <= placed.speedup.value <= placed.speedup.high
        else:
            assert placed.speedup is None


@settings(max_examples=60, deadline=None)
@given(st.lists(solutions, max_size=6), st.integers(1, 12))
def test_intervals_alone_are_those_of_the_ranking(solved, tasks):
    """Also where an entry solved what isn't in the selection."""
    entries = [Entry(str(i), found) for i, found in enumerate(solved)]
    ranked = {placed.key: placed.speedup for placed in rank(entries, range(tasks))}
    assert speedup_intervals(entries, range(tasks)) == [ranked[one.key] for one in entries]
