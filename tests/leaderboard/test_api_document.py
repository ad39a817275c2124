"""What the OpenAPI document allows, tried at random: nothing may end in a failure of ours.

Leave it out with `-m "not fuzz"`. The seed is fixed, so that a change is blamed for its own faults.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmark.models import Board

HERE = Path(__file__)
# Of each operation; more of them for whoever has the time: KBX_FUZZ=200.
EXAMPLES = int(os.environ.get("KBX_FUZZ", "3"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@contextmanager
def connection_kept() -> Iterator[None]:
    """A request's end closes the connection that this test's rows are on, outside of a client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    try:
        yield
    finally:
        for signal in signals:
            signal.connect(close_old_connections)


@pytest.mark.fuzz
@pytest.mark.django_db
def test_nothing_that_is_allowed_is_a_failure_of_ours(site) -> None:
    with connection_kept():
        try_everything()


def try_everything() -> None:
    from kbx_site.wsgi import application

    Board.bump()
    document = schemathesis.openapi.from_wsgi("/api/v1/schema/", application)
    failures: list[str] = []
    tried = 0
    for found in document.get_all_operations():
        operation = found.ok()

        @seed(176)
        @SETTINGS
        @given(case=operation.as_strategy())
        def ask(case) -> None:
            nonlocal tried
            tried += 1
            answer = case.call()
            if answer.status_code >= 500:
                failures.append(f"{answer.status_code} {case.as_curl_command()}")

        ask()
    assert failures == []
    assert tried > 20 * EXAMPLES


@pytest.mark.fuzz
@pytest.mark.servers
@pytest.mark.timeout(600)
def test_the_same_holds_on_postgresql_and_so_does_who_may_see_what() -> None:
    """Another database has other words for what it refuses: NUL in a text, a number too large."""
    files = [HERE, HERE.with_name("test_access.py"), HERE.with_name("test_canary.py")]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not servers"]
    environment = os.environ | {"DATABASE_URL": os.environ["KBX_TEST_DATABASE_URL"]}
    done = subprocess.run(
        [*command, *map(str, files)],
        env=environment, cwd=HERE.parents[2], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:]
