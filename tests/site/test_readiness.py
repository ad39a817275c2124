"""Ready or not, and why: each part a site needs, said in a sentence that gives nothing away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from kbx_site import readiness

ROOT = Path(__file__).resolve().parents[2]

# Two web processes of one server: what both counted is what either says.
TOGETHER = """
import os, django
django.setup()
from django.test import Client
from prometheus_client import multiprocess

def ask(times):
    for _ in range(times):
        Client(headers={"host": "localhost"}).get("/healthz")

child = os.fork()
if not child:
    ask(2)
    os._exit(0)
os.waitpid(child, 0)
multiprocess.mark_process_dead(child)
ask(3)
text = Client(headers={"host": "localhost"}).get("/metrics").content.decode()
print([line.rpartition(" ")[2] for line in text.splitlines()
       if line.startswith("kbx_requests_total") and "healthz" in line])
"""


@pytest.mark.django_db
def test_a_site_without_its_tasks_is_ready_and_says_so(make) -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {
        "ready": True, "database": "ok", "migrations": "ok", "broker": "ok",
        "tasks": "176 tasks differ from this release's: run manage.py sync_tasks",
    }  # fmt: skip
    for slug, digest in readiness.released().items():
        make.task(slug, digest=digest)
    assert Client().get("/readyz").json()["tasks"] == "ok"
    make.task("a-task-of-our-own")  # of an older release, say: retired, and nobody's concern here
    assert Client().get("/readyz").json()["tasks"] == "ok"


@pytest.mark.django_db
def test_a_database_that_is_older_is_not_ready(monkeypatch) -> None:
    monkeypatch.setattr(readiness, "_migrated", False)
    newest = max(name for app, name in MigrationRecorder(connection).applied_migrations()
                 if app == "benchmark")  # fmt: skip
    MigrationRecorder(connection).record_unapplied("benchmark", newest)
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["ready"] is False
    assert "not applied: run manage.py migrate" in answer.json()["migrations"]
    MigrationRecorder(connection).record_applied("benchmark", newest)
    assert Client().get("/readyz").status_code == 200


def python(tmp_path: Path, program: str, **changes: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
        "KBX_STATE_DIR": str(tmp_path),
        **changes,
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("scheme", ["redis", "amqp"])
def test_a_broker_that_is_away_is_said_soon_and_without_its_password(
    scheme: str, tmp_path: Path
) -> None:
    program = (
        "import django; django.setup(); from kbx_site import readiness; print(readiness.broker())"
    )
    address = f"{scheme}://kbx:hush-hush@127.0.0.1:1/0"  # nobody listens there
    said = python(tmp_path, program, KBX_BROKER_URL=address).strip()
    assert said == "the broker does not answer: what is submitted waits until it does"


def test_web_processes_are_counted_together(tmp_path: Path) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    (line,) = python(tmp_path, TOGETHER, PROMETHEUS_MULTIPROC_DIR=str(folder)).splitlines()[-1:]
    assert line == "['5.0']"
