"""Drafts of uploads: what was read, what would come of it, and its author's word.

An upload is read once, in memory. What intake found waits in the database, compressed, until its
author confirms or discards it; nothing is written to a disk as a file. What is confirmed is what
was shown: the form, the API, `kbx submit` and `manage.py import_submission` come through here.
"""

import json
import zlib
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Draft, Gpu, Method, Submission
from runner import submitting
from runner.accounts import quota
from runner.intake import Claim, Found, Intake, Refusal
from runner.intake.model import DUPLICATE, UNKNOWN

KEPT_OPEN = timedelta(hours=24)
KEPT_CONFIRMED = timedelta(days=7)  # so long a second confirmation finds the first
MOST_OPEN = 20  # drafts of an account
MOST_OF_STRANGERS = 100  # drafts of everybody without an account together
LEVEL = 1  # of compression: sources shrink to a fifth, and a request waits for it

JUDGED, NOTHING, CLASH, CLAIMED, LOOSE = "judged", "nothing", "clash", "claimed", "loose"


@dataclass(frozen=True)
class Entry:
    """What an upload is for, as its author says it."""

    method: str
    kind: str
    label: str
    visibility: str = vocabulary.PUBLIC
    source_visibility: str = vocabulary.SHOWN
    filename: str = ""


@dataclass(frozen=True)
class Row:
    """One thing that was found, and what would come of it."""

    place: str
    task: str
    round: int
    does: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outlook:
    """What confirming a draft would do, as things are now.

    `problem` says why it can't be confirmed, with `remedy`; empty when it can. `left` is by GPU
    slug, of the judgements that the account may still have today; empty without an account.
    """

    rows: tuple[Row, ...]
    refusals: tuple[Refusal, ...]
    jobs: dict[str, int]
    left: dict[str, int]
    adds_to: UUID | None
    needs_gpu: bool
    problem: str = ""
    remedy: str = ""

    def count(self, does: str) -> int:
        return sum(row.does == does for row in self.rows)

    @property
    def counts(self) -> dict[str, int]:
        return {does: self.count(does) for does in (JUDGED, NOTHING, CLASH, CLAIMED, LOOSE)}

    @property
    def near_misses(self) -> tuple[Refusal, ...]:
        return tuple(refusal for refusal in self.refusals if refusal.kind == UNKNOWN)

    @property
    def duplicates(self) -> tuple[Refusal, ...]:
        return tuple(refusal for refusal in self.refusals if refusal.kind == DUPLICATE)

    @property
    def unreadable(self) -> tuple[Refusal, ...]:
        kinds = (UNKNOWN, DUPLICATE)
        return tuple(refusal for refusal in self.refusals if refusal.kind not in kinds)

    @property
    def tasks(self) -> int:
        return len({row.task for row in self.rows})

    @property
    def rounds(self) -> tuple[int, ...]:
        return tuple(sorted({row.round for row in self.rows}))

    @property
    def is_known(self) -> bool:
        """All of it is there already: submitting it again changes nothing."""
        return bool(self.rows) and all(row.does == NOTHING for row in self.rows)

    @property
    def may_confirm(self) -> bool:
        return not self.problem and not self.is_known

    def to_json(self) -> dict[str, Any]:
        return {
            "found": [asdict(row) for row in self.rows],
            "refused": [{**refusal.to_json(), "kind": refusal.kind} for refusal in self.refusals],
            "counts": {**self.counts, "refused": len(self.refusals)},
            "judged_on": self.jobs,
            "quota_left": self.left,
            "adds_to": str(self.adds_to) if self.adds_to else None,
            "needs_claimed_on": self.needs_gpu,
            "problem": {"reason": self.problem, "remedy": self.remedy} if self.problem else None,
        }


@transaction.atomic
def make(entry: Entry, intake: Intake, user: Any) -> Draft:
    """Keep what was read. `SubmissionRefused` for an unusable name or label.

    Of an account, and of all strangers together, the newest drafts are kept and no more.
    """
    submitting.method_named(entry.method, entry.kind)  # refuses what can't name one
    owner = user if user is not None and user.is_authenticated else None
    draft = Draft.objects.create(
        created_by=owner,
        method=submitting.one_line(entry.method),
        kind=entry.kind,
        label=submitting.clean_label(entry.label),
        visibility=entry.visibility,
        source_visibility=entry.source_visibility,
        filename=entry.filename[:200],
        content=_packed(intake),
    )
    beside = Draft.objects.open().filter(created_by=owner).order_by("-created_at", "-id")
    most = MOST_OPEN if owner else MOST_OF_STRANGERS
    Draft.objects.filter(pk__in=list(beside.values_list("pk", flat=True)[most:])).delete()
    return draft


def outlook(draft: Draft, user: Any) -> Outlook:
    """What confirming would do now. Writes nothing."""
    method = submitting.method_named(draft.method, draft.kind)
    return forecast(read(draft), method, draft.label, user)


def forecast(
    intake: Intake, method: Method, label: str, user: Any, gpus: list[Gpu] | None = None
) -> Outlook:
    """The same of an upload that is no draft. Somebody else's submission stays unmentioned."""
    seen = Submission.objects.visible_to(user).filter(method_id=method.pk, label=label).exists()
    plan = submitting.plan(intake, method if seen else None, label, gpus)
    jobs = {slug: count for slug, count in plan.jobs.items() if count}
    problem, remedy = _problem(intake, plan, method, label, user)
    return Outlook(
        rows=tuple(_rows(plan)),
        refusals=intake.refusals,
        jobs=jobs,
        left={row.slug: row.left for row in quota.standing(user, gpus)},
        adds_to=plan.adds_to.uuid if plan.adds_to else None,
        needs_gpu=bool(plan.claims),
        problem=problem,
        remedy=remedy,
    )


def confirm(draft: Draft, user: Any, claimed_on: Gpu | None = None) -> Submission:
    """Submit what the draft holds, once: a second confirmation returns the same submission."""
    with transaction.atomic():
        row = Draft.objects.select_for_update().get(pk=draft.pk)
        if row.submission is not None:
            return row.submission
        submission = submitting.accept(
            submitting.method_named(row.method, row.kind),
            row.label,
            read(row),
            user,
            row.visibility,
            source_visibility=row.source_visibility,
            claimed_on=claimed_on,
        )
        row.submission, row.content = submission, b""
        row.save(update_fields=["submission", "content"])
    return submission


def sweep() -> int:
    """Forget drafts that nobody confirmed within a day; returns how many."""
    now = timezone.now()
    old = Q(submission__isnull=True, created_at__lt=now - KEPT_OPEN)
    done = Q(submission__isnull=False, created_at__lt=now - KEPT_CONFIRMED)
    return Draft.objects.filter(old | done).delete()[0]


def read(draft: Draft) -> Intake:
    """What intake found in the upload."""
    if not draft.content:
        return Intake()
    held = json.loads(zlib.decompress(bytes(draft.content)))
    return Intake(
        tuple(Found(**{**one, "notes": tuple(one["notes"])}) for one in held["candidates"]),
        tuple(Refusal(**one) for one in held["refusals"]),
        tuple(Claim(**one) for one in held["claims"]),
    )


def to_json(draft: Draft, user: Any) -> dict[str, Any]:
    """The draft and its outlook for a program: the API's answer and what `kbx submit` shows."""
    return {
        "uuid": str(draft.uuid),
        "url": reverse("runner:draft", args=[draft.uuid]),
        "method": draft.method,
        "label": draft.label,
        "visibility": draft.visibility,
        "source_visibility": draft.source_visibility,
        "submission": str(draft.submission.uuid) if draft.submission else None,
        **outlook(draft, user).to_json(),
    }


def _packed(intake: Intake) -> bytes:
    held = {
        "candidates": [asdict(one) for one in intake.candidates],
        "refusals": [asdict(one) for one in intake.refusals],
        "claims": [asdict(one) for one in intake.claims],
    }
    return zlib.compress(json.dumps(held, separators=(",", ":")).encode(), LEVEL)


def _rows(plan: submitting.Plan) -> list[Row]:
    kinds = ((JUDGED, plan.new), (CLASH, plan.clashing), (NOTHING, plan.known))
    rows = [
        Row(found.place, found.task, found.round, does, found.notes)
        for does, several in kinds
        for found in several
    ]
    for does, claims in ((CLAIMED, plan.claims), (LOOSE, plan.loose)):
        rows += [Row(c.place, c.task, c.round, does, (_claimed(c),)) for c in claims]
    return rows


def _claimed(claim: Claim) -> str:
    said = "correct" if claim.ok else "not correct"
    return f"{said}, {claim.speedup:.3g}x" if claim.speedup else said


def _problem(
    intake: Intake, plan: submitting.Plan, method: Method, label: str, user: Any
) -> tuple[str, str]:
    """Why `accept` would refuse, as far as it can be known before; empty when it would not."""
    try:
        submitting.refuse_taken(method, label, user)
        submitting.refuse_clashes(plan)
    except submitting.SubmissionRefused as refused:
        return refused.reason, refused.remedy
    if not intake.candidates and not plan.claims:
        if plan.loose:
            return submitting.LOOSE
        return "there is nothing to send", "mend what is refused, and check again"
    short = quota.short_of(user, plan.jobs)
    if short:
        row = short[0]
        wanted = plan.jobs[row.slug]
        return (
            f"{wanted:,} judgements on {row.gpu} are more than the {row.left:,} left of today's",
            "send fewer tasks or rounds, or confirm tomorrow (UTC)",
        )
    return "", ""
