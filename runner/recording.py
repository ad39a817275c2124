"""Writes down what boards report. The only place that makes runs.

Messages come late, twice, or out of order, because brokers do that and hosts die; the job's row
decides what each is worth:

- Every message names a job and an attempt. A start, a heartbeat, a refusal or a failure counts only
  for the attempt that the job is on: an attempt that was given up no longer moves the job.
- A report counts for whatever attempt it comes from, as long as the job is open or lost: the
  judgement of the same candidate against the same contract is as good from a board that was given
  up.
- What comes for a job that has ended otherwise is ignored, so a job has at most one run.
- A report that is not well-formed is our failure, never a verdict: the attempt fails.
- A report by another version of the judge than the site's is refused: the board is shown as
  refused, and the job waits for another one, unspent.
"""

import logging
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from benchmark import aggregates, records, vocabulary
from benchmark.models import Board, Gpu, Measurement, Run, Task, TaskVersion
from runner import dispatch
from runner.accounts import quota
from runner.models import Device, Job
from runner.reports import BOARD, read_report
from runner.schema import Malformed, Prose, Whole, Word

logger = logging.getLogger("kbx.recording")

REASON = Prose(2000)
STEPS = Whole(0, 2**31 - 1)
BOARD_STATE = Word(  # one of them only the site says
    tuple(word for word in vocabulary.BOARD_STATES if word != vocabulary.REFUSED)
)
SAME = "bring host and site to the same version of KernelBench-X, and run sync_tasks on the site"
RUN_FIELDS = (
    "judge_version",
    "task_digest",
    "verdict",
    "stage",
    "detail",
    "speedup",
    "speedup_low",
    "speedup_high",
    "findings",
    "kernels",
    "seconds",
    "environment",
    "log_tail",
    "peak_memory_bytes",
)


@dataclass(frozen=True)
class Standing:
    """Whether a board takes jobs, and if it is kept from it, why and what to do."""

    state: str
    reason: str = ""
    remedy: str = ""


class OtherJudge(Exception):  # noqa: N818  says what the report is
    """A report by a version of the judge that is not the site's."""

    def __init__(self, theirs: str, ours: str) -> None:
        super().__init__(theirs, ours)
        words = f"it reported with version {theirs} of the judge, the site's is {ours}"
        self.stands = Standing(vocabulary.REFUSED, words, SAME)


def record_board(
    device: Any, state: Any = vocabulary.SERVING, reason: Any = "", judge_version: str | None = None
) -> Device | None:
    """Note that a board is there, and how it stands. None, and a line in the log, when the message
    is unusable.

    `judge_version` is the site's own: a board of another one, or with another contract of a task
    that the site judges, is refused. A product that the site meets for the first time becomes a row
    that judges nothing: an admin sees it and switches it on.
    """
    try:
        board = BOARD.read(device, "device")
        stands = _as_told(BOARD_STATE.read(state, "state"), REASON.read(reason, "reason"))
        if judge_version is not None and stands.state in (vocabulary.STARTING, vocabulary.SERVING):
            stands = refusal(board, judge_version) or stands
        return _seen(board, _met(board), stands)
    except Malformed as error:
        logger.warning("board refused: %s", error)
        return None


def _as_told(state: str, reason: str) -> Standing:
    """Only what is broken has a reason, and that always has one."""
    is_broken = state == vocabulary.BROKEN
    return Standing(state, (reason or "its host did not say why") if is_broken else "")


def standing(board: Device) -> dict[str, str]:
    """What the board's host is told."""
    facts = ("serial", "state", "reason", "remedy")
    return {name: getattr(board, name) for name in facts}


def refusal(board: dict[str, Any], judge_version: str) -> Standing | None:
    """Why this board must not judge for this site, and what to do about it; None: it may."""
    theirs = board["judge_version"] or "unknown (older than 3)"
    if board["judge_version"] != judge_version:
        return Standing(
            vocabulary.REFUSED, f"its judge's version is {theirs}, the site's {judge_version}", SAME
        )
    live = dict(Task.objects.current().values_list("slug", "digest"))
    wrong = sorted(slug for slug, digest in live.items() if board["tasks"].get(slug) != digest)
    if not wrong:
        return None
    named = ", ".join(wrong[:5]) + (", ..." if len(wrong) > 5 else "")
    words = f"its contracts of {len(wrong)} of {len(live)} tasks are not the site's: {named}"
    return Standing(vocabulary.REFUSED, words, SAME)


@transaction.atomic
def record_started(job: Any, attempt: Any, device: Any) -> None:
    """A board took the job: it runs, on a lease that heartbeats extend."""
    board = _heard_of(device)
    row = _open_job(job, attempt)
    if row is None:
        return
    row.device = board if board and board.gpu_id == row.gpu_id else None
    row.started_at = timezone.now()
    row.stage, row.steps_done, row.steps_total = "", 0, 0
    _keep_running(row)


@transaction.atomic
def record_heartbeat(job: Any, attempt: Any, progress: dict[str, Any]) -> None:
    """The board is still at it. `progress`: stage, done, total. Also counts as a start."""
    row = _open_job(job, attempt)
    if row is None:
        return
    try:
        row.stage = Word(("", *vocabulary.STAGES)).read(progress.get("stage"), "stage")
        row.steps_done = STEPS.read(progress.get("done"), "done")
        row.steps_total = STEPS.read(progress.get("total"), "total")
    except Malformed as error:
        logger.warning("job=%s heartbeat's progress ignored: %s", row.uuid, error)
    row.started_at = row.started_at or timezone.now()
    if row.device_id:
        Device.objects.filter(pk=row.device_id).update(last_seen_at=timezone.now())
    _keep_running(row)


def record_report(
    job: Any, attempt: Any, device: Any, report: Any, judge_version: str | None = None
) -> Run | None:
    """Turn a report into a run, once. None when the job has ended or the report is bad, or by
    another judge than `judge_version`, the site's own.
    """
    try:
        with transaction.atomic():
            return _record(job, device, report, judge_version)
    except OtherJudge as error:
        logger.error("job=%s report refused: %s", job, error.stands.reason)
        _heard_of(device, error.stands)
        record_returned(job, attempt, f"a report was refused: {error.stands.reason}")
        return None
    except (Malformed, IntegrityError) as error:
        logger.exception("job=%s attempt=%s report refused", job, attempt)
        record_failure(job, attempt, f"the judge's report was refused: {error}")
        return None


@transaction.atomic
def record_declined(job: Any, attempt: Any, reason: Any) -> None:
    """This GPU can't judge the candidate: the job ends without a run."""
    row = _open_job(job, attempt)
    if row is None:
        return
    row.reason = REASON.read(reason, "reason")
    quota.refund(Job.objects.filter(pk=row.pk))
    row.quota = None
    _close(row, vocabulary.DECLINED)
    Board.bump()  # one fewer waits
    logger.info("job=%s declined: %s", row.uuid, row.reason)


@transaction.atomic
def record_failure(job: Any, attempt: Any, reason: Any) -> None:
    """We failed on this attempt: the job is tried again, or lost after the last attempt."""
    row = _open_job(job, attempt)
    if row is None:
        return
    dispatch.retry(row, REASON.read(reason, "reason"))


@transaction.atomic
def record_returned(job: Any, attempt: Any, reason: Any) -> None:
    """The board gives the job back, which is not at fault: it waits for another, unspent."""
    row = _open_job(job, attempt)
    if row is None:
        return
    dispatch.give_back(row, REASON.read(reason, "reason"))


def _heard_of(device: Any, stands: "Standing | None" = None) -> Device | None:
    """The row of a board that sent a message; None where it doesn't say properly who it is."""
    try:
        board = BOARD.read(device, "device")
    except Malformed as error:
        logger.warning("board refused: %s", error)
        return None
    return _seen(board, _met(board), stands)


def _open_job(job: Any, attempt: Any) -> Job | None:
    """The job, locked, when it is open and on this attempt."""
    row = _locked(job, vocabulary.OPEN_JOB_STATES)
    if row is None or row.attempt != attempt:
        logger.info("job=%s attempt=%s message ignored: over or given up", job, attempt)
        return None
    return row


def _locked(job: Any, states: Iterable[str]) -> Job | None:
    try:
        uuid = UUID(job)
    except (TypeError, ValueError, AttributeError):
        return None
    return Job.objects.select_for_update().filter(uuid=uuid, state__in=states).first()


def _keep_running(row: Job) -> None:
    row.state = vocabulary.RUNNING
    row.lease_expires_at = dispatch.lease(settings.KBX_RUN_LEASE)
    row.sent_at = row.sent_at or timezone.now()
    row.save()


def _close(row: Job, state: str) -> None:
    row.state = state
    row.ended_at = timezone.now()
    row.save()
    gpu = row.gpu
    transaction.on_commit(lambda: dispatch.fill(gpu))


def _met(board: dict[str, Any]) -> Gpu:
    """The board's product. Its peaks are unknown until an admin or `sync_tasks` enters them."""
    facts = {
        "name": board["name"] or board["gpu"],
        "architecture": board["architecture"],
        "memory_bytes": board["memory"] or None,
        "can_time": board["gpu"] != vocabulary.CPU_INTERPRETER,
    }
    gpu, is_new = Gpu.objects.get_or_create(slug=board["gpu"], defaults=facts)
    if is_new:
        logger.warning("gpu=%s met on host %s: judges nothing yet", gpu.slug, board["host"])
    return gpu


def _seen(board: dict[str, Any], gpu: Gpu, stands: Standing | None = None) -> Device:
    """The board's row, made or refreshed; with how it stands where that was said."""
    told = {} if stands is None else {**asdict(stands), **_versions(board)}
    row, _ = Device.objects.update_or_create(
        host=board["host"],
        serial=board["serial"],
        defaults={"gpu": gpu, "jobs": board["jobs"], "last_seen_at": timezone.now(), **told},
    )
    return row


def _versions(board: dict[str, Any]) -> dict[str, str]:
    return {name: board[name] for name in ("judge_version", "suite_digest")}


def _record(job: Any, device: Any, report: Any, judge_version: str | None) -> Run | None:
    row = _locked(job, (*vocabulary.OPEN_JOB_STATES, vocabulary.LOST))
    if row is None:
        logger.info("job=%s report ignored: the job has ended", job)
        return None
    clean, board = read_report(report), BOARD.read(device, "device")
    if judge_version is not None and clean["judge_version"] != judge_version:
        raise OtherJudge(clean["judge_version"], judge_version)
    _refuse_another_candidates(row, clean)
    if board["gpu"] != row.gpu.slug:
        raise Malformed("device.gpu", f"{row.gpu.slug!r}, not {board['gpu']!r}")
    run = Run.objects.create(
        candidate_id=row.candidate_id,
        gpu_id=row.gpu_id,
        origin=vocabulary.MEASURED,
        is_suspect=clean["suspect"] or any(found["suspect"] for found in clean["findings"]),
        **{name: clean[name] for name in RUN_FIELDS},
    )
    Measurement.objects.bulk_create(
        Measurement(run=run, position=at, **case) for at, case in enumerate(clean["cases"])
    )
    row.run = run
    row.device = _seen(board, row.gpu)
    row.reason = ""
    _close(row, vocabulary.DONE)
    Board.bump()
    former = records.former(run)
    aggregates.refresh_run(run)
    records.hold(run, former)
    logger.info("job=%s run=%s verdict=%s", row.uuid, run.uuid, run.verdict)
    return run


def _refuse_another_candidates(row: Job, report: dict[str, Any]) -> None:
    """A report must be about this job: its task, round, source, GPU, and a known contract."""
    candidate = row.candidate
    expected = {
        "task": candidate.task.slug,
        "round": candidate.round,
        "source_sha256": candidate.source_id,
        "device": row.gpu.slug,
    }
    for name, value in expected.items():
        if report[name] != value:
            raise Malformed(f"report.{name}", f"{value!r}, not {report[name]!r}")
    versions = TaskVersion.objects.filter(task=candidate.task, digest=report["task_digest"])
    if not versions.exists():
        raise Malformed("report.task_digest", "a version of the task that this site has had")
    if not row.gpu.can_time and report["speedup"] is not None:
        raise Malformed("report.speedup", f"null: {row.gpu.slug} can't time")
