"""Lines that a collector reads: JSON, with ids of request, job and run, and nobody's secrets."""

import json
import logging
import sys
from collections.abc import Iterator

import pytest
from django.db import connection
from django.test import Client

from kbx_site import logs

SECRET = "not-for-a-log"


class Lines(logging.Handler):
    """Keeps lines as the JSON formatter writes them."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logs.JsonLines())
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def entries(self, logger: str) -> list[dict]:
        found = [json.loads(line) for line in self.lines]
        return [entry for entry in found if entry["logger"] == logger]


@pytest.fixture
def written() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger().addHandler(handler)
    yield handler
    logging.getLogger().removeHandler(handler)


def test_ids_that_a_message_names_become_fields(written: Lines) -> None:
    logging.getLogger("kbx.x").info("job=%s attempt=%s run=%s: told", "a-b", 2, "c-d")
    (entry,) = written.entries("kbx.x")
    assert entry["message"] == "job=a-b attempt=2 run=c-d: told"
    assert (entry["job"], entry["attempt"], entry["run"]) == ("a-b", "2", "c-d")
    assert entry["level"] == "INFO"
    assert entry["time"].endswith("+00:00")


def test_a_line_is_one_line_whatever_is_in_it(written: Lines) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logging.getLogger("kbx.x").exception("job=%s\n{broken", "a")
    (line,) = [line for line in written.lines if "kbx.x" in line]
    assert "\n" not in line
    assert "ValueError: first" in json.loads(line)["exception"]


def test_endless_text_is_cut(written: Lines) -> None:
    logging.getLogger("kbx.x").info("x" * 10 * logs.LONGEST)
    assert len(written.lines[-1]) < 2 * logs.LONGEST


@pytest.mark.django_db
def test_a_request_has_an_id_in_the_log_and_in_the_answer(written: Lines, make) -> None:
    make.task()
    answer = Client().get("/tasks/relu/", {"q": SECRET}, headers={"user-agent": SECRET})
    (entry,) = written.entries("kbx.request")
    assert entry["request"] == answer["X-Request-ID"]
    assert (entry["view"], entry["method"], entry["status"]) == ("leaderboard:task", "GET", 200)
    assert entry["ms"] > 0
    assert SECRET not in "".join(written.lines)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "is_taken"),
    [
        ("0123456789abcdef", True),
        ("short", False),
        ("with space and\ttab", False),
        ("x" * 65, False),
    ],
)
def test_a_proxys_id_is_taken_when_it_is_one(given: str, is_taken: bool) -> None:
    answer = Client().get("/healthz", headers={"x-request-id": given})
    assert (answer["X-Request-ID"] == given) is is_taken
    assert len(answer["X-Request-ID"]) >= 16


@pytest.mark.django_db
def test_paths_that_hold_a_key_are_not_written(written: Lines) -> None:
    Client().get(f"/accounts/password/reset/key/1-{SECRET}/")
    assert SECRET not in "".join(line for line in written.lines if '"kbx.request"' in line)


@pytest.mark.django_db
def test_slow_queries_are_told_without_their_parameters(written: Lines, settings, make) -> None:
    settings.KBX_SLOW_QUERY_MS = 1
    with connection.cursor() as cursor:
        connection.connection.create_function("wait", 1, _wait)
        cursor.execute("SELECT 1")
    from kbx_site.requests import watched_queries

    with watched_queries(), connection.cursor() as cursor:
        cursor.execute("SELECT wait(%s)", [SECRET])
    (entry,) = written.entries("kbx.slow")
    assert entry["sql"] == "SELECT wait(%s)"
    assert entry["ms"] >= 1
    assert SECRET not in "".join(written.lines)
    settings.KBX_SLOW_QUERY_MS = 0
    with watched_queries(), connection.cursor() as cursor:
        cursor.execute("SELECT wait(%s)", [SECRET])
    assert len(written.entries("kbx.slow")) == 1


def _wait(word: str) -> str:
    """Takes a few milliseconds of the processor."""
    return str(sum(range(300_000)))[:1] + word


def test_a_public_site_writes_json_and_a_person_reads_lines(monkeypatch) -> None:
    monkeypatch.delenv("KBX_LOG_FORMAT", raising=False)
    for module, expected in (
        ("kbx_site.settings.production", "json"),
        ("kbx_site.settings.development", "line"),
    ):
        monkeypatch.setenv("DJANGO_SETTINGS_MODULE", module)
        assert logs.settings()["handlers"]["stderr"]["formatter"] == expected
    monkeypatch.setenv("KBX_LOG_FORMAT", "json")
    assert logs.settings()["handlers"]["stderr"]["formatter"] == "json"


def test_a_host_with_boards_logs_without_django() -> None:
    import subprocess

    code = (
        "import sys, logging, kbx_site.logs as logs; logs.configure(); "
        "logging.getLogger('kbx.worker').info('job=%s', 'a'); print('django' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={"KBX_LOG_FORMAT": "json", "PYTHONPATH": str(logs.__file__).rsplit("/", 2)[0]},
    )  # fmt: skip
    assert done.stdout.split() == ["False"]
    assert json.loads(done.stderr)["job"] == "a"
