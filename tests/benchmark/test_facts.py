"""Runs and audits are written once; the board's generation moves when what it shows does."""

import pytest
from django.db import transaction

from benchmark.models import (
    Audit,
    Board,
    Candidate,
    Gpu,
    Immutable,
    Method,
    Run,
    Source,
    Submission,
    Task,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    task = Task.objects.create(slug="relu", category="math", difficulty=1, digest="0" * 64)
    submission = Submission.objects.create(method=Method.objects.create(slug="m"), label="a")
    source = Source.objects.create(sha256="1" * 64, text="x", size=1)
    candidate = Candidate.objects.create(submission=submission, task=task, source=source)
    gpu = Gpu.objects.create(slug="h200", name="H200")
    return Run.objects.create(
        candidate=candidate, gpu=gpu, task_digest="0" * 64, verdict="passed", stage="time"
    )


def test_a_run_is_not_saved_twice(run: Run) -> None:
    run.verdict = "crashed"
    with pytest.raises(Immutable, match="judge again"):
        run.save()
    assert Run.objects.get().verdict == "passed"


def test_runs_are_not_updated_in_bulk(run: Run) -> None:
    with pytest.raises(Immutable):
        Run.objects.filter(pk=run.pk).update(verdict="crashed")
    with pytest.raises(Immutable), transaction.atomic():
        Run.objects.bulk_update([run], ["verdict"])
    assert Run.objects.get().verdict == "passed"


def test_an_audit_is_appended_and_never_rewritten(run: Run) -> None:
    audit = Audit.objects.create(run=run, verdict="suspect", reason="too fast")
    audit.reason = "never mind"
    with pytest.raises(Immutable):
        audit.save()
    Audit.objects.create(run=run, verdict="clean", reason="looked at")
    assert list(Run.objects.trusted()) == [run]


def test_an_audit_moves_the_board_on(run: Run) -> None:
    before = Board.current()
    Audit.objects.create(run=run, verdict="cheat", reason="a library did it")
    assert Board.current() == before + 1


def test_generations_count_from_an_empty_database() -> None:
    assert Board.current() == 0
    Board.bump()
    Board.bump()
    assert Board.current() == 2
