"""A method's page: how it did on each GPU, by category, by round, and how it failed."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Avg, Count, Q, QuerySet, Sum
from django.db.models.functions import Ln

from benchmark import curation, vocabulary
from benchmark.models import CountingRun, Method, RunTally, Submission, Task
from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.rows import HELD, SUSPECT, Cell, Funnel, GpuRow, MethodRow, Recorded, Result
from leaderboard.selectors.board import (
    COUNTS,
    JUDGED,
    in_round,
    listed_counting,
    method_row,
    recorded_rounds,
    recorded_row,
    results_by_gpu,
)
from leaderboard.summaries import funnel


@dataclass(frozen=True, slots=True)
class SubmissionLine:
    uuid: UUID
    label: str
    candidates: int
    created_at: datetime
    recorded: Recorded | None
    rounds: tuple[tuple[str, str], ...] = ()  # of a recording: number and what was done in it


@dataclass(frozen=True, slots=True)
class Card:
    method: MethodRow
    url: str
    description: str
    submissions: tuple[SubmissionLine, ...]
    claimed: int
    published: int


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A method on one GPU. `by_category` follows the vocabulary's categories."""

    gpu: GpuRow
    funnel: Funnel
    speedup: Interval | None
    timed: int
    held_back: int
    stale: int
    by_category: tuple[Cell, ...]
    failures: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RoundRow:
    gpu: GpuRow
    round: int
    judged: int
    correct: int
    geometric_mean: float | None
    timed: int


def card(slug: str, user: Any) -> Card | None:
    """The method's card, or None where this user may see none of its submissions in a list."""
    method = Method.objects.filter(slug=slug).first()
    if method is None:
        return None
    mine = Q(submitted_by=user) if user.is_authenticated else Q(pk__in=[])
    listed = Q(pk__in=Submission.objects.listed().values("pk"))
    submissions = (
        Submission.objects.visible_to(user)
        .filter(listed | mine, method=method, withdrawn_at__isnull=True)
        .annotate(candidate_count=Count("candidates"))
    )
    lines = tuple(
        SubmissionLine(
            s.uuid,
            s.label,
            s.candidate_count,
            s.created_at,
            recorded_row(s.recorded) if s.recorded else None,
            recorded_rounds(s.recorded),
        )
        for s in submissions
    )
    if not lines:
        return None
    tallies = RunTally.objects.filter(
        submission__in=Submission.objects.listed().filter(method=method)
    )
    lanes = dict(tallies.order_by().values_list("origin").annotate(Sum("runs")))
    return Card(
        method_row(method),
        method.url,
        method.description,
        lines,
        lanes.get(vocabulary.CLAIMED, 0),
        lanes.get(vocabulary.PUBLISHED, 0),
    )


def merged_into(slug: str, user: Any) -> str | None:
    """The slug of the method that this one was merged into, where this user may see that."""
    method = curation.merged(slug)
    return method.slug if method and card(method.slug, user) else None


def method_slugs() -> tuple[str, ...]:
    """Of methods that lists may name, for hints."""
    listed = Submission.objects.listed().values("method_id")
    return tuple(Method.objects.filter(pk__in=listed).values_list("slug", flat=True))


def on_gpus(
    method: MethodRow, gpus: Sequence[GpuRow]
) -> tuple[tuple[OnGpu, ...], tuple[RoundRow, ...]]:
    """The final results by GPU, and every round's where there are several. Three queries."""
    known = tuple(_current_tasks())
    final = _final(method, gpus, {task.id: task.digest for task in known})
    shown = [gpu for gpu in gpus if final.get(gpu.id) and _chosen(gpu, known)]
    placed = _placed(shown, final, known)
    summaries = tuple(_summary(gpu, final[gpu.id], known, placed[gpu.slug]) for gpu in shown)
    return summaries, tuple(_rounds(method, gpus))


@dataclass(frozen=True, slots=True)
class _Known:
    """A task that is judged and ranked."""

    id: int
    category: str
    interpretable: bool
    not_on: Mapping[str, str]
    digest: str


def _current_tasks() -> Iterable[_Known]:
    fields = ("id", "category", "interpretable", "not_on", "digest")
    for row in Task.objects.current().values_list(*fields):
        yield _Known(*row)


def _final(
    method: MethodRow, gpus: Sequence[GpuRow], digests: Mapping[int, str]
) -> dict[int, dict[int, Result]]:
    """GPU -> task -> the result that counts on the board."""
    final: dict[int, dict[int, Result]] = {}
    can_time = {gpu.id for gpu in gpus if gpu.can_time}
    for gpu, result in results_by_gpu(in_round(_measured(method), None), digests, can_time):
        if result.task in digests:
            final.setdefault(gpu, {})[result.task] = result
    return final


def _rounds(method: MethodRow, gpus: Sequence[GpuRow]) -> Iterable[RoundRow]:
    """Of GPUs with several, added up by the database: there can be many more than one page shows
    of each.
    """
    solved = COUNTS & Q(verdict=vocabulary.PASSED)
    timed = solved & Q(speedup__isnull=False)
    rows = (
        _measured(method)
        .filter(task__in=Task.objects.current())
        .values_list("gpu_id", "round")
        .annotate(
            judged=Count("pk", filter=JUDGED),
            correct=Count("pk", filter=solved),
            timed=Count("pk", filter=timed),
            log=Avg(Ln("speedup"), filter=timed),
        )
        .order_by("gpu_id", "round")
    )
    by_gpu: dict[int, list[tuple[Any, ...]]] = {}
    for gpu, *row in rows:
        by_gpu.setdefault(gpu, []).append(tuple(row))
    for shown in gpus:
        several = by_gpu.get(shown.id, [])
        for number, judged, correct, count, log in several if len(several) > 1 else ():
            is_timed = shown.can_time and count > 0
            mean = math.exp(log) if is_timed else None
            yield RoundRow(shown, number, judged, correct, mean, count if is_timed else 0)


def _measured(method: MethodRow) -> QuerySet[CountingRun]:
    return listed_counting().filter(method=method.id, origin=vocabulary.MEASURED)


def _chosen(gpu: GpuRow, known: Sequence[_Known]) -> list[_Known]:
    return [
        task
        for task in known
        if gpu.slug not in task.not_on and (gpu.can_time or task.interpretable)
    ]


def _placed(
    gpus: Iterable[GpuRow], final: Mapping[int, Mapping[int, Result]], known: Sequence[_Known]
) -> dict[str, ranking.Placed]:
    """The method on each GPU with its interval; GPUs of the same tasks share the draws."""
    alike: dict[tuple[int, ...], list[ranking.Entry]] = {}
    for gpu in gpus:
        tasks = tuple(task.id for task in _chosen(gpu, known))
        results = [final[gpu.id][task] for task in tasks if task in final[gpu.id]]
        solved = {r.task: r.speedup.value if r.speedup else None for r in results if r.is_solved}
        alike.setdefault(tasks, []).append(ranking.Entry(gpu.slug, solved))
    return {
        placed.key: placed
        for tasks, entries in alike.items()
        for placed in ranking.rank(entries, tasks)
    }


def _summary(
    gpu: GpuRow, final: Mapping[int, Result], known: Sequence[_Known], placed: ranking.Placed
) -> OnGpu:
    tasks = _chosen(gpu, known)
    results = [final[task.id] for task in tasks if task.id in final]
    return OnGpu(
        gpu=gpu,
        funnel=funnel(results, len(tasks), gpu.can_time),
        speedup=placed.speedup,
        timed=placed.timed,
        held_back=sum(r.state in (SUSPECT, HELD) for r in results),
        stale=sum(r.state == "stale" for r in results),
        by_category=tuple(_cell(c.slug, tasks, final) for c in vocabulary.CATEGORIES),
        failures=dict(Counter(r.verdict for r in results if r.is_judged and not r.is_solved)),
    )


def _cell(category: str, tasks: Sequence[_Known], final: Mapping[int, Result]) -> Cell:
    ids = [task.id for task in tasks if task.category == category]
    if not ids:
        return Cell("not-applicable")
    judged = [final[id] for id in ids if id in final and final[id].is_judged]
    if not judged:
        return Cell("not-attempted", tasks=len(ids))
    return Cell("counted", sum(r.is_solved for r in judged), len(ids), len(judged))
