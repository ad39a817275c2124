"""Sends candidates to boards: who is next, what is in the broker, and who looks after the silent.

A job is a row first. Only a window of jobs per GPU is in the broker at a time; the rest wait as
rows, so that a large submission can't hold up a small one and a lost broker costs little. Each
sent job has a lease. `sweep` looks after the leases that ran out.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from benchmark import vocabulary
from benchmark.models import Board, Candidate, Gpu, Run, Submission, Task
from kbx_site.celery import app
from runner.accounts import quota
from runner.models import Device, Job

logger = logging.getLogger("kbx.dispatch")

TIME_LIMIT_SECONDS = 900  # for one judgement, told to the board; below the worker's hard limit
MOST_ATTEMPTS = 50  # however often boards give a job back unspent, it must come to an end
BATCH = 1000
# A request waits for the broker this long and no longer; what isn't sent now, the sweeper sends.
PUBLISH = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}


def lease(seconds: float) -> datetime:
    return timezone.now() + timedelta(seconds=seconds)


def queue_lease(job: Job) -> datetime:
    """When to look after a message that nobody took: later each time, because every look may put
    a second one beside it.
    """
    age = (timezone.now() - job.created_at).total_seconds()
    return lease(max(settings.KBX_QUEUE_LEASE, age))


def can_be_judged_on(gpu: Gpu, candidate: Candidate) -> bool:
    """Whether the candidate's task applies to the GPU."""
    return candidate.task.applies_to(gpu)


def judgements(candidates: Iterable[Candidate], gpus: Iterable[Gpu]) -> dict[Gpu, int]:
    """How many of the candidates each GPU can judge. Their tasks must be loaded."""
    entries = list(candidates)
    return {gpu: sum(can_be_judged_on(gpu, candidate) for candidate in entries) for gpu in gpus}


def enqueue(
    candidates: Iterable[Candidate], gpus: Iterable[Gpu], charged: Mapping[int, int] | None = None
) -> int:
    """Make jobs, once per candidate and GPU while one is open; sent when the transaction commits.

    The candidates' tasks must be loaded (`select_related`). `charged`: the id of the quota that the
    jobs of a GPU, by its id, were charged to. Returns how many were asked for.
    """
    quotas = charged or {}
    entries, boards = list(candidates), list(gpus)
    jobs = [
        Job(candidate=candidate, gpu=gpu, quota_id=quotas.get(gpu.pk))
        for candidate in entries
        for gpu in boards
        if can_be_judged_on(gpu, candidate)
    ]
    Job.objects.bulk_create(jobs, batch_size=BATCH, ignore_conflicts=True)
    if jobs:
        Board.bump()  # pages say how many candidates wait
    for gpu in boards:
        transaction.on_commit(partial(fill, gpu))
    return len(jobs)


@transaction.atomic
def enqueue_missing(gpu: Gpu) -> int:
    """Make jobs for what this GPU has not judged: new to it, lost, or stale since the task changed.

    Candidates that it declined stay declined. Returns how many jobs were asked for.
    """
    judged = Run.objects.measured().comparable().filter(gpu=gpu, candidate=OuterRef("pk"))
    settled = [*vocabulary.OPEN_JOB_STATES, vocabulary.DECLINED]
    pending = Job.objects.filter(gpu=gpu, candidate=OuterRef("pk"), state__in=settled)
    candidates = Candidate.objects.filter(
        ~Exists(judged),
        ~Exists(pending),
        submission__withdrawn_at__isnull=True,
        task__in=Task.objects.judged_on(gpu),
        source__size__gt=0,  # of recorded results the text isn't here
    )
    return enqueue(candidates.select_related("task").order_by("id"), [gpu])


def fill(gpu: Gpu) -> int:
    """Top the GPU's window up from the waiting jobs; returns how many were sent."""
    with transaction.atomic():
        Gpu.objects.select_for_update().get(pk=gpu.pk)  # one filler per GPU at a time
        room = window(gpu) - Job.objects.filter(gpu=gpu).sent().count()
        return sum(_lease_and_send(job) for job in next_in_line(gpu, room))


def window(gpu: Gpu) -> int:
    """Jobs of this GPU in the broker or in hand at a time: enough that no board ever waits for the
    next.
    """
    boards = Device.objects.serving().filter(gpu=gpu)
    return int(settings.KBX_DISPATCH_WINDOW) + boards.count() + boards.at_once()


def next_in_line(gpu: Gpu, room: int) -> list[Job]:
    """Up to `room` waiting jobs: the submitters take turns, and of each the submissions do, single
    files first. Strangers share one turn.
    """
    if room <= 0:
        return []
    waiting = Job.objects.filter(gpu=gpu).waiting()
    lines = [
        in_turn([_line(waiting, submission, room) for submission in of_one[:room]])
        for of_one in _turns(gpu, waiting)[:room]
    ]
    return list(islice(in_turn(lines), room))


def in_turn(lines: Iterable[Iterator[Job]]) -> Iterator[Job]:
    """The first of each line, then the second of each, until all have ended."""
    left = list(lines)
    while left:
        served = [(line, next(line, None)) for line in left]
        yield from (job for _, job in served if job is not None)
        left = [line for line, job in served if job is not None]


def _line(waiting: QuerySet[Job], submission: int, room: int) -> Iterator[Job]:
    """The submission's waiting jobs in order, asked for when its first turn comes."""
    yield from (
        waiting.filter(candidate__submission=submission)
        .select_related("candidate__task", "candidate__source", "gpu")
        .order_by("id")[:room]
    )


def _turns(gpu: Gpu, waiting: QuerySet[Job]) -> list[list[int]]:
    """The submissions with waiting jobs, by submitter: who was served longest ago comes first, and
    of each what is a single file, then what was served longest ago, then the oldest.
    """
    rows = (
        Job.objects.filter(
            gpu=gpu, candidate__submission__in=waiting.values("candidate__submission")
        )
        .order_by()
        .values("candidate__submission", "candidate__submission__submitted_by")
        .annotate(
            last=Max("sent_at"), first=Min("id"), candidates=Count("candidate", distinct=True)
        )
    )
    never = datetime.min.replace(tzinfo=timezone.get_current_timezone())
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in rows:
        key = (
            row["candidates"] > 1,
            row["last"] or never,
            row["first"],
            row["candidate__submission"],
        )
        found.setdefault(row["candidate__submission__submitted_by"], []).append(key)
    by_need = sorted(found.values(), key=lambda keys: _need(keys))
    return [[submission for *_, submission in sorted(keys)] for keys in by_need]


def _need(keys: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """A submitter's place among the others: by when any of theirs was served last."""
    return max(last for _, last, _, _ in keys), min(first for _, _, first, _ in keys)


def _lease_and_send(job: Job) -> bool:
    """Lease the job; send its message when that is committed, never the other way round.

    False when the job stopped waiting since it was read: cancelled, for instance.
    """
    job.sent_at, job.lease_expires_at = timezone.now(), queue_lease(job)
    still_waiting = Job.objects.waiting().filter(pk=job.pk, attempt=job.attempt)
    if not still_waiting.update(sent_at=job.sent_at, lease_expires_at=job.lease_expires_at):
        return False
    transaction.on_commit(partial(send, job))
    return True


def message(job: Job) -> dict[str, object]:
    """All that a board needs to judge: it has no database. JSON-able."""
    candidate = job.candidate
    return {
        "job": str(job.uuid),
        "attempt": job.attempt,
        "task": candidate.task.slug,
        "task_digest": candidate.task.digest,
        "round": candidate.round,
        "source": candidate.source.text,
        "source_sha256": candidate.source_id,
        "time_limit": TIME_LIMIT_SECONDS,
    }


def send(job: Job) -> bool:
    """Put the job's message into the broker. When that is out of reach, the job waits again."""
    try:
        app.send_task(
            "runner.judge_job", kwargs=message(job), queue=job.gpu.queue, retry_policy=PUBLISH
        )
    except (OperationalError, OSError):
        logger.exception("job=%s attempt=%s not sent: no broker", job.uuid, job.attempt)
        Job.objects.filter(pk=job.pk, attempt=job.attempt, state=vocabulary.QUEUED).update(
            sent_at=None, lease_expires_at=None
        )
        return False
    logger.info("job=%s attempt=%s sent to %s", job.uuid, job.attempt, job.gpu.queue)
    return True


def retry(job: Job, reason: str) -> None:
    """This attempt failed: queue the next, or set the job aside after the last. Needs its lock."""
    job.failures += 1
    give_back(job, reason)


def give_back(job: Job, reason: str) -> None:
    """End this attempt, which says nothing about the job, and queue the next. Needs its lock."""
    job.reason = f"attempt {job.attempt}: {reason}"
    job.stage, job.steps_done, job.steps_total, job.started_at, job.device = "", 0, 0, None, None
    job.sent_at = job.lease_expires_at = None
    if job.failures >= settings.KBX_MAX_ATTEMPTS or job.attempt >= MOST_ATTEMPTS:
        job.state, job.ended_at = vocabulary.LOST, timezone.now()
        quota.refund(Job.objects.filter(pk=job.pk))
        job.quota = None
        Board.bump()  # one fewer waits
        logger.error("job=%s lost: %s", job.uuid, job.reason)
    else:
        # Longer each time: a host that is broken or of another version must not burn, within
        # seconds, the attempts of every job there is.
        job.wait_until = lease(settings.KBX_RETRY_SECONDS * 4 ** max(0, job.failures - 1))
        job.state, job.attempt = vocabulary.QUEUED, job.attempt + 1
        logger.warning("job=%s given up: %s", job.uuid, job.reason)
    job.save()
    transaction.on_commit(partial(fill, job.gpu))


def put_back(jobs: QuerySet[Job]) -> int:
    """Try jobs again that were set aside, as if none had failed; charged to nobody.

    Returns how many: none that was lost once and is asked for again already.
    """
    return sum(map(_put_back, jobs.filter(state=vocabulary.LOST).values_list("pk", flat=True)))


@transaction.atomic
def _put_back(key: int) -> bool:
    job = Job.objects.select_for_update().filter(pk=key, state=vocabulary.LOST).first()
    if job is None or not Job.objects.newest().filter(pk=key).exists():
        return False
    job.state, job.attempt, job.failures = vocabulary.QUEUED, job.attempt + 1, 0
    job.wait_until = job.ended_at = None
    job.save()
    Board.bump()  # one more waits
    transaction.on_commit(partial(fill, job.gpu))
    return True


@transaction.atomic
def cancel(jobs: Iterable[Job], reason: str = "") -> int:
    """Take open jobs back. A board that is at one goes on; its report will be ignored.

    What no board has begun is given back to the quota it was charged to; a board's time isn't.
    """
    keys = [job.pk for job in jobs]
    open_ones = Job.objects.open().filter(pk__in=keys)
    quota.refund(open_ones.filter(state=vocabulary.QUEUED))
    ended = {"state": vocabulary.CANCELLED, "ended_at": timezone.now()}
    cancelled = open_ones.update(**ended, **({"reason": reason} if reason else {}))
    if cancelled:
        Board.bump()  # fewer wait
    return cancelled


def cancel_of_submissions(submissions: Iterable[Submission], reason: str) -> int:
    """Take back all that is open of them; returns how many jobs were."""
    return cancel(Job.objects.open().filter(candidate__submission__in=submissions), reason)


def cancel_of_tasks(tasks: Iterable[Task], reason: str) -> int:
    return cancel(Job.objects.open().filter(candidate__task__in=tasks), reason)


def cancel_of_user(user: Any, reason: str) -> int:
    return cancel(Job.objects.open().filter(candidate__submission__submitted_by=user), reason)


def sweep() -> int:
    """Look after overdue leases, then top every window up. Returns how many jobs wait again."""
    waiting_again = 0
    for key in Job.objects.overdue(timezone.now()).values_list("pk", flat=True):
        waiting_again += _look_after(key)
    with_waiting = Job.objects.waiting().order_by().values("gpu")
    for gpu in Gpu.objects.filter(pk__in=with_waiting):
        fill(gpu)
    return waiting_again


@transaction.atomic
def _look_after(key: int) -> bool:
    """Decide about one overdue job; True when it waits to be sent again.

    Silence during a judgement ends the attempt. A message that nobody took ends none: no board has
    failed at this job, however long boards that claim to be there take to start.
    """
    now = timezone.now()
    job = Job.objects.overdue(now).select_for_update().filter(pk=key).first()
    if job is None:  # heard of since, or looked after by somebody else
        return False
    if job.state == vocabulary.RUNNING:
        retry(job, f"the board fell silent during {job.stage or 'the start'}")
        return True
    missing = is_missing(job, now)
    if missing:
        logger.warning("job=%s attempt=%s to be sent again", job.uuid, job.attempt)
        job.sent_at = job.lease_expires_at = None
    else:
        job.lease_expires_at = queue_lease(job)
    job.save(update_fields=["sent_at", "lease_expires_at"])
    return missing


def is_missing(job: Job, now: datetime) -> bool:
    """Whether an overdue message must be gone, rather than wait for its turn or for a board.

    Queues keep their order: gone is what was overtaken by a job sent later, or what boards that are
    there and idle don't take. Without a board nothing is missing, everything waits.
    """
    others = Job.objects.filter(gpu=job.gpu).exclude(pk=job.pk)
    overtaken = Q(sent_at__gt=job.sent_at, started_at__gt=job.sent_at)
    if others.filter(overtaken).exists():
        return True
    present = Device.objects.serving().filter(gpu=job.gpu)
    busy = others.filter(state=vocabulary.RUNNING, lease_expires_at__gt=now)
    return present.exists() and not busy.exists()
