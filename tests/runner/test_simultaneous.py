"""Reports and confirmations that land at once: real processes on a real database; nothing is lost,
nothing is done twice.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg2
import pytest

ROOT = Path(__file__).resolve().parents[2]
WRITERS, TASKS = 4, 8
PATIENCE = 240  # seconds; only a broken system needs them
SET_UP = """
import os, sys, django
django.setup()
from django.utils import timezone
from benchmark.models import *
from runner.models import Job

writers, tasks = map(int, sys.argv[1:])
gpu = Gpu.objects.create(slug="h200", name="H200")
method = Method.objects.create(slug="m", name="M")
source = Source.objects.create(sha256="0" * 64, text="x", size=1)
for at in range(tasks):
    task = Task.objects.create(slug=f"task{at}", category="math", difficulty=1, digest="d" * 64)
    TaskVersion.objects.create(task=task, digest=task.digest)
now = timezone.now()
for writer in range(writers):
    submission = Submission.objects.create(method=method, label=f"of writer {writer}")
    for task in Task.objects.order_by("id"):
        candidate = Candidate.objects.create(submission=submission, task=task, source=source)
        Job.objects.create(candidate=candidate, gpu=gpu, sent_at=now, lease_expires_at=now)
"""
# Each has a submission of its own and reports on the same tasks in the same order, so that all of
# them decide at once which run counts there.
WRITE = """
import sys, time, django
from pathlib import Path
django.setup()
from runner import recording
from runner.models import Job

writer, go = int(sys.argv[1]), Path(sys.argv[2])
case = {"case": "c", "kind": "small", "shape": "n=3", "dtype": "float32", "state": "passed"}
board = {"gpu": "h200", "serial": str(writer), "host": "h", "name": "H200"}
jobs = list(Job.objects.filter(candidate__submission__label=f"of writer {writer}").order_by("id"))
Path(f"{go}.{writer}").touch()
while not go.exists():
    time.sleep(0.01)
for job in jobs:
    report = {
        "task": job.candidate.task.slug, "round": 0, "source_sha256": "0" * 64,
        "task_digest": "d" * 64, "judge_version": "1", "device": "h200", "verdict": "passed",
        "stage": "proof", "cases": [case], "kernels": [], "findings": [], "seconds": {},
        "environment": {},
    }
    assert recording.record_report(str(job.uuid), 1, board, report) is not None
"""
COUNT = """
import django
django.setup()
from benchmark.models import *

newest = Submission.objects.order_by("created_at", "id").last()
final = CountingRun.objects.filter(is_final=True)
print(Run.objects.count(), CountingRun.objects.count(), final.filter(submission=newest).count(),
      sum(RunTally.objects.values_list("runs", flat=True)), Board.current())
"""

MAKE_DRAFT = """
import django
django.setup()
from benchmark.models import *
from runner import drafting
from runner.intake import Found, Intake

Gpu.objects.create(slug="h200", name="H200", is_judging=True)
task = Task.objects.create(slug="relu", category="activation", difficulty=1, digest="d" * 64)
found = Intake((Found("relu", 0, "# x", "relu.py"),))
drafting.make(drafting.Entry("M", "model", "a"), found, None)
"""
CONFIRM = """
import sys, time, django
from pathlib import Path
django.setup()
from benchmark.models import Draft
from runner import drafting

writer, go = int(sys.argv[1]), Path(sys.argv[2])
draft = Draft.objects.get()
Path(f"{go}.{writer}").touch()
while not go.exists():
    time.sleep(0.01)
print(drafting.confirm(draft, None).uuid)
"""
COUNT_SUBMITTED = """
import django
django.setup()
from benchmark.models import *
from runner.models import Job

print(Submission.objects.count(), Candidate.objects.count(), Job.objects.count())
"""


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kbx.sqlite3'}"


@pytest.fixture
def postgresql() -> Iterator[str]:
    server, name = os.environ["KBX_TEST_DATABASE_URL"], f"kbx_{uuid4().hex[:12]}"
    with closing(psycopg2.connect(server)) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)]
)
def test_reports_that_land_at_once_all_count(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    environment = migrated(request.getfixturevalue(database), tmp_path)
    run(environment, SET_UP, WRITERS, TASKS)
    at_once(environment, WRITE, tmp_path / "go")
    runs = WRITERS * TASKS
    assert run(environment, COUNT) == f"{runs} {TASKS} {TASKS} {runs} {runs}"
    manage(environment, "rebuild_aggregates", "--check")


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)]
)
def test_a_draft_that_is_confirmed_at_once_is_submitted_once(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    environment = migrated(request.getfixturevalue(database), tmp_path)
    run(environment, MAKE_DRAFT)
    answers = at_once(environment, CONFIRM, tmp_path / "go")
    assert len(answers) == WRITERS
    assert len(set(answers)) == 1
    assert run(environment, COUNT_SUBMITTED) == "1 1 1"


def migrated(database: str, folder: Path) -> dict[str, str]:
    environment = {
        **os.environ,
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
        "KBX_STATE_DIR": str(folder),
        "KBX_BROKER_URL": "filesystem://localhost//",
        "PYTHONPATH": str(ROOT),
    }
    manage(environment, "migrate", "-v0")
    return environment


def at_once(environment: dict[str, str], program: str, go: Path) -> list[str]:
    """What each of several processes prints that begin when all of them are ready."""
    writers = [start(environment, program, writer, go) for writer in range(WRITERS)]
    for at, writer in enumerate(writers):
        while not Path(f"{go}.{at}").exists():
            assert writer.poll() is None, writer.communicate()[1]
    go.touch()
    answers = []
    for writer in writers:
        said, errors = writer.communicate(timeout=PATIENCE)
        assert writer.returncode == 0, errors
        answers.append(said.strip())
    return answers


def start(environment: dict[str, str], program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def run(environment: dict[str, str], program: str, *arguments: object) -> str:
    process = start(environment, program, *arguments)
    said, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    return said.strip()


def manage(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
