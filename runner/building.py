"""The site's side of static portability: which sources wait to be compiled, and what came of it.

A request is a row first, as a job is, and only a few are in the broker at a time. It gives way to
judging: while boards have work, a request waits, though not for ever. Compiling workers need no
board, so a site without any keeps its requests until one comes.
"""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone
from kombu.exceptions import OperationalError

from benchmark import vocabulary
from benchmark.architectures import ARCHITECTURE_BY_SLUG
from benchmark.models import Board, Candidate, Source, StaticBuild
from kbx_site.celery import BUILDS_QUEUE, app
from runner.dispatch import PUBLISH
from runner.models import BuildRequest, Job
from runner.schema import (
    Hex,
    Json,
    List,
    Malformed,
    Optional,
    Prose,
    Record,
    Text,
    Whole,
    Word,
)

logger = logging.getLogger("kbx.building")

WINDOW = 4  # requests in the broker at a time: enough that no worker waits for the next
LEASE = timedelta(minutes=40)  # above a worker's hard limit: what is silent so long is gone
PATIENCE = timedelta(minutes=15)  # how long a request gives way to judging
BATCH = 500
COUNT = Optional(Whole(0, 2**31 - 1))

BUILD = Record(
    {
        "architecture": Word(tuple(ARCHITECTURE_BY_SLUG)),
        "state": Word(tuple(vocabulary.BUILD_STATES)),
        "reason": Prose(2000),
        "kernel_count": Whole(0, 1000),
        "registers": COUNT,
        "spills": COUNT,
        "shared_bytes": COUNT,
        "shared_limit": Whole(0, 2**31 - 1),
        "kernels": Json(2000, 3),
    }
)
REPORT = Record(
    {
        "source_sha256": Hex(64),
        "triton_version": Text(40),
        "case": Text(120),
        "builds": List(BUILD, len(ARCHITECTURE_BY_SLUG)),
    }
)


def request(candidates: Iterable[Candidate]) -> int:
    """Ask for the builds of the candidates' sources that have none; the sweeper sends them."""
    tasks = {candidate.source_id: candidate.task_id for candidate in candidates}
    built = set(
        StaticBuild.objects.filter(source__in=list(tasks)).values_list("source_id", flat=True)
    )
    rows = [
        BuildRequest(source_id=sha256, task_id=task)
        for sha256, task in tasks.items()
        if sha256 not in built
    ]
    BuildRequest.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return len(rows)


def request_all(*, again: bool = False) -> int:
    """Ask for the builds of every candidate on the site; `again`: also where there are some, for
    instance of an earlier Triton. Requests that were given up are asked for once more.
    """
    BuildRequest.objects.filter(gave_up_at__isnull=False).delete()
    candidates = Candidate.objects.filter(
        submission__withdrawn_at__isnull=True, task__retired_at__isnull=True
    )
    if not again:
        built = StaticBuild.objects.filter(source=OuterRef("source"))
        candidates = candidates.filter(~Exists(built))
        return request(candidates.order_by("id"))
    tasks = dict(candidates.order_by("id").values_list("source_id", "task_id"))
    rows = [BuildRequest(source_id=sha256, task_id=task) for sha256, task in tasks.items()]
    BuildRequest.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return len(rows)


def sweep() -> int:
    """Look after what is silent, then send what may be sent. Returns how many were sent."""
    now = timezone.now()
    for row in BuildRequest.objects.sent().filter(sent_at__lt=now - LEASE):
        if row.started_at is not None:
            fail(row, "the worker fell silent")
        elif _is_missing(row):
            _back_in_line(row)
    return fill()


def _is_missing(row: BuildRequest) -> bool:
    """Workers take messages in order: gone is what was overtaken."""
    return BuildRequest.objects.filter(sent_at__gt=row.sent_at, started_at__gt=row.sent_at).exists()


def fill() -> int:
    """Top the window up from the waiting requests, the oldest first."""
    room = WINDOW - BuildRequest.objects.sent().count()
    if room <= 0:
        return 0
    waiting = BuildRequest.objects.waiting().select_related("source", "task")
    if Job.objects.open().exists():
        waiting = waiting.filter(created_at__lt=timezone.now() - PATIENCE)
    return sum(send(row) for row in waiting[:room])


def send(row: BuildRequest) -> bool:
    """Put a request into the broker; False without a broker, or when somebody was quicker."""
    mine = BuildRequest.objects.waiting().filter(pk=row.pk, attempt=row.attempt)
    if not mine.update(sent_at=timezone.now(), started_at=None):
        return False
    message = {
        "source_sha256": row.source_id,
        "source": row.source.text,
        "task": row.task.slug,
        "aliases": row.task.aliases,
        "attempt": row.attempt,
    }
    try:
        app.send_task(
            "runner.compile_source", kwargs=message, queue=BUILDS_QUEUE, retry_policy=PUBLISH
        )
    except (OperationalError, OSError):
        logger.exception("build of %s not sent: no broker", row.source_id[:12])
        BuildRequest.objects.filter(pk=row.pk).update(sent_at=None)
        return False
    return True


def record_started(source_sha256: Any, attempt: Any) -> None:
    """A worker is at it."""
    _current(source_sha256, attempt).update(started_at=timezone.now())


def record_failure(source_sha256: Any, attempt: Any, reason: Any) -> None:
    """A worker failed: try again elsewhere, or give up."""
    row = _current(source_sha256, attempt).first()
    if row is not None:
        fail(row, str(reason)[:2000])
        fill()


def _current(source_sha256: Any, attempt: Any) -> Any:
    try:
        key, number = Hex(64).read(source_sha256, "source_sha256"), Whole(1, 1000).read(attempt, "")
    except Malformed:
        return BuildRequest.objects.none()
    return BuildRequest.objects.sent().filter(source=key, attempt=number)


def fail(row: BuildRequest, reason: str) -> None:
    """Our failure, never the candidate's."""
    row.sent_at = row.started_at = None
    row.reason = f"attempt {row.attempt}: {reason}"
    if row.attempt >= settings.KBX_MAX_ATTEMPTS:
        row.gave_up_at = timezone.now()
        logger.error("build of %s given up: %s", row.source_id[:12], row.reason)
    else:
        row.attempt += 1
        logger.warning("build of %s failed: %s", row.source_id[:12], row.reason)
    row.save()


def _back_in_line(row: BuildRequest) -> None:
    row.sent_at = None
    row.save(update_fields=["sent_at"])


def record_builds(report: Any, attempt: Any) -> int:
    """Store what a worker found, once per source, architecture and Triton; 0 when it is unusable.

    Counts whatever attempt it comes from: the same source by the same compiler is the same build.
    """
    try:
        stored = _store(REPORT.read(report, "report"))
    except (Malformed, IntegrityError) as error:
        logger.exception("report of builds refused")
        sha256 = report.get("source_sha256") if isinstance(report, dict) else None
        record_failure(sha256, attempt, f"the report was refused: {error}")
        return 0
    fill()
    return stored


@transaction.atomic
def _store(found: dict[str, Any]) -> int:
    source = Source.objects.filter(pk=found["source_sha256"]).first()
    if source is None:
        return 0
    for build in found["builds"]:
        facts = dict(build)
        StaticBuild.objects.update_or_create(
            source=source,
            architecture=facts.pop("architecture"),
            triton_version=found["triton_version"],
            defaults=facts | {"traced_case": found["case"]},
        )
    BuildRequest.objects.filter(source=source).delete()
    Board.bump()  # pages that show builds are as old as the board's generation says
    return len(found["builds"])
