"""New records are held: a new first place, or twice the former best; and nothing else is."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
from django.test import Client

from benchmark import aggregates, curation, records, vocabulary
from benchmark.models import Audit, Board, CountingRun, Method, Run
from leaderboard import kept
from leaderboard.filters import Choice
from leaderboard.selectors import board as boards

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget() -> None:
    kept.forget()


@pytest.fixture
def site(make: Any) -> SimpleNamespace:
    """alpha leads on an H200: 2.0x on four tasks, where beta has 1.5x on three."""
    h200 = make.gpu()
    tasks = [make.task(name) for name in ("relu", "gelu", "silu", "mish")]
    alpha, beta = make.submission(make.method("alpha")), make.submission(make.method("beta"))
    for task in tasks:
        make.run(alpha, task, h200, speedup=2.0)
    for task in tasks[:3]:
        make.run(beta, task, h200, speedup=1.5)
    return SimpleNamespace(h200=h200, tasks=tasks, alpha=alpha, beta=beta)


def land(make: Any, of: Any, on: Any, where: Any, speedup: float | None, **fields: Any) -> Run:
    """A run as recording stores it: former, derived tables, hold."""
    if speedup is not None:
        fields |= {
            "speedup": speedup, "speedup_low": speedup * 0.9, "speedup_high": speedup * 1.1,
        }  # fmt: skip
    facts = {"verdict": "passed", "stage": "time", "task_digest": on.digest, "judge_version": "1"}
    run = Run.objects.create(
        candidate=make.candidate(of, on, fields.pop("round", 0)), gpu=where, **facts | fields
    )
    Board.bump()
    former = records.former(run)
    aggregates.refresh_run(run)
    records.hold(run, former)
    return run


def held(run: Run) -> str:
    audit = run.audits.first()
    return audit.reason if audit and audit.verdict == vocabulary.HELD else ""


def first_on(gpu: Any) -> str:
    row = next(g for g in boards.gpus() if g.id == gpu.pk)
    _, board = kept.board(Board.current(), Choice(gpu=row))
    return board.leader.method.slug if board.leader else ""


@pytest.mark.parametrize(("speedup", "is_held"), [(3.9, False), (4.0, True), (40.0, True)])
def test_twice_the_former_best_is_held(make: Any, site: Any, speedup: float, is_held: bool) -> None:
    run = land(make, site.beta, site.tasks[0], site.h200, speedup, round=1)
    reason = held(run)
    assert bool(reason) == is_held
    if is_held:
        assert f"{speedup:.3g}x" in reason
        assert "former best is 2x" in reason
        assert "relu, H200" in reason


def test_a_held_run_is_shown_not_ranked_until_it_is_clean(
    make: Any, site: Any, client: Client
) -> None:
    run = land(make, site.beta, site.tasks[0], site.h200, 40.0, round=1)
    page = client.get(run.get_absolute_url()).content.decode()
    assert "Held for review" in page
    assert "former best" in page
    assert "40.0x" not in client.get("/tasks/relu/").content.decode()
    held_row = CountingRun.objects.get(run=run)
    assert (held_row.audit, held_row.is_final) == ("held", True)
    assert not any(aggregates.compare(method) for method in Method.objects.all())
    curation.review([run], None, "clean", "profiled: it does the work")
    assert "40.0x" in client.get("/tasks/relu/").content.decode()


def test_a_new_first_place_is_held_and_the_former_first_stays(make: Any, site: Any) -> None:
    land(make, site.beta, site.tasks[3], site.h200, 2.2, round=0)  # four solved, slower by mean
    assert first_on(site.h200) == "alpha"
    for task in site.tasks:
        land(make, site.beta, task, site.h200, 3.9, round=1)
    assert first_on(site.h200) == "alpha"
    overtaking = [r for r in Run.objects.filter(candidate__submission=site.beta) if held(r)]
    assert overtaking
    assert all("New first place on H200" in held(r) for r in overtaking)
    curation.review(overtaking, None, "clean", "looked at")
    assert first_on(site.h200) == "beta"
    assert not held(land(make, site.beta, site.tasks[0], site.h200, 3.95, round=2))


def test_a_record_of_ones_own_that_was_cleared_is_not_held_when_judged_again(
    make: Any, site: Any
) -> None:
    run = land(make, site.alpha, site.tasks[0], site.h200, 9.0, round=1)
    assert held(run)
    curation.review([run], None, "clean", "honest")
    assert not held(land(make, site.alpha, site.tasks[0], site.h200, 9.1, round=1))


def test_a_held_run_judged_again_is_held_again(make: Any, site: Any) -> None:
    for _ in range(2):
        assert held(land(make, site.alpha, site.tasks[0], site.h200, 9.0, round=1))


def test_a_private_record_is_held_as_well(make: Any, site: Any) -> None:
    hidden = make.submission(make.method("gamma"), visibility=vocabulary.PRIVATE)
    assert held(land(make, hidden, site.tasks[0], site.h200, 9.0))
    assert not held(land(make, hidden, site.tasks[1], site.h200, 3.0))


def test_first_by_becoming_public_is_held(make: Any, site: Any) -> None:
    hidden = make.submission(make.method("gamma"), visibility=vocabulary.PRIVATE)
    for task in site.tasks:
        assert not held(land(make, hidden, task, site.h200, 3.0))
    assert records.change_visibility(hidden, vocabulary.PUBLIC) == 4
    assert first_on(site.h200) == "alpha"
    assert records.change_visibility(hidden, vocabulary.PRIVATE) == 0
    curation.review(Run.objects.filter(candidate__submission=hidden), None, "clean", "ok")
    assert records.change_visibility(hidden, vocabulary.PUBLIC) == 0
    assert first_on(site.h200) == "gamma"


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "unstable"},
        {"is_suspect": True},
        {"origin": vocabulary.CLAIMED},
    ],
)
def test_what_does_not_rank_is_not_held(make: Any, site: Any, fields: dict[str, Any]) -> None:
    run = land(make, site.beta, site.tasks[0], site.h200, 40.0, round=1, **fields)
    assert not held(run)


def test_recorded_results_and_devices_without_times_are_exempt(make: Any, site: Any) -> None:
    ours = make.submission(make.method("ours"), recorded={"date": "2026-11-01"})
    assert not held(land(make, ours, site.tasks[0], site.h200, 40.0))
    cpu = make.interpreter()
    for task in site.tasks[:3]:
        assert not held(land(make, site.beta, task, cpu, None, stage="check"))
    for task in site.tasks:
        assert not held(land(make, site.alpha, task, cpu, None, stage="check"))


def test_nothing_is_a_record_where_nobody_was_before(make: Any) -> None:
    gpu, task, other = make.gpu(), make.task(), make.task("gelu")
    make.task("silu")
    first, second = make.submission(make.method("a")), make.submission(make.method("b"))
    assert not held(land(make, first, task, gpu, 90.0))
    assert not held(land(make, second, other, gpu, 90.0))


def test_a_board_that_is_being_filled_has_no_first_place(make: Any) -> None:
    gpu, tasks = make.gpu(), [make.task(f"t{at}") for at in range(8)]
    first, second = make.submission(make.method("a")), make.submission(make.method("b"))
    for task in tasks[:3]:
        land(make, first, task, gpu, 1.2)
        land(make, second, task, gpu, 1.3)
    assert not Audit.objects.exists()


def test_first_is_who_the_board_ranks_first(make: Any) -> None:
    random.seed(6)
    gpu, tasks = make.gpu(), [make.task(f"t{at}") for at in range(6)]
    entries = [make.submission(make.method(f"m{at}")) for at in range(4)]
    for _ in range(12):
        for entry in entries:
            task = random.choice(tasks)
            verdict = random.choice(["passed", "passed", "wrong-values"])
            speed = random.choice([1.0, 1.5, 2.0]) if verdict == "passed" else None
            make.run(entry, task, gpu, speedup=speed, verdict=verdict)
        Board.bump()
        row = next(g for g in boards.gpus() if g.id == gpu.pk)
        _, board = kept.board(Board.current(), Choice(gpu=row))
        leaders = {s.method.id for s in board.standings if s.rank == 1 and s.funnel.correct}
        found = records.first(gpu).methods
        assert found in (leaders, frozenset())
    assert found == leaders


def test_asking_costs_a_bounded_number_of_queries(
    make: Any, site: Any, django_assert_max_num_queries: Any
) -> None:
    run = make.run(site.alpha, site.tasks[0], site.h200, speedup=2.0, round=1)
    with django_assert_max_num_queries(8):
        records.former(Run.objects.get(pk=run.pk))
