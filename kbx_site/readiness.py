"""What a site needs to serve (database, migrations) and to judge (tasks, broker), asked one by one.

Each check answers with a reason, empty when all is well. Reasons are sentences of ours: what a
driver says may hold host names or passwords.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from kombu import Connection
from kombu.exceptions import OperationalError

from benchmark.models import Task
from kbx_site.celery import app

BROKER_SECONDS = 2  # for a connection; whoever asks waits for it
# Of each task of the suite, in this release: the suite itself would bring torch along.
DIGESTS = Path(settings.BASE_DIR) / "benchmark/suite/digests.json"


@dataclass(frozen=True)
class Check:
    """`needed`: without it no page can be served, so no visitor should be sent here."""

    name: str
    reason: Callable[[], str]
    needed: bool


def database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "the database does not answer"
    return ""


_migrated = False


def migrations() -> str:
    """Asked until it is well: a process's own migrations stay the same."""
    global _migrated
    if not _migrated:
        try:
            executor = MigrationExecutor(connection)
            waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError:
            return "the database does not answer"
        if waiting:
            return f"{len(waiting)} migrations are not applied: run manage.py migrate"
        _migrated = True
    return ""


def tasks() -> str:
    """Whether the database's contracts are this release's: jobs carry the database's digests, and
    boards refuse what is not their own.
    """
    try:
        held = dict(Task.objects.values_list("slug", "digest"))
    except DatabaseError:
        return "the database does not answer"
    differ = sum(held.get(slug) != digest for slug, digest in released().items())
    if differ:
        return f"{differ} tasks differ from this release's: run manage.py sync_tasks"
    return ""


@cache
def released() -> dict[str, str]:
    return dict(json.loads(DIGESTS.read_text()))


def broker() -> str:
    try:
        with broker_connection():
            return ""
    except (OperationalError, OSError):
        return "the broker does not answer: what is submitted waits until it does"


@contextmanager
def broker_connection() -> Iterator[Connection]:
    """A connection of its own, closed after; `OperationalError` soon where there is no broker."""
    patience = {"socket_connect_timeout": BROKER_SECONDS, "socket_timeout": BROKER_SECONDS}
    with app.connection_for_write(
        connect_timeout=BROKER_SECONDS, transport_options=patience
    ) as opened:
        opened.ensure_connection(
            max_retries=1, interval_start=0, interval_step=0, timeout=BROKER_SECONDS
        )
        yield opened


CHECKS = (
    Check("database", database, needed=True),
    Check("migrations", migrations, needed=True),
    Check("tasks", tasks, needed=False),
    Check("broker", broker, needed=False),
)
