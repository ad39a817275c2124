"""Derived tables: whatever happens in whatever order, they say what the facts say."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import pairwise

import pytest
from django.core.management import CommandError, call_command
from django.db.models import QuerySet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmark import aggregates, vocabulary
from benchmark.models import (
    Audit,
    Board,
    Candidate,
    CountingRun,
    Gpu,
    Method,
    Run,
    RunTally,
    Submission,
    Task,
)
from leaderboard.filters import Choice
from leaderboard.selectors import board as boards
from leaderboard.selectors import methods, tasks

ROUNDS = (0, 1, 2)
STATES = {
    None: "counted",
    vocabulary.CLEAN: "counted",
    vocabulary.SUSPECT: "suspect",
    vocabulary.HELD: "held",
    vocabulary.CHEAT: "rejected",
}
TAKEN_OUT = (vocabulary.JUDGE_BUG, vocabulary.WITHDRAWN)

small = st.integers(0, 3)
events = st.one_of(
    st.tuples(
        st.just("run"), small, small, small, st.sampled_from(ROUNDS),
        st.sampled_from(["measured", "measured", "claimed"]),
        st.sampled_from(["passed", "passed", "suspect", "stale", "timeout"]),
    ),
    st.tuples(st.just("audit"), st.integers(0, 30), st.sampled_from([*vocabulary.AUDIT_VERDICTS])),
    st.tuples(st.just("show"), small, st.sampled_from([*vocabulary.VISIBILITIES])),
    st.tuples(st.just("withdraw"), small),
    st.tuples(st.just("change task"), small),
    st.tuples(st.just("retire task"), small),
)  # fmt: skip


@pytest.fixture
def world(db, make):
    """Two methods with two submissions each, three GPUs, four tasks."""
    gpus = [make.gpu("h200"), make.gpu("b200"), make.interpreter()]
    on = [make.task(slug) for slug in ("relu", "gelu", "silu", "mish")]
    alpha, beta = make.method("alpha"), make.method("beta")
    of = [make.submission(m, label) for label in ("first", "second") for m in (alpha, beta)]
    return make, gpus, on, of


def happen(world, event: tuple) -> None:
    """What an event does, with the word to the aggregates that the product says then."""
    make, gpus, on, of = world
    match event:
        case ("run", i, j, k, round, origin, outcome):
            task = Task.objects.get(pk=on[j].pk)
            extra = {"is_suspect": outcome == "suspect"}
            if outcome == "stale":
                extra["task_digest"] = "0" * 64
            if outcome == "timeout":
                extra |= {"verdict": "timeout", "stage": "call"}
            speedup = None if outcome == "timeout" else 1.0 + j
            make.run(of[i], task, gpus[k % 3], speedup, round, origin=origin, **extra)
        case ("audit", at, verdict):
            runs = Run.objects.order_by("id")
            if runs:
                Audit.objects.create(run=runs[at % len(runs)], verdict=verdict, reason="seen")
        case ("show", i, visibility):
            of[i].visibility = visibility
            of[i].save()
            aggregates.refresh_submission(of[i])
        case ("withdraw", i):
            from runner.submitting import withdraw

            withdraw(of[i])
        case ("change task", j):
            Task.objects.filter(pk=on[j].pk).update(digest=make.digest(f"{on[j].slug} anew"))
        case ("retire task", j):
            Task.objects.filter(pk=on[j].pk).update(retired_at=make.START)


def facts(gpu: Gpu, origin: str, round: int | None) -> dict[tuple[int, int], tuple]:
    """The slow path: all runs in Python, the newest last, so that it is what stays."""
    runs = Run.objects.filter(gpu=gpu, origin=origin).select_related("candidate__submission")
    found = {}
    for run in sorted(runs, key=age):
        candidate, submission = run.candidate, run.candidate.submission
        audit = max(run.audits.all(), key=lambda a: (a.created_at, a.pk), default=None)
        listed = submission.visibility == "public" and submission.withdrawn_at is None
        if not listed or (audit and audit.verdict in TAKEN_OUT):
            continue
        if round is not None and candidate.round != round:
            continue
        task = candidate.task
        if task.retired_at is None and (gpu.can_time or task.interpretable):
            found[submission.method_id, task.pk] = (run.uuid, state(run, task, audit))
    return found


def age(run: Run) -> tuple:
    submission = run.candidate.submission
    return (submission.created_at, submission.pk, run.candidate.round, run.created_at, run.pk)


def state(run: Run, task: Task, audit: Audit | None) -> str:
    if run.task_digest != task.digest:
        return "stale"
    return STATES[audit.verdict] if audit else "suspect" if run.is_suspect else "counted"


def shown(choice: Choice) -> dict[tuple[int, int], tuple]:
    results = boards.board_data(choice).results
    return {place: (result.run, result.state) for place, result in results.items()}


def choices() -> Iterable[tuple[Gpu, Choice]]:
    rows = {row.id: row for row in boards.gpus()}
    for gpu in Gpu.objects.all():
        for origin in vocabulary.ORIGINS:
            for round in (None, *ROUNDS):
                yield gpu, Choice(rows[gpu.pk], round=round, lane=origin)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(events, max_size=25))
def test_aggregates_say_what_the_facts_say(world, history):
    _, _, on, of = world
    Run.objects.all().delete()
    RunTally.objects.all().delete()
    Candidate.objects.all().delete()
    Submission.objects.update(visibility="public", withdrawn_at=None)
    for submission in of:
        submission.refresh_from_db()
    for task in on:
        Task.objects.filter(pk=task.pk).update(digest=task.digest, retired_at=None)
    for event in history:
        happen(world, event)
    for gpu, choice in choices():
        assert shown(choice) == facts(gpu, choice.lane, choice.round), choice
    for method in Method.objects.all():
        assert not aggregates.compare(method), method
    tally_is_of_listed_runs()
    pages_agree(on)


def tally_is_of_listed_runs() -> None:
    for row in boards.gpus():
        assert row.runs == Run.objects.listed().filter(gpu=row.id).count()


def pages_agree(on: list[Task]) -> None:
    """A method's page and a task's matrix are of the same runs as the board."""
    gpus = boards.gpus()
    final = {gpu.pk: facts(gpu, "measured", None) for gpu in Gpu.objects.all()}
    for method in Method.objects.all():
        summaries, _ = methods.on_gpus(boards.method_row(method), gpus)
        for summary in summaries:
            mine = [s for (m, _), (_, s) in final[summary.gpu.id].items() if m == method.pk]
            assert summary.stale == mine.count("stale")
            assert summary.funnel.judged == mine.count("counted") + mine.count("rejected")
    for task in Task.objects.current():
        for row in tasks.matrix(task.pk, gpus):
            for gpu, result in zip(gpus, row.results, strict=True):
                expected = final[gpu.id].get((row.method.id, task.pk))
                assert (result and (result.run, result.state)) == expected


def test_an_older_round_of_a_newer_submission_is_what_the_methods_page_counts_too(site, make):
    """The newest submission first, then its last round: on every page."""
    make.run(site.alpha, site.add, site.h200, speedup=4.0, round=2)
    newer = make.submission(site.alpha.method, "newer")
    make.run(newer, site.add, site.h200, verdict="timeout", stage="call", round=0)
    (on_h200, _), _ = methods.on_gpus(boards.method_row(site.alpha.method), boards.gpus())
    assert on_h200.failures == {"timeout": 1}


def test_check_reports_drift_and_rebuild_mends_it(site, capsys):
    call_command("rebuild_aggregates", "--check")
    CountingRun.objects.filter(run=site.fast).delete()
    CountingRun.objects.filter(run=site.failed).update(verdict="passed")
    RunTally.objects.all().delete()
    with pytest.raises(CommandError, match="missing"):
        call_command("rebuild_aggregates", "--check")
    assert not CountingRun.objects.filter(run=site.fast).exists()
    generation = Board.current()
    call_command("rebuild_aggregates")
    assert Board.current() > generation
    call_command("rebuild_aggregates", "--check")
    capsys.readouterr()


def test_a_rebuild_of_what_is_right_changes_nothing(site, capsys):
    generation = Board.current()
    call_command("rebuild_aggregates")
    assert Board.current() == generation
    assert "0 missing, 0 left over, 0 different" in capsys.readouterr().out


def test_a_row_left_behind_shows_nothing_private(site):
    """Hidden behind the aggregates' back: the page asks for the submission itself."""
    Submission.objects.filter(pk=site.alpha.pk).update(visibility=vocabulary.PRIVATE)
    assert CountingRun.objects.filter(submission=site.alpha).exists()
    for gpu, choice in choices():
        assert (site.alpha.method_id, site.relu.pk) not in shown(choice), gpu
    assert boards.gpus()[0].runs == 1
    row = boards.method_row(site.alpha.method)
    assert methods.on_gpus(row, boards.gpus()) == ((), ())


def test_a_boards_date_grows_by_a_second_each_time(db):
    dates = []
    for _ in range(3):
        Board.bump()
        dates.append(Board.seen().changed_at)
    assert all(later - sooner >= timedelta(seconds=1) for sooner, later in pairwise(dates))


def test_deleting_a_run_takes_its_row_along(site):
    QuerySet(Run).filter(pk=site.fast.pk).delete()
    assert not CountingRun.objects.filter(uuid=site.fast.uuid).exists()
