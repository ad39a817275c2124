"""A task's page: its contract, who solved it where, and the best sources."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import F, Q

from benchmark import vocabulary
from benchmark.models import Gpu, Method, Run, Task
from leaderboard.rows import GpuRow, MethodRow, Result, RunLine
from leaderboard.selectors.board import (
    NEWEST_AUDIT,
    in_round,
    listed_counting,
    method_row,
    results_by_gpu,
    run_line,
)

BEST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class CaseRow:
    name: str
    kind: str
    dtype: str
    family: str
    shape: str


@dataclass(frozen=True, slots=True)
class Contract:
    """A task as its page shows it. `is_retired`: no longer judged or ranked."""

    id: int
    slug: str
    category: str
    category_label: str
    difficulty: int
    dtypes: tuple[str, ...]
    signature: str
    description: str
    tolerance: str
    differences: tuple[str, ...]
    delegates: tuple[str, ...]
    aliases: tuple[str, ...]
    cases: tuple[CaseRow, ...]
    reference_source: str
    plain_source: str
    digest: str
    interpretable: bool
    is_retired: bool
    versions: int
    not_on: tuple[tuple[str, str], ...] = ()  # GPUs by name, each with the reason
    not_on_ids: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A method's result on each GPU of the matrix, None where it was not attempted."""

    method: MethodRow
    results: tuple[Result | None, ...]


def task_slugs() -> tuple[str, ...]:
    return tuple(Task.objects.shown().order_by("slug").values_list("slug", flat=True))


def contract(slug: str) -> Contract | None:
    task = Task.objects.shown().filter(slug=slug).first()
    if task is None:
        return None
    left_out = Gpu.objects.filter(slug__in=task.not_on) if task.not_on else ()
    return Contract(
        id=task.pk,
        slug=task.slug,
        category=task.category,
        category_label=vocabulary.CATEGORY_BY_SLUG[task.category].label,
        difficulty=task.difficulty,
        dtypes=tuple(task.dtypes),
        signature=task.signature,
        description=task.description,
        tolerance=task.tolerance,
        differences=tuple(task.differences),
        delegates=tuple(task.delegates),
        aliases=tuple(task.aliases),
        cases=tuple(_cases(task.cases)),
        reference_source=task.reference_source,
        plain_source=task.plain_source,
        digest=task.digest,
        interpretable=task.interpretable,
        is_retired=task.retired_at is not None,
        versions=task.versions.count(),
        not_on=tuple((gpu.name, task.not_on[gpu.slug]) for gpu in left_out),
        not_on_ids=frozenset(gpu.pk for gpu in left_out),
    )


def matrix(task: int, gpus: tuple[GpuRow, ...]) -> tuple[MatrixRow, ...]:
    """Method x GPU: the final round's result of each method, measured here. Three queries."""
    counting = in_round(listed_counting().filter(task=task, origin=vocabulary.MEASURED), None)
    digests = dict(Task.objects.filter(pk=task).values_list("id", "digest"))
    can_time = {gpu.id for gpu in gpus if gpu.can_time}
    by_place = {
        (result.method, gpu): result for gpu, result in results_by_gpu(counting, digests, can_time)
    }
    methods = Method.objects.filter(pk__in={method for method, _ in by_place})
    return tuple(
        MatrixRow(method_row(method), tuple(by_place.get((method.pk, gpu.id)) for gpu in gpus))
        for method in methods
    )


def best_runs(task: int, left_out: Collection[int] = ()) -> tuple[RunLine, ...]:
    """The fastest trusted runs of the task as it is now, of those that count in some round; one a
    method and GPU, without the GPUs `left_out`. Two queries.
    """
    trusted = Q(audit=vocabulary.CLEAN) | Q(audit="", is_suspect=False)
    fastest = (
        listed_counting()
        .filter(trusted, task=task, origin=vocabulary.MEASURED, verdict=vocabulary.PASSED)
        .filter(gpu__can_time=True, speedup__isnull=False, task_digest=F("task__digest"))
        .filter(task__in=Task.objects.current())
        .exclude(gpu__in=left_out)
        .order_by("-speedup", "run_id")
        .values_list("run_id", flat=True)[: BEST_SHOWN * 10]
    )
    runs = (
        Run.objects.filter(pk__in=list(fastest))
        .annotate(newest_audit=NEWEST_AUDIT)
        .select_related("candidate__task", "candidate__submission__method", "gpu")
        .defer("log_tail", "environment", "kernels", "findings")
        .order_by("-speedup", "id")
    )
    seen: dict[tuple[str, str], RunLine] = {}
    for line in (run_line(run, run.newest_audit) for run in runs):
        seen.setdefault((line.method_slug, line.gpu), line)
    return tuple(seen.values())[:BEST_SHOWN]


def _cases(cases: Iterable[dict]) -> Iterable[CaseRow]:
    for case in cases:
        yield CaseRow(
            *(str(case.get(name, "")) for name in ("name", "kind", "dtype", "family", "shape"))
        )
