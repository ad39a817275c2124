"""How a method stood after each of its submissions, and what changed in between besides it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from benchmark import vocabulary
from benchmark.models import Audit, Run, Task, TaskVersion
from leaderboard import ranking
from leaderboard.rows import COUNTED, REJECTED, GpuRow, MethodRow
from leaderboard.selectors.board import AUDITED, IGNORED, state_of

JUDGE, TASKS = "judge", "tasks"
# From the oldest to the newest of a method's runs: the later one replaces the earlier on its task.
AGE = (
    "candidate__submission__created_at",
    "candidate__submission_id",
    "candidate__round",
    "created_at",
    "id",
)


@dataclass(frozen=True, slots=True)
class Point:
    """After a submission: of the tasks judged by then, for each the newest submission's result.

    `stale`: how many of them were judged against an earlier version of their task than today's.
    """

    submission: UUID
    label: str
    at: datetime
    entered: int
    judged: int
    solved: int
    geometric_mean: float | None
    timed: int
    stale: int
    judges: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Something else than the method changed: the judge, or the digests of tasks."""

    at: datetime
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class History:
    method: MethodRow
    gpu: GpuRow
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class _Judged:
    """What one run says, as it was judged: against its task's version of then."""

    submission: tuple[UUID, str, datetime]
    task: int
    state: str
    verdict: str
    speedup: float | None
    is_stale: bool
    judge: str
    at: datetime


FIELDS = (
    "gpu_id",
    "candidate__submission__uuid",
    "candidate__submission__label",
    "candidate__submission__created_at",
    "candidate__task_id",
    "verdict",
    "speedup",
    "is_suspect",
    "task_digest",
    "candidate__task__digest",
    "judge_version",
    "created_at",
    "id",
    "candidate__task__not_on",
    "gpu__slug",
)


def histories(method: MethodRow, gpus: Sequence[GpuRow]) -> tuple[History, ...]:
    """On each GPU where submissions of at least two labels were judged. Three queries."""
    runs = Run.objects.listed().measured()
    by_gpu = _by_gpu(
        runs.filter(
            candidate__submission__method=method.id, candidate__task__in=Task.objects.current()
        )
    )
    changes = _task_changes() if by_gpu else ()
    found = (_history(method, gpu, by_gpu.get(gpu.id, ()), changes) for gpu in gpus)
    return tuple(history for history in found if len(history.points) > 1)


def _by_gpu(runs: QuerySet[Run]) -> dict[int, list[_Judged]]:
    """Oldest first, without those of tasks that aren't applicable on the GPU, and without the runs
    that an audit took out: an earlier one stands in for them.
    """
    newest = Audit.objects.filter(run__in=runs.order_by().values("pk"))
    audits = dict(newest.order_by("created_at", "id").values_list("run_id", "verdict"))
    found: dict[int, list[_Judged]] = {}
    for row in runs.order_by(*AGE).values_list(*FIELDS):
        audit = audits.get(row[12])
        *_, not_on, gpu = row
        if gpu not in not_on and (audit is None or AUDITED[audit] != IGNORED):
            found.setdefault(row[0], []).append(_judged(row, audit))
    return found


def _judged(row: tuple[Any, ...], audit: str | None) -> _Judged:
    _, uuid, label, entered, task, verdict, *facts = row[:12]
    speedup, is_suspect, digest, current, judge, at = facts
    return _Judged(
        submission=(uuid, label, entered),
        task=task,
        state=state_of(True, is_suspect, audit),
        verdict=verdict,
        speedup=speedup,
        is_stale=digest != current,
        judge=judge,
        at=at,
    )


def _history(
    method: MethodRow, gpu: GpuRow, runs: Sequence[_Judged], changes: Iterable[Mark]
) -> History:
    points: list[Point] = []
    standing: dict[int, _Judged] = {}
    for submission, judged in groupby(runs, key=lambda run: run.submission):
        new = {run.task: run for run in judged}
        standing |= new
        points.append(_point(submission, len(new), list(standing.values()), gpu))
    since = points[0].at if points else None
    marks = [mark for mark in changes if since and mark.at > since] + _judge_changes(runs)
    return History(method, gpu, tuple(points), tuple(sorted(marks, key=lambda mark: mark.at)))


def _point(
    submission: tuple[UUID, str, datetime], entered: int, standing: list[_Judged], gpu: GpuRow
) -> Point:
    judged = [run for run in standing if run.state in (COUNTED, REJECTED)]
    solved = [r for r in judged if r.state == COUNTED and r.verdict == vocabulary.PASSED]
    speedups = [run.speedup for run in solved if run.speedup and gpu.can_time]
    return Point(
        *submission,
        entered=entered,
        judged=len(judged),
        solved=len(solved),
        geometric_mean=ranking.geometric_mean(speedups),
        timed=len(speedups),
        stale=sum(run.is_stale for run in judged),
        judges=tuple(sorted({run.judge for run in judged})),
    )


def _judge_changes(runs: Sequence[_Judged]) -> list[Mark]:
    """Where a version of the judge was first at work on the method, but for the very first."""
    first: dict[str, datetime] = {}
    for run in sorted(runs, key=lambda run: run.at):
        first.setdefault(run.judge, run.at)
    return [Mark(at, JUDGE, f"judge {version}") for version, at in list(first.items())[1:]]


def _task_changes() -> tuple[Mark, ...]:
    """By day, how many tasks got another digest than their first."""
    seen: set[int] = set()
    days: dict[date, list[datetime]] = {}
    versions = TaskVersion.objects.filter(task__in=Task.objects.current())
    for task, at in versions.order_by("first_seen_at", "id").values_list(
        "task_id", "first_seen_at"
    ):
        if task in seen:
            days.setdefault(at.date(), []).append(at)
        seen.add(task)
    return tuple(
        Mark(min(times), TASKS, f"{len(times)} task{'' if len(times) == 1 else 's'} changed")
        for times in days.values()
    )
