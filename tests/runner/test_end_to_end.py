"""Real processes, a real broker, a real database: from an upload to the page that shows its run.

Each site lives in a temporary folder (or on the servers that the environment names) with leases of
seconds, so that a lost board is noticed soon. Waiting is reading the lines of `kbx status --watch`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import psycopg2
import pytest

from runner.processes import Child, stop_all

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 150  # seconds; only a broken system needs them
RELU = (ROOT / "samples/plain/Activation/relu.py").read_text()
SLOW = RELU + "\nimport time\ntime.sleep(6)\n"
WRONG = RELU.replace("def relu(", "def original(") + (
    "\n\ndef relu(input, inplace=False):\n    return original(input) * 2 + 1\n"
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Site:
    """A web process, the site's worker and one board (the interpreter)."""

    def __init__(self, folder: Path, servers: dict[str, str]) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
            "KBX_STATE_DIR": str(folder),
            "KBX_BROKER_URL": "filesystem://localhost//",
            "KBX_TRUST_CANDIDATES": "1",
            "KBX_RUN_LEASE": "6",
            "KBX_QUEUE_LEASE": "6",
            "KBX_HEARTBEAT_SECONDS": "1",
            "KBX_SWEEP_SECONDS": "1",
            "KBX_RETRY_SECONDS": "1",
            "PYTHONPATH": str(ROOT),
            **servers,
        }
        self.children: list[Child] = []

    def set_up(self) -> None:
        self.manage("migrate", "-v0")
        self.manage("sync_tasks")
        self.manage("judge_on", "cpu-interpreter")

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    def start(self, name: str, *module: str) -> Child:
        command = [sys.executable, "-m", *module]
        child = Child(name, command, self.environment, log=self.folder / f"{name}.log")
        self.children.append(child)
        return child

    def start_web(self) -> None:
        bind = f"127.0.0.1:{self.port}"
        self.start("web", "gunicorn", "kbx_site.wsgi", "--chdir", str(ROOT), "--bind", bind)
        retries = httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=PATIENCE)
        assert retries.get(f"{self.url}/readyz").json() == {"database": True}

    def start_workers(self) -> Child:
        """The site's worker, and the board's, which is returned."""
        self.start("site", "runner", "worker", "--no-devices", "--site-queue")
        return self.start("board", "runner", "worker", "--devices", "cpu")

    def submit(self, **sources: str) -> str:
        """Upload sources by task; the submission's uuid."""
        lines = [
            json.dumps({"file": f"{name}.py", "predict": text}) for name, text in sources.items()
        ]
        sent = httpx.post(
            f"{self.url}/api/v1/submissions/",
            files={"file": ("predictions.jsonl", "\n".join(lines))},
            data={"method": "End & <End>", "label": "first"},
            timeout=PATIENCE,
        )
        assert sent.status_code == 201, sent.text
        return str(sent.json()["uuid"])

    def progress(self, uuid: str) -> Iterator[str]:
        """The lines of `kbx status --watch`, until everything is judged."""
        command = [sys.executable, "-m", "runner", "status", uuid, "--watch", "--site", self.url]
        watching = subprocess.Popen(
            ["timeout", str(PATIENCE), *command], env=self.environment,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert watching.stdout is not None
        with watching:
            yield from watching.stdout
        assert watching.returncode == 0, self.logs()

    def rows(self, expression: str) -> Any:
        """A Python expression over the models, read in the site's own database, as JSON."""
        code = (
            "import json; from runner.models import *; from benchmark.models import *; "
            f"print('ROWS' + json.dumps(list({expression}), default=str))"
        )
        return json.loads(self.manage("shell", "-v0", "-c", code).partition("ROWS")[2])

    def logs(self) -> str:
        return "\n".join(path.read_text()[-4000:] for path in self.folder.glob("*.log"))


@contextmanager
def embedded(folder: Path) -> Iterator[dict[str, str]]:
    yield {"DATABASE_URL": f"sqlite:///{folder / 'kbx.sqlite3'}"}


@contextmanager
def on_servers(folder: Path) -> Iterator[dict[str, str]]:
    """A database of its own beside the one that is named, and the broker, emptied."""
    broker, database = os.environ["KBX_TEST_BROKER_URL"], os.environ["KBX_TEST_DATABASE_URL"]
    if broker.startswith("redis"):
        import redis

        redis.Redis.from_url(broker).flushdb()
    name = f"kbx_{uuid4().hex[:12]}"
    with closing(psycopg2.connect(database)) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}")
        try:
            own = urlsplit(database)._replace(path=f"/{name}").geturl()
            yield {"DATABASE_URL": own, "KBX_BROKER_URL": broker}
        finally:
            connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(
    params=[
        pytest.param(embedded, id="embedded"),
        pytest.param(on_servers, id="servers", marks=pytest.mark.servers),
    ]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with request.param(tmp_path) as servers:
        site = Site(tmp_path, servers)
        site.set_up()
        try:
            site.start_web()
            yield site
        finally:
            stop_all(site.children[::-1], 10)


def celery_workers(of: Child) -> list[int]:
    """The Celery workers below a `kbx worker`; each leads its own process group."""
    children = Path(f"/proc/{of.process.pid}/task/{of.process.pid}/children").read_text()
    return [int(pid) for pid in children.split()]


def group_members(group: int) -> list[str]:
    """The command lines of the living processes in a process group."""
    members = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                members.append((stat.parent / "cmdline").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue
    return members


def test_an_upload_becomes_a_run_on_a_page(site: Site) -> None:
    site.start_workers()
    uuid = site.submit(relu=RELU, gelu=WRONG.replace("relu", "gelu"))
    last = list(site.progress(uuid))[-1]
    assert last.startswith("2/2 judged"), site.logs()
    verdicts = dict(site.rows("Run.objects.values_list('candidate__task__slug', 'verdict')"))
    assert verdicts["relu"] == "passed"
    assert verdicts["gelu"] != "passed"
    [run] = site.rows("Run.objects.filter(verdict='passed').values_list('uuid', flat=True)")
    page = httpx.get(f"{site.url}/runs/{run}/")
    assert page.status_code == 200
    assert "relu" in page.text
    board = httpx.get(f"{site.url}/leaderboard/?gpu=cpu-interpreter")
    assert board.status_code == 200
    assert "End &amp; &lt;End&gt;" in board.text


def test_killing_the_worker_in_mid_job_loses_and_doubles_nothing(site: Site) -> None:
    board = site.start_workers()
    uuid = site.submit(relu=SLOW, gelu=(ROOT / "samples/plain/Activation/gelu.py").read_text())
    killed = False
    for line in site.progress(uuid):
        if "running" in line and not killed:
            [worker] = celery_workers(board)
            os.killpg(worker, signal.SIGKILL)
            killed = True
        last = line
    assert killed, site.logs()
    assert last.startswith("2/2 judged (2 passed)"), site.logs()
    runs = site.rows("Run.objects.values_list('candidate__task__slug', flat=True)")
    assert sorted(runs) == ["gelu", "relu"]
    assert set(site.rows("Job.objects.values_list('state', flat=True)")) == {"done"}


def test_killing_the_judging_process_alone_is_survived_too(site: Site) -> None:
    """The pool's process dies, its worker lives: Celery gives the message out again."""
    board = site.start_workers()
    uuid = site.submit(relu=SLOW)
    killed = False
    for line in site.progress(uuid):
        if "running" in line and not killed:
            [worker] = celery_workers(board)
            children = Path(f"/proc/{worker}/task/{worker}/children").read_text().split()
            os.kill(int(children[0]), signal.SIGKILL)
            killed = True
        last = line
    assert killed
    assert last.startswith("1/1 judged (1 passed)"), site.logs()
    assert len(site.rows("Run.objects.values_list('pk', flat=True)")) == 1


def test_sigterm_ends_workers_and_all_that_they_started(site: Site) -> None:
    board = site.start_workers()
    uuid = site.submit(relu=RELU)
    assert list(site.progress(uuid))[-1].startswith("1/1 judged")
    groups = [board.process.pid, *celery_workers(board)]
    board.signal(signal.SIGTERM)
    assert board.process.wait(timeout=60) == 0
    assert [group_members(group) for group in groups] == [[], []]
