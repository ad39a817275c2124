"""Reads for the pages of submissions, jobs and queues: frozen rows, nothing left to query."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet

from benchmark import vocabulary
from benchmark.models import Gpu, Run, Submission
from runner.models import Device, Job

WAITS_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Progress:
    """Jobs of a submission by state. `percent` of each state is of all jobs."""

    states: Mapping[str, int]

    @property
    def total(self) -> int:
        return sum(self.states.values())

    @property
    def open(self) -> int:
        return sum(self.states[state] for state in vocabulary.OPEN_JOB_STATES)

    @property
    def ended(self) -> int:
        return self.total - self.open

    @property
    def is_over(self) -> bool:
        return self.open == 0

    @property
    def ended_percent(self) -> float:
        return 100 * self.ended / self.total if self.total else 0.0

    @property
    def running_percent(self) -> float:
        return 100 * self.states[vocabulary.RUNNING] / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """A candidate on a GPU: its newest run, or how its job stands."""

    verdict: str
    run: UUID | None
    speedup: float | None
    state: str
    job: UUID | None
    reason: str
    step: str = ""  # "check, 3 of 12" while a board is at it


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """What its submitter says that another harness found; never measured here."""

    task: str
    round: int
    gpu: str
    verdict: str
    speedup: float | None
    run: UUID


@dataclass(frozen=True, slots=True)
class CandidateRow:
    task: str
    round: int
    place: str
    outcomes: tuple[Outcome | None, ...]


@dataclass(frozen=True, slots=True)
class SubmissionPage:
    uuid: UUID
    method: str
    method_slug: str
    label: str
    visibility: str
    visibility_meaning: str
    created_at: datetime
    withdrawn_at: datetime | None
    may_withdraw: bool
    is_own: bool  # the visitor's
    source_visibility: str
    source_meaning: str
    has_owner: bool
    last_round: int
    claims: tuple[ClaimRow, ...]
    notes: tuple[dict, ...]
    gpus: tuple[str, ...]
    candidates: tuple[CandidateRow, ...]
    progress: Progress
    verdicts: Mapping[str, int]

    @property
    def next_round(self) -> int:
        return self.last_round + 1


@dataclass(frozen=True, slots=True)
class JobPage:
    uuid: UUID
    submission: UUID
    task: str
    method: str
    gpu: str
    state: str
    meaning: str
    attempt: int
    stage: str
    steps_done: int
    steps_total: int
    reason: str
    ahead: int | None
    run: UUID | None
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None

    @property
    def is_over(self) -> bool:
        return self.state not in vocabulary.OPEN_JOB_STATES

    @property
    def percent(self) -> float:
        return 100 * self.steps_done / self.steps_total if self.steps_total else 0.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a job that is asked for now would be judged: what is ahead of it, each at the median of
    `measured` recent judgements, shared by the boards that take jobs, which have `at_once` of them
    in hand at a time.
    """

    ahead: int
    boards: int
    at_once: int
    median_seconds: float
    measured: int

    @property
    def wait(self) -> timedelta:
        return timedelta(seconds=round(self.ahead * self.median_seconds / self.at_once))


@dataclass(frozen=True, slots=True)
class Trouble:
    """A board that is there and kept from taking jobs."""

    gpu: str
    host: str
    serial: str
    state: str
    meaning: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A GPU's queue. `median_wait` over the last started jobs, None before the first; `estimate`
    None where nothing was measured or no board takes jobs.
    """

    gpu: str
    slug: str
    is_judging: bool
    can_time: bool
    queued: int
    running: int
    set_aside: int
    oldest: datetime | None
    devices: int
    serving: int
    median_wait: timedelta | None
    estimate: Estimate | None


def submission_page(uuid: UUID, user: Any) -> SubmissionPage | None:
    """The submission, or None where it doesn't exist or this user may not see it."""
    submission = (
        Submission.objects.visible_to(user).select_related("method").filter(uuid=uuid).first()
    )
    if submission is None:
        return None
    jobs = _newest_jobs(submission)
    every = _newest_runs(submission)
    runs = {
        (candidate, gpu): run
        for (candidate, gpu, origin), run in every.items()
        if origin == vocabulary.MEASURED
    }
    candidates = _candidate_rows(submission)
    gpus = sorted({(job.gpu.name, job.gpu_id) for job in jobs.values()} | _gpus_of(runs))
    return SubmissionPage(
        uuid=submission.uuid,
        method=submission.method.name,
        method_slug=submission.method.slug,
        label=submission.label,
        visibility=submission.visibility,
        visibility_meaning=vocabulary.VISIBILITIES[submission.visibility],
        created_at=submission.created_at,
        withdrawn_at=submission.withdrawn_at,
        may_withdraw=submission.withdrawn_at is None and is_owner(submission, user),
        is_own=submission.submitted_by_id is not None and submission.submitted_by_id == user.pk,
        source_visibility=submission.source_visibility,
        source_meaning=vocabulary.SOURCE_VISIBILITIES[submission.source_visibility],
        has_owner=submission.submitted_by_id is not None,
        last_round=max((round_ for _, _, round_, _ in candidates), default=0),
        claims=tuple(_claims(candidates, every)),
        notes=tuple(submission.notes),
        gpus=tuple(name for name, _ in gpus),
        candidates=tuple(_candidates(candidates, [gpu for _, gpu in gpus], jobs, runs)),
        progress=_progress(jobs.values()),
        verdicts=dict(Counter(run.verdict for run in runs.values()).most_common()),
    )


def is_owner(submission: Submission, user: Any) -> bool:
    """Its submitter, or staff. Nobody owns an anonymous submission but staff."""
    return bool(user.is_authenticated and (user.is_staff or submission.submitted_by_id == user.pk))


def job_page(uuid: UUID, user: Any) -> JobPage | None:
    visible = Submission.objects.visible_to(user).filter(withdrawn_at__isnull=True)
    job = (
        Job.objects.filter(uuid=uuid, candidate__submission__in=visible)
        .select_related("gpu", "run", "candidate__task", "candidate__submission__method")
        .first()
    )
    if job is None:
        return None
    return JobPage(
        uuid=job.uuid,
        submission=job.candidate.submission.uuid,
        task=job.candidate.task.slug,
        method=job.candidate.submission.method.name,
        gpu=job.gpu.name,
        state=job.state,
        meaning=vocabulary.JOB_STATES[job.state],
        attempt=job.attempt,
        stage=job.stage,
        steps_done=job.steps_done,
        steps_total=job.steps_total,
        reason=job.reason,
        ahead=_ahead_of(job) if job.state == vocabulary.QUEUED else None,
        run=job.run.uuid if job.run else None,
        created_at=job.created_at,
        started_at=job.started_at,
        ended_at=job.ended_at,
    )


def queues() -> tuple[QueueRow, ...]:
    """Every GPU in service, with open jobs or boards. Counts only: whose is nobody's business."""
    open_jobs = Q(jobs__state__in=vocabulary.OPEN_JOB_STATES)
    rows = Gpu.objects.annotate(
        queued=Count("jobs", filter=Q(jobs__state=vocabulary.QUEUED)),
        running=Count("jobs", filter=Q(jobs__state=vocabulary.RUNNING)),
        oldest=Min("jobs__created_at", filter=open_jobs),
    )
    online, serving, at_once = _by_gpu(Device.objects.online()), Counter[int](), Counter[int]()
    for gpu_id, jobs in Device.objects.serving().values_list("gpu_id", "jobs"):
        serving[gpu_id] += 1
        at_once[gpu_id] += jobs
    aside = _by_gpu(Job.objects.set_aside().order_by())
    return tuple(
        QueueRow(
            gpu=gpu.name,
            slug=gpu.slug,
            is_judging=gpu.is_judging,
            can_time=gpu.can_time,
            queued=gpu.queued,
            running=gpu.running,
            set_aside=aside[gpu.pk],
            oldest=gpu.oldest,
            devices=online[gpu.pk],
            serving=serving[gpu.pk],
            median_wait=_median_wait(gpu),
            estimate=_estimate(gpu, gpu.queued + gpu.running, serving[gpu.pk], at_once[gpu.pk]),
        )
        for gpu in rows
        if gpu.is_judging or gpu.queued or gpu.running or online[gpu.pk] or aside[gpu.pk]
    )


def troubles() -> tuple[Trouble, ...]:
    """The boards that are there and take no jobs, with the reason and what to do."""
    return tuple(
        Trouble(
            gpu=board.gpu.name,
            host=board.host,
            serial=board.serial[:12],
            state=board.state,
            meaning=vocabulary.BOARD_STATES[board.state],
            reason=board.reason,
            remedy=board.remedy,
        )
        for board in Device.objects.in_trouble().select_related("gpu")
    )


def _newest_jobs(submission: Submission) -> dict[tuple[int, int], Job]:
    jobs = Job.objects.filter(candidate__submission=submission).select_related("gpu")
    return {(job.candidate_id, job.gpu_id): job for job in jobs.order_by("created_at", "id")}


def _newest_runs(submission: Submission) -> dict[tuple[int, int, str], Run]:
    """By candidate, GPU and origin."""
    runs = Run.objects.filter(candidate__submission=submission).select_related("gpu")
    runs = runs.only("uuid", "candidate", "gpu", "origin", "verdict", "speedup", "is_suspect")
    return {
        (run.candidate_id, run.gpu_id, run.origin): run for run in runs.order_by("created_at", "id")
    }


def _gpus_of(runs: Mapping[tuple[int, int], Run]) -> set[tuple[str, int]]:
    return {(run.gpu.name, run.gpu_id) for run in runs.values()}


def _candidate_rows(submission: Submission) -> list[tuple[int, str, int, str]]:
    fields = ("id", "task__slug", "round", "place")
    return list(submission.candidates.order_by("task__slug", "round").values_list(*fields))


def _candidates(
    rows: Iterable[tuple[int, str, int, str]],
    gpus: list[int],
    jobs: Mapping[tuple[int, int], Job],
    runs: Mapping[tuple[int, int], Run],
) -> Iterable[CandidateRow]:
    for id, task, round_, place in rows:
        outcomes = tuple(_outcome(jobs.get((id, gpu)), runs.get((id, gpu))) for gpu in gpus)
        yield CandidateRow(task, round_, place, outcomes)


def _claims(
    rows: Iterable[tuple[int, str, int, str]], runs: Mapping[tuple[int, int, str], Run]
) -> Iterable[ClaimRow]:
    places = {id: (task, round_) for id, task, round_, _ in rows}
    claimed = [run for (_, _, origin), run in runs.items() if origin == vocabulary.CLAIMED]
    for run in sorted(claimed, key=lambda run: places[run.candidate_id]):
        task, round_ = places[run.candidate_id]
        yield ClaimRow(task, round_, run.gpu.name, run.verdict, run.speedup, run.uuid)


def _outcome(job: Job | None, run: Run | None) -> Outcome | None:
    if job is None and run is None:
        return None
    is_open = job is not None and job.state in vocabulary.OPEN_JOB_STATES
    shown = None if is_open else run  # judged again: the job says how far, the old run is history
    return Outcome(
        verdict=shown.verdict if shown else "",
        run=shown.uuid if shown else None,
        speedup=shown.speedup if shown and shown.gpu.can_time and not shown.is_suspect else None,
        state=job.state if job else vocabulary.DONE,
        job=job.uuid if job else None,
        reason=job.reason if job else "",
        step=_step(job) if job else "",
    )


def _step(job: Job) -> str:
    if job.state != vocabulary.RUNNING or not job.stage:
        return ""
    done = f", {job.steps_done} of {job.steps_total}" if job.steps_total else ""
    return f"{job.stage}{done}"


def _progress(jobs: Iterable[Job]) -> Progress:
    counts = Counter(job.state for job in jobs)
    return Progress({state: counts[state] for state in vocabulary.JOB_STATES})


def _ahead_of(job: Job) -> int:
    """Queued jobs of the GPU that came earlier; submissions take turns, so it is an upper bound."""
    earlier = Q(created_at__lt=job.created_at) | Q(created_at=job.created_at, pk__lt=job.pk)
    return Job.objects.filter(earlier, gpu=job.gpu_id, state=vocabulary.QUEUED).count()


def _by_gpu(rows: QuerySet[Any]) -> Counter[int]:
    return Counter(rows.values_list("gpu_id", flat=True))


def _estimate(gpu: Gpu, ahead: int, boards: int, at_once: int) -> Estimate | None:
    ended = Job.objects.filter(gpu=gpu, state=vocabulary.DONE, started_at__isnull=False)
    times = ended.order_by("-ended_at").values_list("started_at", "ended_at")[:WAITS_LOOKED_AT]
    seconds = [(end - begun).total_seconds() for begun, end in times if begun and end]
    if not seconds or not at_once:
        return None
    return Estimate(ahead, boards, at_once, median(seconds), len(seconds))


def _median_wait(gpu: Gpu) -> timedelta | None:
    started = Job.objects.filter(gpu=gpu, started_at__isnull=False).order_by("-started_at")
    times = started.values_list("created_at", "started_at")[:WAITS_LOOKED_AT]
    waits = [(begun - made).total_seconds() for made, begun in times if begun]
    return timedelta(seconds=round(median(waits))) if waits else None
