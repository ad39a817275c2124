"""Selectors: what counts, what is hidden, and how many queries it takes."""

import pytest
from django.contrib.auth.models import AnonymousUser, User
from hypothesis import given
from hypothesis import strategies as st

from benchmark import vocabulary
from benchmark.models import Audit, CountingRun
from leaderboard import summaries
from leaderboard.figures import Interval
from leaderboard.filters import read_choice
from leaderboard.rows import COUNTED, REJECTED, STALE, SUSPECT, Funnel, Result
from leaderboard.selectors import board as boards
from leaderboard.selectors import methods, runs, tasks


def board(**asked):
    choice = read_choice(asked, boards.gpus())
    return summaries.board(boards.board_data(choice))


def names(found):
    return [standing.method.slug for standing in found.standings]


def reasons(found):
    return {entry.method.slug: entry.reason for entry in found.unranked}


def test_the_default_gpu_times_and_has_results(site):
    assert [gpu.slug for gpu in boards.gpus()] == ["h200", "cpu-interpreter"]


def test_a_gpu_without_results_is_shown_while_it_judges(site, make):
    make.gpu("b200")
    assert [gpu.slug for gpu in boards.gpus()][-1] == "b200"


def test_the_board_counts_each_stage(site):
    first, second = board().standings
    assert first.method.slug == "alpha"
    assert (first.funnel.judged, first.funnel.correct, first.funnel.faster) == (2, 2, 2)
    assert (second.funnel.loaded, second.funnel.called, second.funnel.correct) == (1, 1, 0)
    assert second.speedup is None


def test_the_interpreter_never_shows_a_speedup(site, make):
    make.run(site.beta, site.add, site.cpu, speedup=5.0)
    for standing in board(gpu="cpu-interpreter").standings:
        assert standing.speedup is None
        assert standing.funnel.faster is None


def test_what_the_interpreter_cannot_judge_is_in_no_denominator(site, make):
    make.task("bf16", interpretable=False)
    assert board().tasks == 4
    assert board(gpu="cpu-interpreter").tasks == 3


@pytest.mark.parametrize(
    ("asked", "tasks"),
    [({"category": "math"}, 1), ({"dtype": "float16"}, 1), ({"difficulty": "3"}, 1), ({}, 3)],
)
def test_filters_narrow_the_tasks(site, asked, tasks):
    assert board(**asked).tasks == tasks


def test_who_was_not_judged_here_is_unranked_with_a_reason(site):
    found = board(gpu="cpu-interpreter")
    assert names(found) == ["alpha"]
    assert "nothing measured here on CPU interpreter" in reasons(found)["beta"]


def test_stale_results_do_not_count(site, make):
    gamma = make.submission(make.method("gamma"))
    make.run(gamma, site.relu, site.h200, speedup=9.0, task_digest="0" * 64)
    found = board()
    assert "gamma" not in names(found)
    assert "earlier version" in reasons(found)["gamma"]


def test_suspect_results_are_held_back_until_an_audit_clears_them(site, make):
    gamma = make.submission(make.method("gamma"))
    run = make.run(gamma, site.relu, site.h200, speedup=900.0, is_suspect=True)
    assert "held back" in reasons(board())["gamma"]
    Audit.objects.create(run=run, verdict=vocabulary.CLEAN, reason="looked at the kernel")
    assert "gamma" in names(board())
    Audit.objects.create(run=run, verdict=vocabulary.CHEAT, reason="returns a cached output")
    gamma_row = next(s for s in board().standings if s.method.slug == "gamma")
    assert (gamma_row.funnel.judged, gamma_row.funnel.correct) == (1, 0)


def test_a_newer_run_replaces_an_older_one_even_when_it_is_worse(site, make):
    make.run(site.alpha, site.relu, site.h200, verdict=vocabulary.TIMEOUT, stage="call")
    assert board().standings[0].funnel.correct == 1


def test_a_later_round_counts_and_an_earlier_one_can_be_asked_for(site, make):
    make.run(site.beta, site.relu, site.h200, speedup=1.2, round=1)
    beta = next(s for s in board().standings if s.method.slug == "beta")
    assert beta.funnel.correct == 1
    beta = next(s for s in board(round="0").standings if s.method.slug == "beta")
    assert beta.funnel.correct == 0


def test_lanes_are_never_mixed(site, make):
    make.run(site.beta, site.add, site.h200, speedup=99.0, origin=vocabulary.CLAIMED)
    assert board().standings[0].method.slug == "alpha"
    assert names(board(lane="claimed")) == ["beta"]
    assert names(board(lane="published")) == []


def test_heat_map_cells_tell_failed_missing_and_impossible_apart(site):
    data = boards.board_data(read_choice({}, boards.gpus()))
    heat = summaries.heatmap(data, [s.method for s in summaries.board(data).standings])
    alpha, beta = (
        dict(zip([c.slug for c in heat.categories], r.cells, strict=True)) for r in heat.rows
    )
    assert (alpha["activation"].correct, alpha["activation"].tasks) == (2, 2)
    assert (beta["activation"].state, beta["activation"].correct) == ("counted", 0)
    assert beta["math"].state == "not-attempted"
    assert beta["pooling"].state == "not-applicable"


def test_spreads_add_up_to_all_tasks(site):
    data = boards.board_data(read_choice({}, boards.gpus()))
    for spread in summaries.spreads(data, data.methods):
        ended = len(spread.speedups) + spread.untimed + sum(spread.failures.values())
        assert ended + spread.missing == spread.tasks == 3


def test_held_back_runs_show_no_speedup_in_the_latest_runs(site, make):
    make.run(site.beta, site.add, site.h200, speedup=900.0, is_suspect=True)
    line = boards.latest_runs(1)[0]
    assert (line.word, line.speedup) == ("suspect", None)


def seen(run, user=None):
    """The run's page as this user, or a visitor, gets it."""
    seen_by = runs.access(run.uuid, user or AnonymousUser())
    return seen_by and runs.run_page(run.uuid, seen_by)


def test_private_and_withdrawn_submissions_are_in_no_list(site, make):
    hidden = make.submission(make.method("hidden"), visibility=vocabulary.PRIVATE)
    run = make.run(hidden, site.relu, site.h200, speedup=3.0)
    assert "hidden" not in names(board()) + list(reasons(board()))
    assert run.uuid not in {line.uuid for line in boards.latest_runs(50)}
    assert "hidden" not in {row.method.slug for row in tasks.matrix(site.relu.pk, boards.gpus())}
    assert methods.card("hidden", AnonymousUser()) is None
    assert runs.access(run.uuid, AnonymousUser()) is None
    assert runs.run_source(run.uuid, AnonymousUser()) is None


def test_an_owner_sees_what_is_private(site, make):
    owner = User.objects.create_user("owner")
    hidden = make.submission(
        make.method("hidden"), visibility=vocabulary.PRIVATE, submitted_by=owner
    )
    run = make.run(hidden, site.relu, site.h200, speedup=3.0)
    assert methods.card("hidden", owner).method.slug == "hidden"
    assert seen(run, owner).verdict == "passed"


def test_an_unlisted_run_is_found_by_its_link_and_in_no_list(site, make):
    quiet = make.submission(make.method("quiet"), visibility=vocabulary.UNLISTED)
    run = make.run(quiet, site.relu, site.h200, speedup=3.0)
    assert seen(run) is not None
    assert methods.card("quiet", AnonymousUser()) is None
    assert "quiet" not in names(board())


def test_a_method_shows_each_gpu_and_its_failures(site):
    card = methods.card("beta", AnonymousUser())
    (on_h200,), rounds = methods.on_gpus(card.method, boards.gpus())
    assert on_h200.failures == {"wrong-values": 1}
    assert rounds == ()


def test_rounds_are_shown_where_there_are_several(site, make):
    make.run(site.beta, site.relu, site.h200, speedup=1.2, round=1)
    card = methods.card("beta", AnonymousUser())
    _, rounds = methods.on_gpus(card.method, boards.gpus())
    assert [(row.round, row.correct) for row in rounds] == [(0, 0), (1, 1)]


def test_best_runs_are_fastest_first_and_trusted(site, make):
    make.run(site.beta, site.relu, site.h200, speedup=3.0, round=1)
    make.run(site.beta, site.relu, site.h200, speedup=900.0, round=2, is_suspect=True)
    assert [line.speedup.value for line in tasks.best_runs(site.relu.pk)] == [3.0, 2.0]


def test_the_environment_is_flat_for_reading(site, make):
    facts = {"board": {"clocks": {"sm": 1980}, "locked": True}, "stages": ["load", "call"]}
    run = make.run(site.beta, site.add, site.h200, environment=facts)
    assert seen(run).environment == (
        ("board clocks sm", 1980),
        ("board locked", "yes"),
        ("stages", "load, call"),
    )


def test_queries_do_not_grow_with_rows(site, make, django_assert_num_queries):
    for i in range(5):
        other = make.submission(make.method(f"m{i}"), f"set {i}")
        make.run(other, site.relu, site.h200, speedup=1.0 + i)
    gpus = boards.gpus()
    choice = read_choice({}, gpus)
    with django_assert_num_queries(2):
        boards.gpus()
    with django_assert_num_queries(3):
        boards.board_data(choice)
    with django_assert_num_queries(1):
        boards.latest_runs(10)
    with django_assert_num_queries(6):
        seen(site.fast)
    with django_assert_num_queries(2):
        tasks.contract("relu")
    with django_assert_num_queries(2):
        tasks.best_runs(site.relu.pk)
    with django_assert_num_queries(3):
        methods.card("alpha", AnonymousUser())
    card = methods.card("alpha", AnonymousUser())
    with django_assert_num_queries(3):
        methods.on_gpus(card.method, gpus)
    with django_assert_num_queries(3):
        tasks.matrix(site.relu.pk, gpus)


@pytest.mark.parametrize("audit", ["", *vocabulary.AUDIT_VERDICTS])
@pytest.mark.parametrize("is_suspect", [False, True])
@pytest.mark.parametrize("digest", ["now", "before"])
def test_the_database_tells_states_as_pages_do(site, audit, is_suspect, digest):
    row = CountingRun.objects.filter(run=site.fast)
    stale = {} if digest == "now" else {"task_digest": "0" * 64}
    row.update(audit=audit, is_suspect=is_suspect, **stale)
    state = boards.state_of(not stale, is_suspect, audit or None)
    assert row.filter(boards.COUNTS).exists() == (state == COUNTED)
    assert row.filter(boards.JUDGED).exists() == (state in (COUNTED, REJECTED))


def test_rounds_are_added_up_by_the_database_as_in_python(site, make):
    for number, speedup in ((1, 4.0), (2, 1.0)):
        make.run(site.alpha, site.relu, site.h200, speedup=speedup, round=number)
    make.run(site.alpha, site.gelu, site.h200, speedup=9.0, round=1)
    Audit.objects.create(
        run=make.run(site.alpha, site.add, site.h200, speedup=9.0, round=1),
        verdict=vocabulary.CHEAT,
        reason="a constant",
    )
    _, rows = methods.on_gpus(boards.method_row(site.alpha.method), boards.gpus())
    assert [(r.round, r.judged, r.correct, r.timed) for r in rows] == [
        (0, 2, 2, 2), (1, 3, 2, 2), (2, 1, 1, 1),
    ]  # fmt: skip
    assert [r.geometric_mean for r in rows] == pytest.approx([3**0.5, 6.0, 1.0])


@given(
    st.lists(
        st.builds(
            lambda *facts: Result(1, 2, 0, "key", *facts),
            st.sampled_from([vocabulary.PASSED, *vocabulary.VERDICTS]),
            st.sampled_from(vocabulary.STAGES),
            st.sampled_from([None, Interval(1.0, 0.9, 1.1), Interval(2.0, 1.9, 2.1)]),
            st.sampled_from([COUNTED, COUNTED, REJECTED, SUSPECT, STALE]),
        )
    )
)
def test_a_funnel_by_kinds_is_that_of_one_result_after_another(results):
    judged = [one for one in results if one.is_judged]
    assert summaries.funnel(results, 40, can_time=True) == Funnel(
        tasks=40,
        judged=len(judged),
        loaded=sum(one.reached("load") for one in judged),
        called=sum(one.reached("call") for one in judged),
        correct=sum(one.is_solved for one in judged),
        faster=sum(one.word == "fast" for one in judged),
    )
