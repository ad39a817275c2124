"""Rows for tests of the whole site, made by the factories that the pages' tests use."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg2
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty one; a PostgreSQL one is gone after the test."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'kbx.sqlite3'}"
        return
    server, name = os.environ["KBX_TEST_DATABASE_URL"], f"kbx_{uuid4().hex[:12]}"
    with closing(psycopg2.connect(server)) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Python with these arguments, as a site with this database would start it."""

    def start(database: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "DATABASE_URL": database,
            "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
            "KBX_STATE_DIR": str(tmp_path),
            "KBX_BROKER_URL": "filesystem://localhost//",
            "KBX_LOG_LEVEL": "ERROR",
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.run(
            [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True
        )

    return start
