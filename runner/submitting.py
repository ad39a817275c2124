"""Takes a submission in: what would happen (`plan`), make it happen (`accept`), take it back.

Uploads have been read by `runner.intake` into candidates and refusals by then; nothing here parses.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from benchmark import aggregates, curation, vocabulary
from benchmark.models import Board, Candidate, Gpu, Method, Source, Submission, Task
from runner import building, dispatch
from runner.accounts import quota
from runner.intake import Found, Intake, KnownTasks, TaskName
from runner.models import Job

logger = logging.getLogger("kbx.submitting")

BATCH = 500
LABEL_LENGTH = 80
METHOD_LENGTH = 120
SLUG_LENGTH = 80


class SubmissionRefused(Exception):  # noqa: N818  an answer, no error of ours
    """Nothing was written: the reason, and what its author can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True)
class Plan:
    """What `accept` would do with an upload. `known` are there already with the same source."""

    new: tuple[Found, ...]
    known: tuple[Found, ...]
    clashing: tuple[Found, ...]
    adds_to: Submission | None
    jobs: dict[str, int] = field(default_factory=dict)  # by GPU slug


def known_tasks() -> KnownTasks:
    """The tasks that candidates can be for now, as intake looks them up."""
    rows = list(Task.objects.current())
    return KnownTasks(
        names={
            row.slug: TaskName(
                row.slug, vocabulary.CATEGORY_BY_SLUG[row.category].name, tuple(row.aliases)
            )
            for row in rows
        },
        aliases={alias: row.slug for row in rows for alias in row.aliases},
        descriptions={row.slug: row.description for row in rows},
    )


def method_named(name: str, kind: str = "model") -> Method:
    """The method of this name; a new one is not stored yet: `accept` does that.

    Names that differ only in case and spaces are one, and no others: GPT-4.1 is not GPT-41.
    """
    clean = one_line(name)
    slug = slugify(clean.replace(".", "-"))
    if not slug or not 0 < len(clean) <= METHOD_LENGTH or not clean.isprintable():
        raise SubmissionRefused(
            f"{clean[:40]!a} can't name a method",
            f"use 1 to {METHOD_LENGTH} visible characters, a Latin letter or a digit among them",
        )
    known = Method.objects.filter(name__iexact=clean).order_by("id").first()
    known = known or curation.merged_by_name(clean)
    return known or Method(slug=_free_slug(slug, clean), name=clean, kind=kind)


def one_line(text: str) -> str:
    """The text with single spaces for line ends, tabs and runs of spaces."""
    return " ".join(text.split())


def _free_slug(slug: str, name: str) -> str:
    """The slug, or where it is cut or another name's, with a tail that is this name's own."""
    taken = Method.objects.filter(slug=slug).exists() or curation.merged(slug)
    if len(slug) <= SLUG_LENGTH and not taken:
        return slug
    tail = hashlib.sha256(name.casefold().encode()).hexdigest()[:8]
    return f"{slug[: SLUG_LENGTH - len(tail) - 1].strip('-')}-{tail}"


def plan(
    intake: Intake, method: Method | None, label: str, gpus: Sequence[Gpu] | None = None
) -> Plan:
    """Sort an upload's candidates into new, known and clashing ones. Writes nothing."""
    submission = (
        Submission.objects.filter(method=method, label=label).first()
        if method and method.pk
        else None
    )
    held = _sources_of(submission)
    new, known, clashing = [], [], []
    for found in intake.candidates:
        sha256 = held.get((found.task, found.round))
        if sha256 is None:
            new.append(found)
        elif sha256 == Source.digest(found.source):
            known.append(found)
        else:
            clashing.append(found)
    return Plan(tuple(new), tuple(known), tuple(clashing), submission, _count_jobs(new, gpus))


def accept(
    method: Method,
    label: str,
    intake: Intake,
    user: Any = None,
    visibility: str = vocabulary.PUBLIC,
    *,
    gpus: Sequence[Gpu] | None = None,
) -> Submission:
    """Store an upload whole or not at all, and send its candidates to the judging GPUs.

    Another upload under the same label adds what is new (more tasks, later rounds); it never
    replaces. `SubmissionRefused` when it can't be taken. Anonymous uploads have `user` None.
    """
    clean = clean_label(label)
    _refuse_banned(user)
    boards = list(Gpu.objects.judging() if gpus is None else gpus)
    if not intake.candidates:
        raise SubmissionRefused("the upload holds no candidate", _first_refusal(intake))
    with transaction.atomic():
        submission = _submission(_stored(method), clean, _author(user), visibility)
        sorted_out = plan(intake, submission.method, clean, boards)
        _refuse_clashes(sorted_out)
        candidates = _store(submission, sorted_out.new)
        charged = _charge(_author(user), dispatch.judgements(candidates, boards))
        submission.notes = [*submission.notes, *_notes(intake)]
        submission.save(update_fields=["notes"])
        jobs = dispatch.enqueue(candidates, boards, charged)
        building.request(candidates)
        Board.bump()
    logger.info("submission=%s candidates=%d jobs=%d", submission.uuid, len(candidates), jobs)
    return submission


@transaction.atomic
def withdraw(submission: Submission) -> int:
    """Take a submission off the board and its open jobs back; the rows stay as a tombstone."""
    submission.withdrawn_at = submission.withdrawn_at or timezone.now()
    submission.save(update_fields=["withdrawn_at"])
    cancelled = dispatch.cancel(Job.objects.filter(candidate__submission=submission))
    # Last, as when a report is recorded: jobs are locked before the board, never the other way.
    Board.bump()
    aggregates.refresh_submission(submission)
    return cancelled


@transaction.atomic
def judge_again(submissions: Iterable[Submission]) -> int:
    """Send the submissions' candidates to every judging GPU and to those they were judged on."""
    asked = 0
    for submission in submissions:
        candidates = submission.candidates.select_related("task").filter(
            task__retired_at__isnull=True, source__size__gt=0
        )
        judged_on = Gpu.objects.filter(jobs__candidate__submission=submission)
        asked += dispatch.enqueue(candidates, (Gpu.objects.judging() | judged_on).distinct())
    return asked


def progress(submission: Submission) -> dict[str, int]:
    """How many jobs of the submission stand in each state; every state is named."""
    jobs = Job.objects.filter(candidate__submission=submission).order_by()
    counts = Counter(jobs.values_list("state", flat=True))
    return {state: counts[state] for state in vocabulary.JOB_STATES}


def verdicts(submission: Submission) -> dict[str, int]:
    """How many of the submission's finished jobs ended in each verdict."""
    jobs = Job.objects.filter(candidate__submission=submission, run__isnull=False).order_by()
    return dict(Counter(jobs.values_list("run__verdict", flat=True)))


def clean_label(label: str) -> str:
    """The label on one line. What nobody sees is refused: two labels could look alike."""
    clean = one_line(label)
    if not 0 < len(clean) <= LABEL_LENGTH or not clean.isprintable():
        raise SubmissionRefused(
            "the label is unusable", f"use 1 to {LABEL_LENGTH} visible characters"
        )
    return clean


def _refuse_banned(user: Any) -> None:
    try:
        curation.refuse_banned(user)
    except curation.Refused as refused:
        raise SubmissionRefused(str(refused), "write to the moderators of this site") from refused


def _stored(method: Method) -> Method:
    """The method's row, made when it is new."""
    if method.pk:
        return method
    facts = {"name": method.name, "kind": method.kind}
    return Method.objects.get_or_create(slug=method.slug, defaults=facts)[0]


def _charge(user: Any, judgements: dict[Gpu, int]) -> dict[int, int]:
    """Charge the submitter's quotas of today, or refuse the upload."""
    try:
        return quota.charge(user, judgements)
    except quota.Exceeded as exceeded:
        raise SubmissionRefused(exceeded.reason, exceeded.remedy) from exceeded


def _author(user: Any) -> Any:
    return user if user is not None and user.is_authenticated else None


def _first_refusal(intake: Intake) -> str:
    if not intake.refusals:
        return "upload at least one Triton source named like a task"
    refusal = intake.refusals[0]
    return f"{refusal.place}: {refusal.reason}; {refusal.remedy}"


def _submission(method: Method, label: str, author: Any, visibility: str) -> Submission:
    """The submission of this label, locked; made when new, refused when it is somebody else's."""
    lines = Submission.objects.select_for_update().filter(method=method, label=label)
    submission = lines.first()
    if submission is None:
        try:
            with transaction.atomic():
                return Submission.objects.create(
                    method=method, label=label, submitted_by=author, visibility=visibility
                )
        except IntegrityError:  # somebody was quicker: add to that one, if it is ours
            submission = lines.get()
    if submission.submitted_by != author:
        raise SubmissionRefused(
            f"the label {label!r} can't be used for {method}", "use another label"
        )
    if submission.withdrawn_at is not None:
        raise SubmissionRefused(f"{label!r} was withdrawn", "use another label")
    return submission


def _sources_of(submission: Submission | None) -> dict[tuple[str, int], str]:
    if submission is None:
        return {}
    rows = submission.candidates.order_by().values_list("task__slug", "round", "source_id")
    return {(slug, round_): sha256 for slug, round_, sha256 in rows}


def _refuse_clashes(sorted_out: Plan) -> None:
    if not sorted_out.clashing:
        return
    first = sorted_out.clashing[0]
    raise SubmissionRefused(
        f"{len(sorted_out.clashing)} candidates are there already with another source, the first "
        f"is {first.task} in round {first.round} ({first.place})",
        "upload them as a later round, or under another label",
    )


def _store(submission: Submission, found: Iterable[Found]) -> list[Candidate]:
    """Sources once by SHA-256, candidates once each; their tasks are loaded."""
    entries = list(found)
    tasks = Task.objects.current().in_bulk({entry.task for entry in entries}, field_name="slug")
    unknown = sorted({entry.task for entry in entries} - set(tasks))
    if unknown:
        raise SubmissionRefused(f"no task is named {unknown[0]!r}", "see the list of tasks")
    _store_sources({Source.digest(entry.source): entry.source for entry in entries})
    return Candidate.objects.bulk_create(
        [
            Candidate(
                submission=submission,
                task=tasks[entry.task],
                round=entry.round,
                source_id=Source.digest(entry.source),
                place=entry.place[:300],
            )
            for entry in entries
        ],
        batch_size=BATCH,
    )


def _store_sources(texts: dict[str, str]) -> None:
    """Texts by SHA-256, each once; one of which a recorded result told the digest alone is
    completed.
    """
    rows = [Source(sha256=key, text=text, size=len(text.encode())) for key, text in texts.items()]
    Source.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    absent = set(Source.objects.filter(size=0, pk__in=texts).values_list("pk", flat=True))
    Source.objects.bulk_update([row for row in rows if row.pk in absent], ["text", "size"])


def _notes(intake: Intake) -> list[dict[str, str]]:
    """Refusals, and what intake changed about a candidate: shown on the submission's page."""
    refused = [refusal.to_json() for refusal in intake.refusals]
    remarks = [
        {"place": found.place, "reason": note, "remedy": ""}
        for found in intake.candidates
        for note in found.notes
    ]
    return refused + remarks


def _count_jobs(found: Sequence[Found], gpus: Sequence[Gpu] | None) -> dict[str, int]:
    boards = Gpu.objects.judging() if gpus is None else gpus
    tasks = Task.objects.in_bulk({entry.task for entry in found}, field_name="slug")
    return {
        gpu.slug: sum(e.task in tasks and tasks[e.task].applies_to(gpu) for e in found)
        for gpu in boards
    }
