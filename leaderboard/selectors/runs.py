"""A run's page: one judgement with everything that was found."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from benchmark import vocabulary
from benchmark.models import Audit, Measurement, Run, Source, Submission
from leaderboard.figures import Interval, interval, verdict_word
from leaderboard.rows import COUNTED, Recorded
from leaderboard.selectors.board import recorded_row, state_of

KNOWN_RUNS = 16_384  # some 5 MB
READ = (  # of a run and of what it belongs to: their other texts are long
    *("uuid", "origin", "task_digest", "judge_version", "verdict", "stage", "detail", "speedup"),
    *("speedup_low", "speedup_high", "is_suspect", "findings", "kernels", "seconds", "environment"),
    *("log_tail", "peak_memory_bytes", "created_at", "candidate__round", "candidate__place"),
    *("candidate__source_id", "gpu__name", "gpu__slug", "gpu__architecture", "gpu__can_time"),
    *("candidate__task__slug", "candidate__task__category", "candidate__task__digest"),
    *(
        f"candidate__submission__{name}"
        for name in ("uuid", "label", "visibility", "withdrawn_at", "recorded")
    ),
    *("candidate__submission__method__name", "candidate__submission__method__slug"),
)


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    case: str
    kind: str
    shape: str
    dtype: str
    family: str
    state: str
    verdict: str
    detail: str
    error: float | None
    reference_error: float | None
    tolerance: float | None
    unit: str
    candidate_ms: float | None
    reference_ms: float | None
    candidate_interval: Interval | None
    reference_interval: Interval | None
    speedup: float | None
    speedup_interval: Interval | None
    tflops: float | None
    gbytes: float | None
    own_share: float | None
    samples: int | None


@dataclass(frozen=True, slots=True)
class AuditRow:
    verdict: str
    meaning: str
    reason: str
    note: str
    evidence: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RunPage:
    uuid: UUID
    task: str
    category: str
    category_label: str
    method: str
    method_slug: str
    submission: UUID
    label: str
    visibility: str
    withdrawn_at: datetime | None
    gpu: str
    gpu_slug: str
    architecture: str
    can_time: bool
    round: int
    origin: str
    origin_text: str
    verdict: str
    word: str
    meaning: str
    stage: str
    detail: str
    speedup: Interval | None
    state: str
    task_digest: str
    judge_version: str
    source: str
    source_sha256: str
    place: str
    findings: tuple[dict, ...]
    kernels: tuple[dict, ...]
    seconds: tuple[tuple[str, Any], ...]
    environment: tuple[tuple[str, Any], ...]
    log_tail: str
    peak_memory_bytes: int | None
    created_at: datetime
    measurements: tuple[MeasurementRow, ...]
    audits: tuple[AuditRow, ...]
    recorded: Recorded | None
    source_is_stored: bool
    source_is_hidden: bool

    @property
    def timed(self) -> tuple[MeasurementRow, ...]:
        """The cases behind the speedup."""
        return tuple(row for row in self.measurements if row.speedup is not None)

    @property
    def error_unit(self) -> str:
        """What errors are counted in; empty where no case came so far as to have one."""
        return next((row.unit for row in self.measurements if row.unit), "")

    @property
    def kernels_profiled(self) -> bool:
        """Whether the device could say more about the kernels than how often they were called."""
        facts = ("device_ms", "registers", "spills", "shared_bytes")
        return any(kernel.get(fact) is not None for kernel in self.kernels for fact in facts)

    @property
    def file_name(self) -> str:
        return f"{self.task}.py"


@dataclass(frozen=True, slots=True)
class Access:
    """What a visitor may see of a run, as its submission is now. Visitors with equal access see the
    same of it.
    """

    submission: int
    visibility: str
    is_withdrawn: bool
    may_read: bool  # the source, and what quotes it


def access(uuid: UUID, user: Any) -> Access | None:
    """None where the run doesn't exist or this user may not see it: no difference shown."""
    try:
        submission = _submission(uuid)
    except Run.DoesNotExist:
        return None
    told = Submission.objects.visible_to(user).telling_sources(user).filter(pk=submission)
    rows = told.order_by().values_list(*("visibility", "withdrawn_at", "shows_sources"))
    for visibility, withdrawn_at, may_read in rows:
        return Access(submission, visibility, withdrawn_at is not None, may_read)
    return None


@lru_cache(maxsize=KNOWN_RUNS)
def _submission(uuid: UUID) -> int:
    """Whose candidate the run judged, which never changes. `Run.DoesNotExist` is not remembered."""
    found: int = Run.objects.values_list("candidate__submission_id", flat=True).get(uuid=uuid)
    return found


def run_page(uuid: UUID, seen_by: Access) -> RunPage:
    """Everything of the run that this access shows.

    Several small queries: a database plans one over all these tables for longer than it runs it.
    """
    run = (
        Run.objects.filter(uuid=uuid, candidate__submission=seen_by.submission)
        .select_related("gpu", "candidate__task", "candidate__submission__method")
        .only(*READ)
        .get()
    )
    found = _page(run, Source.objects.get(pk=run.candidate.source_id))
    return found if seen_by.may_read or seen_by.is_withdrawn else _without_source(found)


def _without_source(page: RunPage) -> RunPage:
    """The same results, without the text and what quotes it: messages of compilers, logs."""
    quoting = page.verdict in (vocabulary.LOAD_ERROR, vocabulary.CALL_ERROR)
    return replace(
        page,
        source="",
        source_is_stored=False,
        source_is_hidden=True,
        log_tail="",
        detail="" if quoting else page.detail,
        measurements=tuple(
            replace(row, detail="") if row.verdict == vocabulary.CALL_ERROR else row
            for row in page.measurements
        ),
    )


def run_source(uuid: UUID, user: Any) -> tuple[str, str] | None:
    """The candidate's (task, text), for download; None where hidden, withdrawn or not stored."""
    return (
        Run.objects.filter(
            candidate__submission__in=Submission.objects.with_sources_for(user),
            candidate__source__size__gt=0,
            uuid=uuid,
        )
        .values_list("candidate__task__slug", "candidate__source__text")
        .first()
    )


def _page(run: Run, source: Source) -> RunPage:
    candidate, submission = run.candidate, run.candidate.submission
    task = candidate.task
    speedup = interval(run.speedup, run.speedup_low, run.speedup_high)
    if not run.gpu.can_time:
        speedup = None
    audits = tuple(_audits(run.audits.all()))
    newest = audits[0].verdict if audits else None
    state = state_of(run.task_digest == task.digest, run.is_suspect, newest)
    word = verdict_word(run.verdict, speedup.value if speedup else None)
    return RunPage(
        uuid=run.uuid,
        task=task.slug,
        category=task.category,
        category_label=vocabulary.CATEGORY_BY_SLUG[task.category].label,
        method=submission.method.name,
        method_slug=submission.method.slug,
        submission=submission.uuid,
        label=submission.label,
        visibility=submission.visibility,
        withdrawn_at=submission.withdrawn_at,
        gpu=run.gpu.name,
        gpu_slug=run.gpu.slug,
        architecture=run.gpu.architecture,
        can_time=run.gpu.can_time,
        round=candidate.round,
        origin=run.origin,
        origin_text=vocabulary.ORIGINS[run.origin],
        verdict=run.verdict,
        word=word if state == COUNTED else state,
        meaning=vocabulary.VERDICTS[run.verdict],
        stage=run.stage,
        detail=run.detail,
        speedup=speedup,
        state=state,
        task_digest=run.task_digest,
        judge_version=run.judge_version,
        source=source.text,
        source_sha256=source.sha256,
        place=candidate.place,
        findings=tuple(run.findings),
        kernels=tuple(run.kernels),
        seconds=tuple(run.seconds.items()),
        environment=tuple(_flat(run.environment)),
        log_tail=run.log_tail,
        peak_memory_bytes=run.peak_memory_bytes,
        created_at=run.created_at,
        measurements=tuple(_measurements(run.measurements.all(), run.gpu.can_time)),
        audits=audits,
        recorded=recorded_row(submission.recorded, candidate.round)
        if submission.recorded
        else None,
        source_is_stored=source.is_stored,
        source_is_hidden=False,
    )


def _flat(tree: Any, path: str = "") -> Iterable[tuple[str, Any]]:
    """Leaves of nested objects with the words that lead to them: {"a": {"b": 1}} is "a b", 1.

    Left out is what says nothing: empty text, and the 0 bytes of a device that has no memory.
    """
    if isinstance(tree, dict):
        for name, branch in tree.items():
            yield from _flat(branch, f"{path} {name}".strip())
    elif isinstance(tree, list):
        yield path.replace("_", " "), ", ".join(map(str, tree))
    elif isinstance(tree, bool):
        yield path.replace("_", " "), "yes" if tree else "no"
    elif tree not in ("", None) and (path, tree) != ("device memory", 0):
        yield path.replace("_", " "), tree


def _audits(found: Iterable[Audit]) -> Iterable[AuditRow]:
    """Newest first."""
    for audit in found:
        yield AuditRow(
            audit.verdict,
            vocabulary.AUDIT_VERDICTS[audit.verdict],
            audit.reason,
            audit.note,
            audit.evidence,
            audit.created_at,
        )


def _measurements(found: Iterable[Measurement], can_time: bool) -> Iterable[MeasurementRow]:
    for m in found:
        seconds = m.candidate_ms / 1e3 if m.candidate_ms and can_time else None
        yield MeasurementRow(
            case=m.case,
            kind=m.kind,
            shape=m.shape,
            dtype=m.dtype,
            family=m.family,
            state=m.state,
            verdict=m.verdict,
            detail=m.detail,
            error=m.error,
            reference_error=m.reference_error,
            tolerance=m.tolerance,
            unit=m.unit,
            candidate_ms=m.candidate_ms if can_time else None,
            reference_ms=m.reference_ms if can_time else None,
            candidate_interval=interval(m.candidate_ms, m.candidate_ms_low, m.candidate_ms_high),
            reference_interval=interval(m.reference_ms, m.reference_ms_low, m.reference_ms_high),
            speedup=m.speedup if can_time else None,
            speedup_interval=interval(m.speedup, m.speedup_low, m.speedup_high),
            tflops=m.flops / seconds / 1e12 if m.flops and seconds else None,
            gbytes=m.bytes / seconds / 1e9 if m.bytes and seconds else None,
            own_share=m.own_share,
            samples=m.samples,
        )
