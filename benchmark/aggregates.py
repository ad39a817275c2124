"""Keeps the derived tables true: which run counts where, and how many runs there are.

Whoever writes a run, audits one, or changes who may see a submission says so here, in the same
transaction. A refresh reads the facts anew and writes what follows from them, so doing it twice
does no harm and nothing is added up. It takes the board's lock first: of two reports that land at
once the second waits, and then sees what the first has written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Count, F, QuerySet, Window
from django.db.models.functions import RowNumber

from benchmark import vocabulary
from benchmark.models import Audit, Board, CountingRun, Method, Run, RunTally, Submission

TAKEN_OUT = (vocabulary.JUDGE_BUG, vocabulary.WITHDRAWN)  # audits: an earlier run stands in
BATCH = 1000
# From the oldest to the newest of a method's runs on a task.
AGE = (
    "candidate__submission__created_at",
    "candidate__submission_id",
    "candidate__round",
    "created_at",
    "id",
)
PLACE = ("gpu_id", "origin", "candidate__submission__method_id", "candidate__task_id")
COPIED = {
    "run_id": "id",
    "uuid": "uuid",
    "submission_id": "candidate__submission_id",
    "method_id": "candidate__submission__method_id",
    "task_id": "candidate__task_id",
    "gpu_id": "gpu_id",
    "origin": "origin",
    "round": "candidate__round",
    "verdict": "verdict",
    "stage": "stage",
    "speedup": "speedup",
    "speedup_low": "speedup_low",
    "speedup_high": "speedup_high",
    "task_digest": "task_digest",
    "is_suspect": "is_suspect",
}
COLUMNS = (*COPIED, "is_final", "audit")


@dataclass(frozen=True, slots=True)
class Drift:
    """Rows of the derived tables that are missing, left over, or say something else."""

    missing: int = 0
    extra: int = 0
    different: int = 0

    def __add__(self, other: "Drift") -> "Drift":
        return Drift(
            self.missing + other.missing,
            self.extra + other.extra,
            self.different + other.different,
        )

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.different)

    def __str__(self) -> str:
        return f"{self.missing} missing, {self.extra} left over, {self.different} different"


@transaction.atomic
def refresh_run(run: Run) -> None:
    """After a run was recorded or audited: its place, and its submission's tally."""
    Board.lock()
    candidate = run.candidate
    submission = candidate.submission
    _write(
        CountingRun.objects.filter(
            method=submission.method_id, task=candidate.task_id, gpu=run.gpu_id, origin=run.origin
        ),
        Run.objects.filter(
            candidate__submission__method=submission.method_id,
            candidate__task=candidate.task_id,
            gpu=run.gpu_id,
            origin=run.origin,
        ),
    )
    _tally(
        RunTally.objects.filter(submission=submission, gpu=run.gpu_id, origin=run.origin),
        Run.objects.filter(candidate__submission=submission, gpu=run.gpu_id, origin=run.origin),
    )


@transaction.atomic
def refresh_submission(submission: Submission) -> None:
    """After many of its runs were recorded, or others may see it now: all of its method."""
    Board.lock()
    _write(_held(submission.method), _facts(submission.method))
    _tally(
        RunTally.objects.filter(submission=submission),
        Run.objects.filter(candidate__submission=submission),
    )


def rebuild() -> Iterator[tuple[Method, Drift]]:
    """Mend what has drifted, a method and a transaction at a time; says what it found."""
    # No other columns: a migration calls this, when later ones may not be there yet.
    for method in Method.objects.only("slug").order_by("id").iterator():
        with transaction.atomic():
            Board.lock()
            drift = compare(method)
            if drift:
                _write(_held(method), _facts(method))
                _tally(_held_tallies(method), _facts(method))
                Board.bump()
        yield method, drift


@transaction.atomic
def compare(method: Method) -> Drift:
    """How far the derived tables are from the facts of the method. Changes nothing."""
    Board.lock()
    counting = _difference(
        {row.run_id: _columns(row) for row in _held(method)},
        {row.run_id: _columns(row) for row in _counting(_facts(method))},
    )
    tallies = _difference(
        {(row.submission_id, row.gpu_id, row.origin): row.runs for row in _held_tallies(method)},
        {(row.submission_id, row.gpu_id, row.origin): row.runs for row in _count(_facts(method))},
    )
    return counting + tallies


def audit_verdicts(runs: QuerySet[Run]) -> dict[int, str]:
    """The newest audit of each audited run: they are few, so they are read apart from the runs."""
    rows = Audit.objects.filter(run__in=runs.order_by().values("pk"))
    return dict(rows.order_by("created_at", "id").values_list("run_id", "verdict"))


def _facts(method: Method) -> QuerySet[Run]:
    return Run.objects.filter(candidate__submission__method=method)


def _held(method: Method) -> QuerySet[CountingRun]:
    return CountingRun.objects.filter(method=method)


def _held_tallies(method: Method) -> QuerySet[RunTally]:
    return RunTally.objects.filter(submission__method=method)


def _write(held: QuerySet[CountingRun], runs: QuerySet[Run]) -> None:
    """Replace `held` by what follows from `runs`, which are all runs of the same places."""
    rows = list(_counting(runs))
    before = held.order_by().values_list("gpu_id", "origin").distinct()
    Board.touch({*before, *((row.gpu_id, row.origin) for row in rows)})
    held.delete()
    CountingRun.objects.bulk_create(rows, batch_size=BATCH)


def _tally(held: QuerySet[RunTally], runs: QuerySet[Run]) -> None:
    rows = list(_count(runs))
    held.delete()
    RunTally.objects.bulk_create(rows, batch_size=BATCH)


def _counting(runs: QuerySet[Run]) -> Iterator[CountingRun]:
    """The newest run of each place and round, chosen by the database. Two queries."""
    listed = runs.listed()  # type: ignore[attr-defined]  # a method of RunQuerySet
    audits = audit_verdicts(listed)
    out = [run for run, verdict in audits.items() if verdict in TAKEN_OUT]
    newest_first = [F(field).desc() for field in AGE]
    chosen = (
        listed.exclude(pk__in=out)
        .annotate(
            in_round=Window(RowNumber(), [*PLACE, "candidate__round"], newest_first),
            in_place=Window(RowNumber(), list(PLACE), newest_first),
        )
        .filter(in_round=1)
        .order_by()
        .values_list(*COPIED.values(), "in_place")
    )
    for *copied, in_place in chosen.iterator(chunk_size=5000):
        row = CountingRun(**dict(zip(COPIED, copied, strict=True)), is_final=in_place == 1)
        row.audit = audits.get(row.run_id, "")
        yield row


def _count(runs: QuerySet[Run]) -> Iterator[RunTally]:
    groups = runs.order_by().values_list("candidate__submission_id", "gpu_id", "origin")
    for submission, gpu, origin, count in groups.annotate(count=Count("pk")):
        yield RunTally(submission_id=submission, gpu_id=gpu, origin=origin, runs=count)


def _columns(row: CountingRun) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in COLUMNS)


def _difference(held: dict[Any, Any], true: dict[Any, Any]) -> Drift:
    shared = held.keys() & true.keys()
    return Drift(
        missing=len(true.keys() - held.keys()),
        extra=len(held.keys() - true.keys()),
        different=sum(held[key] != true[key] for key in shared),
    )
