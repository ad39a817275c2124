"""What changed, newest first: results that came in, tasks and judges that changed, audits."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db.models import Min
from django.urls import reverse

from benchmark import vocabulary
from benchmark.models import Audit, Run, Submission, Task, TaskVersion

RESULTS, TASKS, JUDGE, AUDIT = "results", "tasks", "judge", "audit"
KINDS = {
    RESULTS: "new results",
    TASKS: "tasks",
    JUDGE: "the judge",
    AUDIT: "audits",
}
SHOWN = 100
RUNS_READ = 5000  # the newest: older ones are older than a hundred changes, or of a huge upload
NAMED = 6  # tasks of a day by name; the rest is counted


@dataclass(frozen=True, slots=True)
class Change:
    """`key` names it for ever among those of its kind; `url` is where it shows."""

    at: datetime
    kind: str
    key: str
    title: str
    text: str
    url: str

    @property
    def kind_text(self) -> str:
        return KINDS[self.kind]


@dataclass(frozen=True, slots=True)
class _Group:
    submission: UUID
    label: str
    method: str
    gpu: str
    gpu_slug: str
    day: date


def changes(kind: str = "") -> tuple[Change, ...]:
    """Of public submissions and tasks that are shown; at most a hundred. Six queries."""
    sources = {RESULTS: _results, TASKS: _tasks, JUDGE: _judges, AUDIT: _audits}
    asked = [kind] if kind else list(sources)
    found = [change for name in asked for change in sources[name]()]
    return tuple(sorted(found, key=lambda change: change.at, reverse=True)[:SHOWN])


def _results() -> Iterator[Change]:
    """By submission, GPU and day."""
    rows = Run.objects.listed().measured().order_by("-created_at", "-id")
    groups: dict[_Group, list[datetime]] = {}
    for at, submission, label, method, gpu, slug in rows.values_list(
        "created_at",
        "candidate__submission__uuid",
        "candidate__submission__label",
        "candidate__submission__method__name",
        "gpu__name",
        "gpu__slug",
    )[:RUNS_READ]:
        group = _Group(submission, label, method, gpu, slug, at.date())
        groups.setdefault(group, []).append(at)
    recorded = _recorded({group.submission for group in groups})
    for group, times in groups.items():
        count = f"{len(times)} candidate{'' if len(times) == 1 else 's'}"
        elsewhere = ", measured elsewhere by this judge" if group.submission in recorded else ""
        yield Change(
            at=times[0],
            kind=RESULTS,
            key=f"{group.submission}-{group.gpu_slug}-{group.day}",
            title=f"{group.method}: {count} on {group.gpu}",
            text=f"{count} of “{group.label}” judged on {group.gpu}{elsewhere}.",
            url=reverse("runner:submission", args=[group.submission]),
        )


def _recorded(submissions: set[UUID]) -> set[UUID]:
    named = Submission.objects.filter(uuid__in=submissions, recorded__isnull=False)
    return set(named.values_list("uuid", flat=True))


def _tasks() -> Iterator[Change]:
    """By day: tasks that came, and tasks whose digest became another one."""
    seen: set[int] = set()
    days: dict[tuple[date, bool], list[tuple[datetime, str]]] = {}
    versions = TaskVersion.objects.filter(task__in=Task.objects.current())
    for task, slug, at in versions.order_by("first_seen_at", "id").values_list(
        "task_id", "task__slug", "first_seen_at"
    ):
        days.setdefault((at.date(), task in seen), []).append((at, slug))
        seen.add(task)
    for (day, is_change), found in days.items():
        yield _task_change(day, is_change, found)


def _task_change(day: date, is_change: bool, found: list[tuple[datetime, str]]) -> Change:
    slugs = sorted({slug for _, slug in found})
    plural = "" if len(slugs) == 1 else "s"
    what = f"{len(slugs)} task{plural} {'changed' if is_change else 'added'}"
    named = ", ".join(slugs[:NAMED])
    rest = f" and {len(slugs) - NAMED} more" if len(slugs) > NAMED else ""
    stale = " Results against the earlier digest are stale: shown, not ranked." if is_change else ""
    one = len(slugs) == 1
    return Change(
        at=max(at for at, _ in found),
        kind=TASKS,
        key=f"{'changed' if is_change else 'added'}-{day}",
        title=what,
        text=f"{named}{rest}.{stale}",
        url=reverse("leaderboard:task", args=slugs) if one else reverse("leaderboard:tasks"),
    )


def _judges() -> Iterator[Change]:
    """Where a version of the judge was first at work on a listed run, but for the first."""
    first = Run.objects.listed().measured().order_by().values_list("judge_version")
    by_age = sorted((at, version) for version, at in first.annotate(at=Min("created_at")))
    for (_, before), (at, version) in pairwise(by_age):
        yield Change(
            at=at,
            kind=JUDGE,
            key=version,
            title=f"Judge {version}",
            text=f"Runs are judged by version {version}; before it was {before}. "
            "Each run names the version that judged it.",
            url=reverse("leaderboard:metrics"),
        )


def _audits() -> Iterable[Change]:
    """A reviewer's words on listed runs: they stand on the runs' pages too."""
    listed = Audit.objects.filter(run__in=Run.objects.listed().order_by().values("pk"))
    rows = listed.select_related(
        "run__gpu", "run__candidate__task", "run__candidate__submission__method"
    ).defer("run__log_tail", "run__environment", "run__kernels", "run__findings", "evidence")
    for audit in rows[:SHOWN]:
        yield _audit(audit)


def _audit(audit: Any) -> Change:
    run = audit.run
    who = run.candidate.submission.method.name
    return Change(
        at=audit.created_at,
        kind=AUDIT,
        key=str(audit.pk),
        title=f"{run.candidate.task.slug} by {who} on {run.gpu.name}: {audit.verdict}",
        text=f"{vocabulary.AUDIT_VERDICTS[audit.verdict]}: {audit.reason}",
        url=reverse("leaderboard:run", args=[run.uuid]),
    )
