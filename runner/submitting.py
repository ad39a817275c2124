"""Takes a submission in: what would happen (`plan`), make it happen (`accept`), take it back.

Uploads have been read by `runner.intake` into candidates and refusals by then; nothing here parses.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import slugify

from benchmark import aggregates, curation, records, vocabulary
from benchmark.models import Board, Candidate, Gpu, Method, Source, Submission, Task
from runner import building, claiming, dispatch
from runner.accounts import quota
from runner.intake import Claim, Found, Intake, KnownTasks, Refusal, TaskName
from runner.models import Job

logger = logging.getLogger("kbx.submitting")

BATCH = 500
LABEL_LENGTH = 80
METHOD_LENGTH = 120
SLUG_LENGTH = 80


LOOSE = (
    "claimed results without the sources that they are about",
    "send the predictions along with them, or results that hold `code`",
)


class SubmissionRefused(Exception):  # noqa: N818  an answer, no error of ours
    """Nothing was written: the reason, and what its author can do about it."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}: {remedy}")
        self.reason, self.remedy = reason, remedy


@dataclass(frozen=True)
class Plan:
    """What `accept` would do with an upload. `known` are there already with the same source.

    `claims` are kept as claimed; `loose` ones are not: nothing says which source they are about.
    """

    new: tuple[Found, ...]
    known: tuple[Found, ...]
    clashing: tuple[Found, ...]
    adds_to: Submission | None
    jobs: dict[str, int] = field(default_factory=dict)  # by GPU slug
    claims: tuple[Claim, ...] = ()
    loose: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Held:
    """A candidate that a submission has; of a claimed or recorded one no source is stored."""

    sha256: str
    is_stored: bool


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
    held = _held_by(submission)
    new: list[Found] = []
    known: list[Found] = []
    clashing: list[Found] = []
    for found in intake.candidates:
        there = held.get((found.task, found.round))
        if there is None:
            new.append(found)
        elif there.sha256 != Source.digest(found.source):
            clashing.append(found)
        else:
            (known if there.is_stored else new).append(found)
    places = held.keys() | {(found.task, found.round) for found in new}
    claims: list[Claim] = []
    loose: list[Claim] = []
    for claim in intake.claims:
        has_source = claim.sha256 or (claim.task, claim.round) in places
        (claims if has_source else loose).append(claim)
    return Plan(
        tuple(new),
        tuple(known),
        tuple(clashing),
        submission,
        _count_jobs(new, gpus),
        tuple(claims),
        tuple(loose),
    )


def accept(
    method: Method,
    label: str,
    intake: Intake,
    user: Any = None,
    visibility: str = vocabulary.PUBLIC,
    *,
    source_visibility: str = vocabulary.SHOWN,
    gpus: Sequence[Gpu] | None = None,
    claimed_on: Gpu | None = None,
) -> Submission:
    """Store an upload whole or not at all, and send its candidates to the judging GPUs.

    Another upload under the same label adds what is new (more tasks, later rounds); it never
    replaces, and leaves the submission as visible as it is. Claimed results go to their own lane,
    as results on `claimed_on`. `SubmissionRefused` when it can't be taken. Anonymous uploads have
    `user` None.
    """
    clean = clean_label(label)
    boards = list(Gpu.objects.judging() if gpus is None else gpus)
    if intake.is_empty:
        raise SubmissionRefused("the upload holds no candidate", _first_refusal(intake))
    if intake.claims and claimed_on is None:
        raise SubmissionRefused("claimed results without a GPU", "say on which GPU they were found")
    with transaction.atomic():
        _refuse_banned(_locked(_author(user)))
        new = {"visibility": visibility, "source_visibility": source_visibility}
        submission = _submission(_stored(method), clean, _author(user), new)
        sorted_out = plan(intake, submission.method, clean, boards)
        refuse_clashes(sorted_out)
        if not intake.candidates and not sorted_out.claims:
            raise SubmissionRefused(*LOOSE)
        candidates = _store(submission, sorted_out.new)
        charged = _charge(_author(user), dispatch.judgements(candidates, boards))
        jobs = dispatch.enqueue(candidates, boards, charged)
        submission.notes = [*submission.notes, *_notes(intake, sorted_out, submission.notes)]
        submission.told_at = None if jobs else submission.told_at
        submission.save(update_fields=["notes", "told_at"])
        building.request(candidates)
        Board.bump()
        if claimed_on is not None and sorted_out.claims:
            claiming.store(submission, sorted_out.claims, claimed_on)
    logger.info("submission=%s candidates=%d jobs=%d", submission.uuid, len(candidates), jobs)
    return submission


@transaction.atomic
def change_visibility(
    submission: Submission, visibility: str, source_visibility: str, by: Any = None
) -> None:
    """Publish a submission, or change otherwise who sees it and its sources. `by`: who asks."""
    row = Submission.objects.select_for_update().get(pk=submission.pk)
    if row.withdrawn_at is not None:
        raise SubmissionRefused(f"{row.label!r} was withdrawn", "submit under another label")
    if visibility == vocabulary.PRIVATE and row.submitted_by_id is None:
        raise SubmissionRefused("nobody's submission can't be private", "make it unlisted")
    if visibility != row.visibility:
        _refuse_banned(row.submitted_by)  # what a ban hid stays hidden
    row.source_visibility = source_visibility
    row.save(update_fields=["source_visibility"])
    curation.log(_author(by), [row], f"Made {visibility}, sources {source_visibility}")
    records.change_visibility(row, visibility)  # which may be a new first place


@transaction.atomic
def cancel(submission: Submission, by: Any = None) -> int:
    """Take back what is not judged yet; verdicts stay. Returns how many jobs that were."""
    words = f"taken back by {_role(submission, by)}"
    cancelled = dispatch.cancel_of_submissions([submission], words)
    Submission.objects.filter(pk=submission.pk).update(told_at=timezone.now())
    curation.log(_author(by), [submission], f"Open judgements taken back: {cancelled}")
    logger.info("submission=%s cancelled=%d", submission.uuid, cancelled)
    return cancelled


@transaction.atomic
def withdraw(submission: Submission, by: Any = None, reason: str = "") -> int:
    """Take a submission off the board and its open jobs back; the rows stay as a tombstone.

    Whoever withdraws another's says why. Withdrawing it again changes nothing. Returns how many
    jobs were taken back.
    """
    row = Submission.objects.select_for_update().get(pk=submission.pk)
    if row.withdrawn_at is not None:
        return 0
    if by is not None and row.submitted_by_id != by.pk and not reason:
        raise SubmissionRefused(
            "it is not yours, and no reason was given", "say why: it is kept in the history"
        )
    row.withdrawn_at = submission.withdrawn_at = timezone.now()
    row.save(update_fields=["withdrawn_at"])
    role = _role(row, by)
    cancelled = dispatch.cancel_of_submissions([row], f"withdrawn by {role}")
    said = f": {reason}" if reason else ""
    curation.log(_author(by), [row], f"Withdrawn by {role}, {cancelled} jobs cancelled{said}")
    # Last, as when a report is recorded: jobs are locked before the board, never the other way.
    Board.bump()
    aggregates.refresh_submission(row)
    return cancelled


def _role(submission: Submission, by: Any) -> str:
    """Who asks, as everybody may read it."""
    is_own = by is not None and submission.submitted_by_id == by.pk
    return "its submitter" if is_own else "a moderator"


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


def _locked(author: Any) -> Any:
    """The account, held until the transaction ends: a ban that is under way goes first."""
    if author is not None:
        get_user_model().objects.select_for_update().get(pk=author.pk)
    return author


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


def refuse_taken(method: Method, label: str, user: Any) -> None:
    """`SubmissionRefused` where `accept` would refuse the user or the label; locks nothing."""
    _refuse_banned(user)
    there = Submission.objects.filter(method_id=method.pk, label=label).first()
    if method.pk and there is not None:
        _refuse_others(there, _author(user))


def _submission(method: Method, label: str, author: Any, new: dict[str, str]) -> Submission:
    """The submission of this label, locked; made when new, refused when it is somebody else's."""
    lines = Submission.objects.select_for_update().filter(method=method, label=label)
    submission = lines.first()
    if submission is None:
        try:
            with transaction.atomic():
                return Submission.objects.create(
                    method=method, label=label, submitted_by=author, **new
                )
        except IntegrityError:  # somebody was quicker: add to that one, if it is ours
            submission = lines.get()
    _refuse_others(submission, author)
    return submission


def _refuse_others(submission: Submission, author: Any) -> None:
    label = submission.label
    if submission.submitted_by != author:
        raise SubmissionRefused(
            f"the label {label!r} can't be used for {submission.method}", "use another label"
        )
    if submission.withdrawn_at is not None:
        raise SubmissionRefused(f"{label!r} was withdrawn", "use another label")


def _held_by(submission: Submission | None) -> dict[tuple[str, int], Held]:
    if submission is None:
        return {}
    rows = submission.candidates.order_by().values_list(
        "task__slug", "round", "source_id", "source__size"
    )
    return {(slug, round_): Held(sha256, size > 0) for slug, round_, sha256, size in rows}


def refuse_clashes(sorted_out: Plan) -> None:
    if not sorted_out.clashing:
        return
    first = sorted_out.clashing[0]
    raise SubmissionRefused(
        f"{len(sorted_out.clashing)} candidates are there already with another source, the first "
        f"is {first.task} in round {first.round} ({first.place})",
        "upload them as a later round, or under another label",
    )


def _store(submission: Submission, found: Iterable[Found]) -> list[Candidate]:
    """Sources once by SHA-256, candidates once each; their tasks are loaded.

    One that was claimed before its source came has its candidate already.
    """
    entries = list(found)
    if not entries:
        return []
    tasks = Task.objects.current().in_bulk({entry.task for entry in entries}, field_name="slug")
    unknown = sorted({entry.task for entry in entries} - set(tasks))
    if unknown:
        raise SubmissionRefused(f"no task is named {unknown[0]!r}", "see the list of tasks")
    _store_sources({Source.digest(entry.source): entry.source for entry in entries})
    there = {
        (candidate.task.slug, candidate.round): candidate
        for candidate in submission.candidates.filter(source__size__gt=0).select_related("task")
    }
    completed = [there[key] for entry in entries if (key := (entry.task, entry.round)) in there]
    made = Candidate.objects.bulk_create(
        [
            Candidate(
                submission=submission,
                task=tasks[entry.task],
                round=entry.round,
                source_id=Source.digest(entry.source),
                place=entry.place[:300],
            )
            for entry in entries
            if (entry.task, entry.round) not in there
        ],
        batch_size=BATCH,
    )
    return [*made, *completed]


def _store_sources(texts: dict[str, str]) -> None:
    """Texts by SHA-256, each once; one of which a recorded result told the digest alone is
    completed.
    """
    rows = [Source(sha256=key, text=text, size=len(text.encode())) for key, text in texts.items()]
    Source.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    absent = set(Source.objects.filter(size=0, pk__in=texts).values_list("pk", flat=True))
    Source.objects.bulk_update([row for row in rows if row.pk in absent], ["text", "size"])


def _notes(
    intake: Intake, sorted_out: Plan, before: Sequence[dict[str, str]]
) -> list[dict[str, str]]:
    """Refusals, and what intake changed about a candidate: shown on the submission's page."""
    loose = [Refusal(claim.place, *LOOSE) for claim in sorted_out.loose]
    notes = [refusal.to_json() for refusal in (*intake.refusals, *loose)]
    notes += [
        {"place": found.place, "reason": note, "remedy": ""}
        for found in intake.candidates
        for note in found.notes
    ]
    return [note for note in notes if note not in before]  # the same upload again adds none


def _count_jobs(found: Sequence[Found], gpus: Sequence[Gpu] | None) -> dict[str, int]:
    boards = Gpu.objects.judging() if gpus is None else gpus
    tasks = Task.objects.in_bulk({entry.task for entry in found}, field_name="slug")
    return {
        gpu.slug: sum(e.task in tasks and tasks[e.task].applies_to(gpu) for e in found)
        for gpu in boards
    }
