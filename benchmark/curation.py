"""What moderators decide: one verb a function, each in one transaction, logged, with a reason.

Who asks is checked by the caller (the admin, a command); what is asked is refused here, by
`Refused`, with nothing written.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Model, OuterRef, Q, QuerySet, Subquery
from django.dispatch import Signal
from django.utils import timezone

from benchmark import aggregates, vocabulary
from benchmark.models import (
    Audit,
    Ban,
    Board,
    Gpu,
    Method,
    MethodRedirect,
    Run,
    Submission,
    Task,
)

LABEL_LENGTH = 80
REASON_LENGTH = 2000
# Sent in the transaction, before the board is bumped, so that whoever keeps jobs takes back those
# that are open: `tasks` on `gpus` (None: everywhere), or a `user`'s, with the `reason` to show.
taken_out = Signal()
NEWEST_VERDICT = Subquery(
    Audit.objects.filter(run=OuterRef("pk")).order_by("-created_at", "-id").values("verdict")[:1]
)


class Refused(Exception):  # noqa: N818  an answer, no error of ours
    """What was asked can't be done: the sentence says why."""


def log(by: Any, rows: Iterable[Model], words: str, flag: int = CHANGE) -> None:
    """Into the history that the admin shows of each row; nothing when nobody is named."""
    if by is None:
        return
    for row in rows:
        LogEntry.objects.create(
            user=by,
            content_type=ContentType.objects.get_for_model(row),
            object_id=str(row.pk),
            object_repr=str(row)[:200],
            action_flag=flag,
            change_message=words,
        )


# Tasks


@transaction.atomic
def publish(tasks: Iterable[Task], by: Any, reason: str) -> int:
    """Drafts and retired tasks are judged and ranked from now on. Returns how many were not."""
    rows = _locked(Task, tasks)
    changed = [task for task in rows if task.state != vocabulary.LIVE]
    for task in changed:
        log(by, [task], f"Published, was {task.state}: {reason}")
        task.is_draft, task.retired_at, task.stays_retired = False, None, False
        task.save(update_fields=["is_draft", "retired_at", "stays_retired"])
    if changed:
        Board.bump()
    return len(changed)


@transaction.atomic
def retire(tasks: Iterable[Task], by: Any, reason: str) -> int:
    """No longer judged or ranked, whatever the suite says; results stay. Returns how many were."""
    rows = _locked(Task, tasks)
    if any(task.is_draft for task in rows):
        raise Refused("a draft was never published: there is nothing to retire")
    changed = [task for task in rows if not (task.retired_at and task.stays_retired)]
    for task in changed:
        task.retired_at, task.stays_retired = task.retired_at or timezone.now(), True
        task.save(update_fields=["retired_at", "stays_retired"])
        log(by, [task], f"Retired: {reason}")
    if changed:
        taken_out.send(None, tasks=changed, reason=f"the task was retired: {reason}")
        Board.bump()
    return len(changed)


@transaction.atomic
def disable(tasks: Iterable[Task], gpus: Sequence[Gpu], by: Any, reason: str) -> int:
    """The tasks are not applicable on these GPUs: neither judged nor counted there."""
    changed = 0
    for task in _locked(Task, tasks):
        new = [gpu for gpu in gpus if gpu.slug not in task.not_on]
        if not new:
            continue
        task.not_on = task.not_on | {gpu.slug: reason for gpu in new}
        task.save(update_fields=["not_on"])
        log(by, [task], f"Disabled on {_names(new)}: {reason}")
        words = f"the task is not applicable on this GPU: {reason}"
        taken_out.send(None, tasks=[task], gpus=new, reason=words)
        changed += len(new)
    if changed:
        Board.bump()
    return changed


@transaction.atomic
def enable(tasks: Iterable[Task], gpus: Sequence[Gpu], by: Any, reason: str) -> int:
    """Applicable again: the results that are there count as before."""
    changed = 0
    for task in _locked(Task, tasks):
        back = [gpu for gpu in gpus if gpu.slug in task.not_on]
        if not back:
            continue
        gone = {gpu.slug for gpu in back}
        task.not_on = {slug: why for slug, why in task.not_on.items() if slug not in gone}
        task.save(update_fields=["not_on"])
        log(by, [task], f"Enabled on {_names(back)}: {reason}")
        changed += len(back)
    if changed:
        Board.bump()
    return changed


# Runs


def held() -> QuerySet[Any]:
    """New records that nobody has looked at."""
    return _audited().filter(newest_verdict=vocabulary.HELD)


def suspected() -> QuerySet[Any]:
    """By the judge, with no moderator's word so far, or by a moderator."""
    by_judge = Q(newest_verdict__isnull=True, is_suspect=True)
    return _audited().filter(by_judge | Q(newest_verdict=vocabulary.SUSPECT))


def waiting() -> QuerySet[Any]:
    """The audit queue: what is held or suspected."""
    return held() | suspected()


def _audited() -> QuerySet[Any]:
    runs = Run.objects.filter(candidate__submission__withdrawn_at__isnull=True)
    return runs.annotate(newest_verdict=NEWEST_VERDICT)


@transaction.atomic
def review(
    runs: Iterable[Run], by: Any, verdict: str, reason: str, note: str = "", evidence: str = ""
) -> int:
    """Append the verdict to each run's audits, once where the newest says the same already."""
    Board.lock()
    newest = aggregates.audit_verdicts(Run.objects.filter(pk__in=[run.pk for run in runs]))
    changed = [run for run in runs if newest.get(run.pk) != verdict]
    for run in changed:
        Audit.objects.create(
            run=run, verdict=verdict, reviewer=by, reason=reason, note=note, evidence=evidence
        )
    log(by, changed, f"Verdict {verdict}: {reason}")
    return len(changed)


# Accounts


def refuse_banned(user: Any) -> None:
    """`Refused` with the ban's reason when this account may not submit."""
    if user is None or not user.is_authenticated:
        return
    ban = Ban.objects.standing().filter(user=user).first()
    if ban is not None:
        raise Refused(f"this account may not submit: {ban.reason}")


def refuse_ban(user: Any, by: Any) -> None:
    """`Refused` where `by` can't ban this account. `by` None is an operator's command."""
    if by is not None and user.pk == by.pk:
        raise Refused("nobody can ban their own account")
    if user.is_staff and by is not None and not by.is_superuser:
        raise Refused(f"{user} is of the staff: only a superuser can ban them")
    if Ban.objects.standing().filter(user=user).exists():
        raise Refused(f"{user} is banned already")


@transaction.atomic
def ban(user: Any, by: Any, reason: str, hide: bool) -> Ban:
    """Refuse what the account submits from now on; with `hide` what is there becomes private."""
    get_user_model().objects.select_for_update().get(pk=user.pk)
    refuse_ban(user, by)
    made = Ban.objects.create(user=user, reason=reason, banned_by=by)
    taken_out.send(None, user=user, reason="its account may not submit any more")
    if hide:
        shown = Submission.objects.filter(submitted_by=user, withdrawn_at__isnull=True)
        made.hidden = {
            str(submission.uuid): submission.visibility
            for submission in shown.exclude(visibility=vocabulary.PRIVATE)
        }
        made.save(update_fields=["hidden"])
        for submission in shown.exclude(visibility=vocabulary.PRIVATE).order_by("id"):
            _show(submission, vocabulary.PRIVATE)
    words = f"Banned: {reason} ({len(made.hidden)} submissions hidden)"
    log(by, [made], words, ADDITION)
    log(by, [user], words)
    Board.bump()
    return made


@transaction.atomic
def lift(bans: Iterable[Ban], by: Any, reason: str) -> int:
    """Let the accounts submit again; what the ban hid is seen again unless changed since."""
    changed = [row for row in _locked(Ban, bans) if row.lifted_at is None]
    for row in changed:
        row.lifted_at = timezone.now()
        row.save(update_fields=["lifted_at"])
        hidden = Submission.objects.filter(
            uuid__in=row.hidden, visibility=vocabulary.PRIVATE, withdrawn_at__isnull=True
        )
        for submission in hidden.order_by("id"):
            _show(submission, row.hidden[str(submission.uuid)])
        log(by, [row, row.user], f"Ban lifted: {reason}")
    if changed:
        Board.bump()
    return len(changed)


def _show(submission: Submission, visibility: str) -> None:
    submission.visibility = visibility
    submission.save(update_fields=["visibility"])
    aggregates.refresh_submission(submission)


# Methods


@transaction.atomic
def merge(methods: Iterable[Method], into: Method, by: Any, reason: str) -> int:
    """Move the methods' submissions to `into`; their slugs and names lead there from now on.

    A label that both have gets the old slug behind it. Returns how many submissions moved.
    """
    Board.lock()  # one merge at a time, and no report lands in between
    gone = [method for method in _locked(Method, methods) if method.pk != into.pk]
    if not gone:
        raise Refused(f"choose at least one method beside {into}")
    moved = sum(_move(method, into) for method in gone)
    for method in gone:
        log(by, [method, into], f"{method.slug} merged into {into.slug}: {reason}")
        MethodRedirect.objects.filter(method=method).update(method=into)
        MethodRedirect.objects.update_or_create(
            slug=method.slug, defaults={"name": method.name, "method": into}
        )
        method.delete()
    newest = Submission.objects.filter(method=into).order_by("-id").first()
    if newest is not None:
        aggregates.refresh_submission(newest)  # what counts for the method is chosen anew
    Board.bump()
    return moved


def _move(method: Method, into: Method) -> int:
    taken = set(Submission.objects.filter(method=into).values_list("label", flat=True))
    rows = list(Submission.objects.select_for_update().filter(method=method).order_by("id"))
    for submission in rows:
        submission.label = _free_label(submission.label, method.slug, taken)
        taken.add(submission.label)
        submission.method = into
        submission.save(update_fields=["method", "label"])
    return len(rows)


def _free_label(label: str, slug: str, taken: set[str]) -> str:
    """The label, or where it is taken one that says which method it was of."""
    found, count = label, 1
    while found in taken:
        tail = f" ({slug})" if count == 1 else f" ({slug} {count})"
        found, count = f"{label[: LABEL_LENGTH - len(tail)]}{tail}", count + 1
    return found


def merged(slug: str) -> Method | None:
    """The method that the slug of a merged one leads to."""
    row = MethodRedirect.objects.filter(slug=slug).select_related("method").first()
    return row.method if row else None


def merged_by_name(name: str) -> Method | None:
    row = MethodRedirect.objects.filter(name__iexact=name).select_related("method").first()
    return row.method if row else None


def _locked(model: Any, rows: Iterable[Any]) -> list[Any]:
    """The rows as they are now, held until the transaction ends, always in the same order."""
    keys = [row.pk for row in rows]
    return list(model.objects.select_for_update().filter(pk__in=keys).order_by("pk"))


def _names(gpus: Iterable[Gpu]) -> str:
    return ", ".join(gpu.name for gpu in gpus)
