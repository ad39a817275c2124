"""What the database and the broker say at the moment of a scrape, as Prometheus metrics.

Whichever web process is asked answers the same. Each query reads what is open, or a day or an hour
of what ended, through an index: the cost follows what happens, not what was ever recorded.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError
from django.db.models import Count, FloatField, Min, Q, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Cast
from django.utils import timezone
from kombu.exceptions import OperationalError
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from benchmark import vocabulary
from benchmark.models import Board, Gpu, Run
from kbx_site import readiness
from kbx_site.celery import BUILDS_QUEUE, SITE_QUEUE
from runner.models import BOARD_SILENCE, BuildRequest, Device, Job

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# How our own failures are told apart: words of the reasons that `runner` writes, the first fits.
REASONS = (
    ("silent", "fell silent"),
    ("report-refused", "report was refused"),
    ("other-version", "same version"),
    ("damaged", "the source is"),
)
OTHER_REASON = "judge"
SILENT = "silent"

Metrics = Iterator[GaugeMetricFamily]


class SiteCollector(Collector):
    """The metrics of the whole site. What can't be reached is 0 in `kbx_check`, else absent."""

    def collect(self) -> Metrics:
        reasons = {check.name: check.reason() for check in readiness.CHECKS}
        yield gauge(
            "kbx_check",
            "1 where a check of /readyz is well.",
            ["check"],
            [([name], not reason) for name, reason in reasons.items()],
        )
        if not reasons["broker"]:
            yield from safely(broker_queues)
        if not reasons["database"] and not reasons["migrations"]:
            for asked in (open_jobs, boards, day_of_jobs, failures, hour_of_runs, builds, board):
                yield from safely(asked)


def safely(asked: Callable[[], Metrics]) -> Metrics:
    """Nothing, where a server goes away between its check and its question."""
    try:
        yield from list(asked())
    except (DatabaseError, OperationalError, OSError):
        return


def gauge(
    name: str, help: str, labels: list[str], rows: Iterable[tuple[list[str], Any]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help, labels=labels)
    for values, value in rows:
        family.add_metric(values, float(value))
    return family


def broker_queues() -> Metrics:
    """Messages that wait in the broker: a window of each GPU's jobs, what boards report."""
    names = [SITE_QUEUE, BUILDS_QUEUE, *(gpu.queue for gpu in Gpu.objects.judging())]
    with readiness.broker_connection() as opened:
        rows = [([name], depth(opened, name)) for name in names]
    yield gauge("kbx_broker_messages", "Messages that wait in a queue.", ["queue"], rows)


def depth(opened: Any, queue: str) -> int:
    """0 for a queue that nobody has asked for yet: brokers make them when they are used."""
    with opened.channel() as channel:
        try:
            return int(channel.queue_declare(queue, passive=True).message_count)
        except opened.channel_errors:
            return 0


def open_jobs() -> Metrics:
    now = timezone.now()
    waiting = Q(state=vocabulary.QUEUED)
    rows = (
        Job.objects.open()
        .order_by()
        .values_list("gpu__slug")
        .annotate(
            queued=Count("id", filter=waiting),
            running=Count("id", filter=Q(state=vocabulary.RUNNING)),
            overdue=Count("id", filter=Q(lease_expires_at__lt=now)),
            oldest=Min("created_at", filter=waiting),
        )
    )
    # A GPU without jobs says 0, so that an alarm on it ends.
    none = (0, 0, 0, None)
    found = dict.fromkeys(Gpu.objects.judging().values_list("slug", flat=True), none)
    found |= {gpu: tuple(facts) for gpu, *facts in rows}
    yield gauge(
        "kbx_open_jobs",
        "Jobs that wait for a board or are on one.",
        ["gpu", "state"],
        [
            ([gpu, state], count)
            for gpu, (queued, running, _, _) in found.items()
            for state, count in ((vocabulary.QUEUED, queued), (vocabulary.RUNNING, running))
        ],
    )
    yield gauge(
        "kbx_overdue_jobs",
        "Open jobs whose lease ran out: the sweeper has not looked after them yet.",
        ["gpu"],
        [([gpu], overdue) for gpu, (_, _, overdue, _) in found.items()],
    )
    yield gauge(
        "kbx_oldest_queued_seconds",
        "Age of the oldest job that waits; 0: none does.",
        ["gpu"],
        [([gpu], age(oldest, now)) for gpu, (_, _, _, oldest) in found.items()],
    )


def age(moment: datetime | None, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds()) if moment else 0.0


def boards() -> Metrics:
    """By what each said of itself when last heard of; `silent` where that is too long ago."""
    now = timezone.now()
    since = now - BOARD_SILENCE
    rows = (
        Device.objects.filter(last_seen_at__gt=now - DAY)
        .exclude(state=vocabulary.GONE)  # its worker ended as it should
        .order_by()
        .values_list("gpu__slug", "state")
        .annotate(online=Count("id", filter=Q(last_seen_at__gt=since)), all=Count("id"))
    )
    # A GPU without boards says 0, so that an alarm on it is raised.
    slugs = Gpu.objects.judging().values_list("slug", flat=True)
    found = Counter({(gpu, health): 0 for gpu in slugs for health in (vocabulary.SERVING, SILENT)})
    for gpu, state, online, every in rows:
        found[gpu, state] += online
        found[gpu, SILENT] += every - online
    yield gauge(
        "kbx_boards",
        "Boards that were heard of within a day, by their state; silent: not of late.",
        ["gpu", "health"],
        [(list(key), count) for key, count in found.items()],
    )


def day_of_jobs() -> Metrics:
    # GPUs and states are named so that the index by them and by date is used.
    rows = (
        Job.objects.filter(
            gpu__in=list(Gpu.objects.values_list("pk", flat=True)),
            state__in=list(vocabulary.JOB_STATES),
            created_at__gt=timezone.now() - DAY,
        )
        .order_by()
        .values_list("gpu__slug", "state")
        .annotate(count=Count("id"), retried=Count("id", filter=Q(failures__gt=0)))
    )
    counts = [(gpu, state, count, retried) for gpu, state, count, retried in rows]
    yield gauge(
        "kbx_jobs_last_day",
        "Jobs that were made within a day, by what became of them.",
        ["gpu", "state"],
        [([gpu, state], count) for gpu, state, count, _ in counts],
    )
    yield gauge(
        "kbx_retried_jobs_last_day",
        "Of these, jobs of which an attempt failed, by what became of them.",
        ["gpu", "state"],
        [([gpu, state], retried) for gpu, state, _, retried in counts],
    )


def failures() -> Metrics:
    """Our failures that stand: lost within a day, or open on a later attempt."""
    failed = Q(state=vocabulary.LOST, ended_at__gt=timezone.now() - DAY)
    retried = Q(state__in=vocabulary.OPEN_JOB_STATES, attempt__gt=1)
    found = Job.objects.filter(failed | retried).order_by().values_list("gpu__slug", "reason")
    counts = Counter((gpu, kind_of(reason)) for gpu, reason in found)
    yield gauge(
        "kbx_failed_jobs",
        "Jobs that failed through us: lost within a day, or waiting for another attempt.",
        ["gpu", "reason"],
        [(list(key), count) for key, count in counts.items()],
    )


def kind_of(reason: str) -> str:
    return next((kind for kind, words in REASONS if words in reason), OTHER_REASON)


def hour_of_runs() -> Metrics:
    seconds = Cast(KT("seconds__total"), FloatField())
    rows = (
        Run.objects.measured()
        .filter(created_at__gt=timezone.now() - HOUR)
        .order_by()
        .values_list("gpu__slug", "verdict")
        .annotate(count=Count("id"), seconds=Sum(seconds))
    )
    found = [(gpu, verdict, count, spent or 0) for gpu, verdict, count, spent in rows]
    yield gauge(
        "kbx_runs_last_hour",
        "Judgements that were recorded within an hour.",
        ["gpu", "verdict"],
        [([gpu, verdict], count) for gpu, verdict, count, _ in found],
    )
    yield gauge(
        "kbx_judge_seconds_last_hour",
        "Seconds that boards spent on them.",
        ["gpu", "verdict"],
        [([gpu, verdict], spent) for gpu, verdict, _, spent in found],
    )


def builds() -> Metrics:
    counts = BuildRequest.objects.aggregate(
        waiting=Count("id", filter=Q(gave_up_at__isnull=True)),
        given_up=Count("id", filter=Q(gave_up_at__isnull=False)),
    )
    yield gauge(
        "kbx_build_requests",
        "Sources that wait to be compiled for other architectures, or were given up.",
        ["state"],
        [([state], count) for state, count in counts.items()],
    )


def board() -> Metrics:
    yield gauge(
        "kbx_generation",
        "How often what pages show has changed.",
        [],
        [([], Board.current())],
    )
