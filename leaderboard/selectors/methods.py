"""A method's page: how it did on each GPU, by category, by round, and how it failed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from benchmark import vocabulary
from benchmark.models import Method, Run, Submission, Task
from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.rows import Cell, Funnel, GpuRow, MethodRow, Result
from leaderboard.selectors.board import every_result, method_row
from leaderboard.summaries import funnel


@dataclass(frozen=True, slots=True)
class SubmissionLine:
    uuid: UUID
    label: str
    candidates: int
    created_at: datetime


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
        SubmissionLine(s.uuid, s.label, s.candidate_count, s.created_at) for s in submissions
    )
    if not lines:
        return None
    lanes = Counter(
        Run.objects.listed()
        .filter(candidate__submission__method=method)
        .exclude(origin=vocabulary.MEASURED)
        .values_list("origin", flat=True)
    )
    return Card(
        method_row(method),
        method.url,
        method.description,
        lines,
        lanes[vocabulary.CLAIMED],
        lanes[vocabulary.PUBLISHED],
    )


def method_slugs() -> tuple[str, ...]:
    """Of methods that lists may name, for hints."""
    listed = Submission.objects.listed().values("method_id")
    return tuple(Method.objects.filter(pk__in=listed).values_list("slug", flat=True))


def on_gpus(
    method: MethodRow, gpus: Sequence[GpuRow]
) -> tuple[tuple[OnGpu, ...], tuple[RoundRow, ...]]:
    """The final results by GPU, and every round's where there are several."""
    known = tuple(_current_tasks())
    by_round = _by_round(method)
    summaries = tuple(
        _summary(gpu, final, known)
        for gpu in gpus
        if (final := _final(by_round.get(gpu.slug, {}))) and _chosen(gpu, known)
    )
    rounds = tuple(
        _round(gpu, number, results.values())
        for gpu in gpus
        if len(by_round.get(gpu.slug, {})) > 1
        for number, results in sorted(by_round[gpu.slug].items())
    )
    return summaries, rounds


def _current_tasks() -> Iterable[tuple[int, str, bool]]:
    return Task.objects.current().values_list("id", "category", "interpretable")


def _by_round(method: MethodRow) -> dict[str, dict[int, dict[int, Result]]]:
    """GPU slug -> round -> task -> result."""
    runs = Run.objects.listed().measured()
    runs = runs.filter(
        candidate__submission__method=method.id, candidate__task__retired_at__isnull=True
    )
    slugs = dict(runs.order_by().values_list("gpu_id", "gpu__slug").distinct())
    found: dict[str, dict[int, dict[int, Result]]] = {}
    for gpu, result in every_result(runs):
        by_round = found.setdefault(slugs[gpu], {})
        by_round.setdefault(result.round, {})[result.task] = result
    return found


def _final(by_round: dict[int, dict[int, Result]]) -> dict[int, Result]:
    final: dict[int, Result] = {}
    for number in sorted(by_round):
        final.update(by_round[number])
    return final


def _chosen(gpu: GpuRow, known: Sequence[tuple[int, str, bool]]) -> list[tuple[int, str]]:
    return [
        (id, category) for id, category, interpretable in known if gpu.can_time or interpretable
    ]


def _summary(
    gpu: GpuRow, final: Mapping[int, Result], known: Sequence[tuple[int, str, bool]]
) -> OnGpu:
    tasks = _chosen(gpu, known)
    results = [final[id] for id, _ in tasks if id in final]
    solved = {r.task: r.speedup.value if r.speedup else None for r in results if r.is_solved}
    (placed,) = ranking.rank([ranking.Entry(gpu.slug, solved)], [id for id, _ in tasks])
    return OnGpu(
        gpu=gpu,
        funnel=funnel(results, len(tasks), gpu.can_time),
        speedup=placed.speedup,
        timed=placed.timed,
        held_back=sum(r.state == "suspect" for r in results),
        stale=sum(r.state == "stale" for r in results),
        by_category=tuple(_cell(c.slug, tasks, final) for c in vocabulary.CATEGORIES),
        failures=dict(Counter(r.verdict for r in results if r.is_judged and not r.is_solved)),
    )


def _cell(category: str, tasks: Sequence[tuple[int, str]], final: Mapping[int, Result]) -> Cell:
    ids = [id for id, of in tasks if of == category]
    if not ids:
        return Cell("not-applicable")
    judged = [final[id] for id in ids if id in final and final[id].is_judged]
    if not judged:
        return Cell("not-attempted", tasks=len(ids))
    return Cell("counted", sum(r.is_solved for r in judged), len(ids), len(judged))


def _round(gpu: GpuRow, number: int, results: Iterable[Result]) -> RoundRow:
    judged = [result for result in results if result.is_judged]
    solved = [result for result in judged if result.is_solved]
    timed = [r.speedup.value for r in solved if r.speedup]
    return RoundRow(
        gpu, number, len(judged), len(solved), ranking.geometric_mean(timed), len(timed)
    )
