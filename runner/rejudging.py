"""Judging again: what is chosen, what it costs, and asking for it once.

A judgement is asked for by candidate and GPU. The preview has a fingerprint of what it would ask
for: a confirmation of another one is refused, so that nobody confirms what they have not seen, and
a confirmation that is sent twice asks once: by then the jobs are open, or newer runs are there.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from statistics import median
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from benchmark import curation
from benchmark.models import Candidate, CountingRun, Gpu, Method, Run, Submission, Task
from runner import dispatch
from runner.models import Device, DeviceQuerySet, Job

SAMPLE = 200  # newest runs of a GPU, for a typical duration where a task has none
NOT_STORED = "the source is not stored here (recorded results)"
WITHDRAWN = "the submission was withdrawn"
NOT_CURRENT = "the task is retired"
NOT_THERE = "the task is not applicable on the GPU"
OPEN = "waits for a judgement already"


class Changed(Exception):  # noqa: N818  an answer, no error of ours
    """Between preview and confirmation something was judged, asked for or taken out."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to judge again; the parts narrow each other. `every`: beside what counts on boards; of
    submissions it is every round anyhow.
    """

    runs: tuple[UUID, ...] = ()
    submissions: tuple[UUID, ...] = ()
    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    gpus: tuple[str, ...] = ()
    older_judge: int | None = None
    older_digest: bool = False
    every: bool = False

    @property
    def is_empty(self) -> bool:
        return replace(self, gpus=(), every=False) == Scope()

    @property
    def words(self) -> str:
        parts = [f"{len(self.runs)} runs"] if self.runs else []
        parts += [f"{len(self.submissions)} submissions"] if self.submissions else []
        for name, slugs in (("task", self.tasks), ("method", self.methods), ("GPU", self.gpus)):
            parts += [f"{name} {', '.join(slugs)}"] if slugs else []
        if self.older_judge is not None:
            parts.append(f"judged by a judge older than {self.older_judge}")
        parts += ["judged against an earlier digest of the task"] if self.older_digest else []
        parts += ["every round and submission"] if self.every and not self.runs else []
        return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Pair:
    """A candidate to judge again on a GPU. `seconds`: what its newest judgement took."""

    candidate: int
    gpu: int
    task: int
    run: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Cost:
    """On one GPU. Of `jobs`, `guessed` were estimated from others and `unknown` from nothing."""

    gpu: Gpu
    jobs: int
    seconds: float
    guessed: int
    unknown: int
    boards: int
    at_once: int  # jobs that these have in hand at a time

    @property
    def minutes(self) -> float:
        return self.seconds / 60

    @property
    def wall_minutes(self) -> float | None:
        """With the boards that are there now."""
        return self.minutes / self.at_once if self.at_once else None


@dataclass(frozen=True, slots=True)
class Preview:
    scope: Scope
    pairs: tuple[Pair, ...] = ()
    costs: tuple[Cost, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def jobs(self) -> int:
        return len(self.pairs)

    @property
    def minutes(self) -> float:
        return sum(cost.minutes for cost in self.costs)

    @property
    def fingerprint(self) -> str:
        found = sorted((pair.candidate, pair.gpu, pair.run) for pair in self.pairs)
        return hashlib.sha256(repr(found).encode()).hexdigest()


def preview(scope: Scope) -> Preview:
    """What the scope asks for and costs. Changes nothing."""
    if scope.is_empty:
        return Preview(scope)
    pairs, left_out = _sorted_out(_chosen(scope))
    return Preview(scope, tuple(pairs), tuple(_costs(pairs)), left_out)


@transaction.atomic
def ask(scope: Scope, fingerprint: str, by: Any, reason: str) -> int:
    """Make the jobs of the preview that was seen, all or none; `Changed` where it is another now.

    Returns how many were asked for.
    """
    gpus = {gpu.pk: gpu for gpu in Gpu.objects.select_for_update().order_by("pk")}
    seen = preview(scope)
    if not seen.pairs or seen.fingerprint != fingerprint:
        raise Changed("what is to be judged again has changed since the preview")
    by_gpu = defaultdict(list)
    for pair in seen.pairs:
        by_gpu[pair.gpu].append(pair.candidate)
    asked = 0
    for gpu, keys in sorted(by_gpu.items()):
        candidates = Candidate.objects.filter(pk__in=keys).select_related("task").order_by("id")
        asked += dispatch.enqueue(candidates, [gpus[gpu]])
    words = f"{asked} judgements asked for again ({scope.words}): {reason}"
    curation.log(by, [*_named(scope), *(gpus[gpu] for gpu in sorted(by_gpu))], words)
    return asked


def judge_versions() -> list[str]:
    """Those that have judged what counts on boards, the newest first."""
    found = CountingRun.objects.order_by().values_list("run__judge_version", flat=True).distinct()
    return sorted(found, key=_version, reverse=True)


def _version(text: str) -> int:
    """Versions count up; what is no number is older than all."""
    return int(text) if text.isdecimal() else -1


def _chosen(scope: Scope) -> QuerySet[Run]:
    """The newest run of each pair, by the scope."""
    runs = Run.objects.measured()
    if scope.runs:
        pair = {"candidate": OuterRef("candidate"), "gpu": OuterRef("gpu")}
        runs = runs.filter(Exists(Run.objects.filter(**pair, uuid__in=scope.runs))).latest()
    elif scope.every or scope.submissions:
        runs = runs.latest()
    else:
        runs = runs.filter(pk__in=CountingRun.objects.filter(is_final=True).values("pk"))
    if scope.submissions:
        runs = runs.filter(candidate__submission__uuid__in=scope.submissions)
    if scope.tasks:
        runs = runs.filter(candidate__task__slug__in=scope.tasks)
    if scope.methods:
        runs = runs.filter(candidate__submission__method__slug__in=scope.methods)
    if scope.gpus:
        runs = runs.filter(gpu__slug__in=scope.gpus)
    if scope.older_digest:
        runs = runs.exclude(task_digest=F("candidate__task__digest"))
    if scope.older_judge is not None:
        versions = Run.objects.order_by().values_list("judge_version", flat=True).distinct()
        older = [version for version in versions if _version(version) < scope.older_judge]
        runs = runs.filter(judge_version__in=older)
    return runs


def _sorted_out(runs: QuerySet[Run]) -> tuple[list[Pair], dict[str, int]]:
    """What can be judged again, and why the rest can't. Two queries beside the runs."""
    tasks = Task.objects.in_bulk()
    gpus = Gpu.objects.in_bulk()
    waits = set(Job.objects.open().order_by().values_list("candidate_id", "gpu_id"))
    pairs, left_out = [], Counter[str]()
    rows = runs.order_by("candidate_id", "gpu_id").values_list(
        "candidate_id",
        "gpu_id",
        "candidate__task_id",
        "id",
        "seconds",
        "candidate__source__size",
        "candidate__submission__withdrawn_at",
    )
    for candidate, gpu, task, run, seconds, size, withdrawn_at in rows:
        why = ""
        if (candidate, gpu) in waits:
            why = OPEN
        elif withdrawn_at is not None:
            why = WITHDRAWN
        elif not size:
            why = NOT_STORED
        elif tasks[task].retired_at is not None:
            why = NOT_CURRENT
        elif not tasks[task].applies_to(gpus[gpu]):
            why = NOT_THERE
        if why:
            left_out[why] += 1
        else:
            pairs.append(Pair(candidate, gpu, task, run, _total(seconds)))
    return pairs, dict(left_out)


def _costs(pairs: Sequence[Pair]) -> Iterable[Cost]:
    """By GPU: measured durations, else the task's typical one there, else the GPU's."""
    by_gpu = defaultdict(list)
    for pair in pairs:
        by_gpu[pair.gpu].append(pair)
    for gpu in Gpu.objects.filter(pk__in=by_gpu).order_by("name"):
        yield _cost(gpu, by_gpu[gpu.pk], Device.objects.serving().filter(gpu=gpu))


def _cost(gpu: Gpu, pairs: Sequence[Pair], boards: DeviceQuerySet) -> Cost:
    of_task = defaultdict(list)
    for pair in pairs:
        if pair.seconds is not None:
            of_task[pair.task].append(pair.seconds)
    measured = sum(len(found) for found in of_task.values())
    typical = _typical(gpu) if measured < len(pairs) else None
    seconds, unknown = 0.0, 0
    for pair in pairs:
        found = of_task.get(pair.task)
        guess = median(found) if found else typical
        value = pair.seconds if pair.seconds is not None else guess
        seconds += value or 0.0
        unknown += value is None
    guessed = len(pairs) - measured - unknown
    return Cost(gpu, len(pairs), seconds, guessed, unknown, boards.count(), boards.at_once())


def _typical(gpu: Gpu) -> float | None:
    newest = Run.objects.measured().filter(gpu=gpu).order_by("-created_at", "-id")
    totals = [_total(seconds) for seconds in newest.values_list("seconds", flat=True)[:SAMPLE]]
    known = [seconds for seconds in totals if seconds is not None]
    return median(known) if known else None


def _total(seconds: Any) -> float | None:
    """What a run says of its duration: in all, or the sum of its stages."""
    if not isinstance(seconds, dict):
        return None
    numbers = {k: v for k, v in seconds.items() if isinstance(v, int | float) and v >= 0}
    if "total" in numbers:
        return float(numbers["total"])
    return float(sum(numbers.values())) if numbers else None


def _named(scope: Scope) -> list[Any]:
    """Rows whose history the asking belongs to, beside the GPUs'."""
    return [
        *Task.objects.filter(slug__in=scope.tasks),
        *Method.objects.filter(slug__in=scope.methods),
        *Run.objects.filter(uuid__in=scope.runs),
        *Submission.objects.filter(uuid__in=scope.submissions),
    ]


def duration(minutes: float) -> str:
    """In words that one can decide by: "40 s", "12 min", "3.5 h"."""
    span = timedelta(minutes=minutes)
    if span < timedelta(minutes=1):
        return f"{span.total_seconds():.0f} s"
    if span < timedelta(hours=2):
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h"
