"""Synthetic data: named so, never beside real results on one GPU, consistent, and removable."""

import math
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from benchmark import aggregates, seeding
from benchmark.models import (
    Candidate,
    CountingRun,
    Gpu,
    Measurement,
    Method,
    Run,
    RunTally,
    Source,
    Submission,
    Task,
)

SMALL = ("--methods", "3", "--gpus", "2", "--rounds", "2")
DIGEST = "d" * 64


def case(name: str, kind: str) -> dict[str, str]:
    return {"name": name, "kind": kind, "shape": "n=3", "dtype": "float32", "family": "normal"}


@pytest.fixture
def tasks(db: None) -> list[Task]:
    cases = [case("small", "small"), case("large", "timed"), case("half", "timed")]
    return [
        Task.objects.create(
            slug=f"task{at}", category="math", difficulty=1, digest=DIGEST, cases=cases
        )
        for at in range(12)
    ]


@pytest.fixture
def real(tasks: list[Task]) -> Run:
    gpu = Gpu.objects.create(slug="h200", name="H200")
    submission = Submission.objects.create(
        method=Method.objects.create(slug="real", name="Real"), label="first"
    )
    source = Source.objects.create(sha256="0" * 64, text="x", size=1)
    candidate = Candidate.objects.create(submission=submission, task=tasks[0], source=source)
    run = Run.objects.create(
        candidate=candidate, gpu=gpu, task_digest=DIGEST, judge_version="1", verdict="passed",
        stage="time",
    )  # fmt: skip
    aggregates.refresh_run(run)
    return run


def seed(*more: str) -> None:
    call_command("seed", *SMALL, *more)


def test_everything_asked_for_is_there_and_says_what_it_is(tasks: list[Task]) -> None:
    seed()
    assert Run.objects.count() == 3 * 2 * 2 * 12
    assert Measurement.objects.count() == 3 * Run.objects.count()
    assert {method.organisation for method in Method.objects.all()} == {seeding.ORGANISATION}
    for names in (Method.objects, Gpu.objects):
        assert all("Synthetic" in name for name in names.values_list("name", flat=True))
    assert set(Run.objects.values_list("judge_version", flat=True)) == {"synthetic"}


def test_the_derived_tables_agree(tasks: list[Task]) -> None:
    seed()
    for method in Method.objects.all():
        assert not aggregates.compare(method)
    assert CountingRun.objects.filter(is_final=True).count() == 3 * 2 * 12


def test_results_are_plausible(tasks: list[Task]) -> None:
    """Some pass and some fail, and a run's speedup follows from its cases as its page says."""
    seed()
    passed = Run.objects.passed()
    assert 0 < passed.count() < Run.objects.count()
    for run in passed[:20]:
        times = run.measurements.filter(kind="timed")
        logs = [math.log(m.reference_ms / m.candidate_ms) for m in times]
        assert math.isclose(math.exp(math.fsum(logs) / 2), run.speedup, rel_tol=1e-4)
    failed = Run.objects.exclude(verdict="passed").first()
    assert failed.speedup is None
    assert failed.measurements.filter(state="failed").count() == 1


def test_costs_stand_beside_times_and_a_made_up_roof(tasks: list[Task]) -> None:
    """Or a seeded site had no roofline to look at."""
    seed()
    timed = Measurement.objects.filter(candidate_ms__isnull=False)
    assert timed.count() == timed.filter(bytes__gt=0, flops__gt=0).count() > 0
    for case in timed.select_related("run__gpu")[:50]:
        gpu = case.run.gpu
        least = max(case.bytes / gpu.peak_bandwidth, case.flops / gpu.peak_flops[case.dtype])
        assert 0 < 1e3 * least / case.reference_ms < 1
    untimed = Measurement.objects.filter(candidate_ms__isnull=True)
    assert not untimed.exclude(bytes=None, flops=None).exists()


def test_seeding_is_repeatable(tasks: list[Task]) -> None:
    seed()
    before = list(Run.objects.order_by("id").values_list("verdict", "speedup"))
    call_command("seed", "--remove")
    seed()
    assert list(Run.objects.order_by("id").values_list("verdict", "speedup")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((), "1 real submissions"), (("--methods", "0"), "number from 1"), (("--gpus", "x"), "1 to")],
)
def test_what_it_refuses(real: Run, arguments: Any, said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("seed", *arguments)
    assert Run.objects.get() == real


def test_it_needs_tasks(db: None) -> None:
    with pytest.raises(CommandError, match="sync_tasks"):
        seed()


def test_it_seeds_once(tasks: list[Task]) -> None:
    seed()
    with pytest.raises(CommandError, match="--remove"):
        seed("--force")


def test_by_force_it_stands_beside_real_results_and_never_on_their_gpu(real: Run) -> None:
    seed("--force")
    on_real = Run.objects.filter(gpu=real.gpu)
    assert list(on_real) == [real]


def test_removing_leaves_what_is_real(real: Run) -> None:
    tally = RunTally.objects.get()
    seed("--force")
    call_command("seed", "--remove")
    assert Run.objects.get() == real
    assert CountingRun.objects.get().run == real
    assert RunTally.objects.get() == tally
    assert Method.objects.get().slug == "real"
    assert Gpu.objects.get() == real.gpu
