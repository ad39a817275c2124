"""What boards, heat maps and distributions are built from: GPUs, tasks, methods and results."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import RowNumber

from benchmark import vocabulary
from benchmark.models import Audit, Gpu, Method, Run, Submission, Task
from leaderboard.figures import interval, verdict_word
from leaderboard.filters import Choice
from leaderboard.rows import (
    COUNTED,
    REJECTED,
    STALE,
    SUSPECT,
    GpuRow,
    MethodRow,
    Result,
    RunLine,
    TaskRow,
)

IGNORED = "ignored"  # an audit took the run out: our bug, or withdrawn
# From the oldest to the newest of a method's runs on a task.
AGE = (
    "candidate__submission__created_at",
    "candidate__submission_id",
    "candidate__round",
    "created_at",
    "id",
)
NEWEST_AUDIT = Subquery(
    Audit.objects.filter(run=OuterRef("pk")).order_by("-created_at", "-id").values("verdict")[:1]
)

AUDITED = {
    vocabulary.CLEAN: COUNTED,
    vocabulary.SUSPECT: SUSPECT,
    vocabulary.CHEAT: REJECTED,
    vocabulary.JUDGE_BUG: IGNORED,
    vocabulary.WITHDRAWN: IGNORED,
}

RESULT_FIELDS = (
    "id",
    "gpu_id",
    "candidate__submission__method_id",
    "candidate__task_id",
    "candidate__round",
    "uuid",
    "verdict",
    "stage",
    "speedup",
    "speedup_low",
    "speedup_high",
    "is_suspect",
    "task_digest",
    "candidate__task__digest",
    "gpu__can_time",
)


@dataclass(frozen=True, slots=True)
class BoardData:
    """Everything a choice's pages need. `results` by (method, task), restricted to `tasks`."""

    choice: Choice
    tasks: tuple[TaskRow, ...]
    methods: tuple[MethodRow, ...]
    results: dict[tuple[int, int], Result]


def gpus() -> tuple[GpuRow, ...]:
    """GPUs with listed results or in service, the default first: one that times, most results."""
    listed = Run.objects.listed().filter(gpu=OuterRef("pk")).order_by().values("gpu_id")
    tally = Subquery(listed.annotate(runs=Count("id")).values("runs"))
    known = Gpu.objects.annotate(tally=tally).filter(Q(tally__gt=0) | Q(is_judging=True))
    rows = [
        GpuRow(gpu.pk, gpu.slug, gpu.name, gpu.architecture, gpu.can_time, gpu.tally or 0)
        for gpu in known
    ]
    return tuple(
        sorted(rows, key=lambda gpu: (not gpu.runs, not gpu.can_time, -gpu.runs, gpu.name))
    )


def board_data(choice: Choice) -> BoardData:
    tasks = tuple(task for task in _tasks() if _is_chosen(task, choice))
    methods = tuple(_methods())
    runs = Run.objects.listed().filter(
        gpu__slug=choice.gpu.slug, origin=choice.lane, candidate__task__retired_at__isnull=True
    )
    if choice.round is not None:
        runs = runs.filter(candidate__round=choice.round)
    if choice.category:
        runs = runs.filter(candidate__task__category=choice.category)
    chosen = {task.id for task in tasks}
    results = {
        (result.method, result.task): result
        for _, result in final_results(runs)
        if result.task in chosen
    }
    return BoardData(choice, tasks, methods, results)


def final_results(runs: QuerySet[Run]) -> Iterable[tuple[int, Result]]:
    """(GPU, result) that counts for each GPU, method and task among `runs`, which share a lane.

    The newest submission, its last round, its newest run; chosen by the database. Two queries.
    """
    place = Window(
        RowNumber(),
        partition_by=["gpu_id", "candidate__submission__method_id", "candidate__task_id"],
        order_by=[F(field).desc() for field in AGE],
    )
    audits = audit_verdicts(runs)
    chosen = _counting(runs, audits).annotate(place=place).filter(place=1)
    return _results(chosen.order_by(), audits)


def every_result(runs: QuerySet[Run]) -> Iterable[tuple[int, Result]]:
    """(GPU, result) of all rounds, the later one after the earlier. Two queries."""
    audits = audit_verdicts(runs)
    return _results(_counting(runs, audits).order_by(*AGE), audits)


def _counting(runs: QuerySet[Run], audits: dict[int, str]) -> QuerySet[Run]:
    """Without the runs that an audit took out: an earlier one may stand in for them."""
    ignored = [run for run, verdict in audits.items() if AUDITED[verdict] == IGNORED]
    return runs.exclude(pk__in=ignored) if ignored else runs


def _results(runs: QuerySet[Run], audits: dict[int, str]) -> Iterable[tuple[int, Result]]:
    for row in runs.values_list(*RESULT_FIELDS).iterator(chunk_size=5000):
        state = state_of(row[12] == row[13], row[11], audits.get(row[0]))
        yield row[1], _result(row, state)


def audit_verdicts(runs: QuerySet[Run]) -> dict[int, str]:
    """The newest audit of each audited run: they are few, so they are read apart from the runs."""
    rows = Audit.objects.filter(run__in=runs.order_by().values("pk"))
    return dict(rows.order_by("created_at", "id").values_list("run_id", "verdict"))


def latest_runs(limit: int) -> tuple[RunLine, ...]:
    """The newest listed runs measured here, whatever their verdict."""
    runs = (
        Run.objects.listed()
        .measured()
        .select_related("candidate__task", "candidate__submission__method", "gpu")
        .annotate(newest_audit=NEWEST_AUDIT)
        .defer("log_tail", "environment", "kernels", "findings")
        .order_by("-created_at", "-id")[:limit]
    )
    return tuple(run_line(run, run.newest_audit) for run in runs)


def run_line(run: Run, audit: str | None) -> RunLine:
    """A line of a list. What is held back, rejected or stale shows that word and no speedup."""
    speedup = interval(run.speedup, run.speedup_low, run.speedup_high)
    state = state_of(run.task_digest == run.candidate.task.digest, run.is_suspect, audit)
    if state != COUNTED or not run.gpu.can_time:
        speedup = None
    word = verdict_word(run.verdict, speedup.value if speedup else None)
    return RunLine(
        uuid=run.uuid,
        task=run.candidate.task.slug,
        method=run.candidate.submission.method.name,
        method_slug=run.candidate.submission.method.slug,
        gpu=run.gpu.name,
        verdict=run.verdict,
        word=word if state == COUNTED else state,
        speedup=speedup,
        round=run.candidate.round,
        created_at=run.created_at,
    )


def _tasks() -> Iterable[TaskRow]:
    fields = ("id", "slug", "category", "difficulty", "dtypes", "interpretable")
    for id, slug, category, difficulty, dtypes, interpretable in (
        Task.objects.current().order_by("slug").values_list(*fields)
    ):
        yield TaskRow(id, slug, category, difficulty, tuple(dtypes), interpretable)


def _methods() -> Iterable[MethodRow]:
    listed = Submission.objects.listed().order_by().values("method_id")
    for method in Method.objects.filter(pk__in=listed):
        yield method_row(method)


def method_row(method: Method) -> MethodRow:
    return MethodRow(
        method.pk,
        method.slug,
        method.name,
        vocabulary.METHOD_KINDS[method.kind],
        method.organisation,
    )


def _is_chosen(task: TaskRow, choice: Choice) -> bool:
    return (
        (not choice.category or task.category == choice.category)
        and (not choice.dtype or choice.dtype in task.dtypes)
        and (choice.difficulty is None or task.difficulty == choice.difficulty)
        and (choice.gpu.can_time or task.interpretable)
    )


def state_of(is_current: bool, is_suspect: bool, audit: str | None) -> str:
    """What becomes of a run: an audit outweighs the judge's own suspicion."""
    if not is_current:
        return STALE
    if audit is not None:
        return AUDITED[audit]
    return SUSPECT if is_suspect else COUNTED


def _result(row: tuple, state: str) -> Result:
    uuid: UUID = row[5]
    return Result(
        method=row[2],
        task=row[3],
        round=row[4],
        run=uuid,
        verdict=row[6],
        stage=row[7],
        speedup=interval(row[8], row[9], row[10]) if row[14] else None,
        state=state,
    )
