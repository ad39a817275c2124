"""Reads for an account's own page: frozen rows, of every visibility, for nobody else."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import Count, Q

from benchmark import vocabulary
from benchmark.models import Draft, Submission
from runner.accounts.models import ApiKey
from runner.models import Job

PAGE = 25
KEYS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class OwnSubmission:
    """`judged`, `passed`: of all judgements; `open`: queued or running."""

    uuid: UUID
    method: str
    label: str
    visibility: str
    created_at: datetime
    withdrawn_at: datetime | None
    candidates: int
    open: int
    judged: int
    passed: int


@dataclass(frozen=True, slots=True)
class OwnDraft:
    """An upload that was checked and waits for its author's word."""

    uuid: UUID
    method: str
    label: str
    filename: str
    visibility: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OwnKey:
    """A key as its owner may see it: never the key."""

    id: int
    name: str
    start: str
    scopes: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None
    state: str


def own_submissions(user: Any, page: str | None) -> tuple[tuple[OwnSubmission, ...], Page]:
    """A page of the account's submissions, newest first, with the page itself to turn."""
    own = Submission.objects.filter(submitted_by=user).select_related("method")
    newest = own.annotate(size=Count("candidates")).order_by("-created_at", "-id")
    part = Paginator(newest, PAGE).get_page(page)
    counts = _jobs([submission.pk for submission in part])
    rows = tuple(_own(submission, counts.get(submission.pk, {})) for submission in part)
    return rows, part


def own_drafts(user: Any) -> tuple[OwnDraft, ...]:
    """The account's open drafts, newest first, without what they hold; none of a stranger."""
    if not user.is_authenticated:
        return ()
    names = ("uuid", "method", "label", "filename", "visibility", "created_at")
    rows = Draft.objects.open().filter(created_by=user).values_list(*names)
    return tuple(OwnDraft(*row) for row in rows)


def own_keys(user: Any) -> tuple[OwnKey, ...]:
    """Usable ones first, then the latest of the others."""
    rows = [
        OwnKey(
            key.pk, key.name, key.start, key.scopes, key.created_at, key.expires_at,
            key.last_used_at, key.state,
        )
        for key in ApiKey.objects.filter(user=user)[:KEYS_SHOWN]
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda row: row.state != "usable"))


def _own(submission: Any, jobs: Mapping[str, int]) -> OwnSubmission:
    return OwnSubmission(
        uuid=submission.uuid,
        method=submission.method.name,
        label=submission.label,
        visibility=submission.visibility,
        created_at=submission.created_at,
        withdrawn_at=submission.withdrawn_at,
        candidates=submission.size,
        open=jobs.get("open", 0),
        judged=jobs.get("judged", 0),
        passed=jobs.get("passed", 0),
    )


def _jobs(submissions: list[int]) -> dict[int, Any]:
    """Judgements of these submissions, by their id."""
    rows = (
        Job.objects.filter(candidate__submission__in=submissions)
        .order_by()
        .values("candidate__submission")
        .annotate(
            open=Count("pk", filter=Q(state__in=vocabulary.OPEN_JOB_STATES)),
            judged=Count("pk", filter=Q(state=vocabulary.DONE)),
            passed=Count("pk", filter=Q(run__verdict=vocabulary.PASSED)),
        )
    )
    return {row["candidate__submission"]: row for row in rows}
