"""An older database becomes today's with what it held, and pages read it; none is missing."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
FIRST = (
    "benchmark.0001_initial", "runner.0001_initial", "auth.0012_alter_user_first_name_max_length",
)  # fmt: skip


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)], indirect=True
)
def test_the_first_releases_database_becomes_todays_and_goes_back(run: Run, database: str) -> None:
    aged = str(Path(__file__).with_name("aged.py"))
    done = run(database, aged, *FIRST)
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said == {
        "pages": [200],
        "run": 200,
        # alpha's gelu was found to cheat, gamma is private.
        "ranked": ["alpha", "beta"],
        "solved": [1, 1],
        "rows": [5, 5, 7],
        "owner": ["ann"],
        "sources": ["shown"],
        "contracts": ["gelu", "relu"],  # not kept then: a migration wrote them down
        "moderators": 1,
        "generation": True,
        "waits": 1,
        "silent": 1,
        "user": "ann@example.org",
    }


def test_no_migration_is_missing(run: Run) -> None:
    done = run("sqlite://:memory:", "manage.py", "makemigrations", "--check", "--dry-run")
    assert done.returncode == 0, done.stdout
