"""Real processes, a real broker, a real database: from an upload to the page that shows its run.

Each site lives in a temporary folder (or on the servers that the environment names) with leases of
seconds, so that a lost board is noticed soon. Tests wait for a state in the database, up to
PATIENCE. Whatever is killed, each candidate ends with the one verdict that is its own.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import kombu
import psycopg2
import pytest

from runner.processes import Child, stop_all

ROOT = Path(__file__).resolve().parents[2]
SERVERS = pytest.mark.servers
PATIENCE = 150  # seconds; only a broken system needs them
POLL_SECONDS = 0.1
QUEUES = ("site", "gpu.cpu-interpreter")
RELU = (ROOT / "samples/plain/Activation/relu.py").read_text()
WRONG = RELU.replace("def relu(", "def original(") + (
    "\n\ndef relu(input, inplace=False):\n    return original(input) * 2 + 1\n"
)
# Long enough at its import to be killed there; then it fails by its own doing, with its own words.
SLOW = RELU + "\nimport time\ntime.sleep(8)\nraise ValueError('my own fault')\n"
QUICK = RELU + "\nraise ValueError('my own fault')\n"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def manage(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def environment_of(folder: Path, **servers: str) -> dict[str, str]:
    return {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
        "KBX_STATE_DIR": str(folder),
        "KBX_BROKER_URL": "filesystem://localhost//",
        "KBX_TRUST_CANDIDATES": "1",
        "KBX_RUN_LEASE": "10",
        "KBX_QUEUE_LEASE": "15",
        "KBX_HEARTBEAT_SECONDS": "1",
        "KBX_SWEEP_SECONDS": "1",
        "KBX_RETRY_SECONDS": "1",
        "KBX_ANNOUNCE_SECONDS": "1",
        "KBX_PROBE_SECONDS": "1",
        "PYTHONPATH": str(ROOT),
        **servers,
    }


class Site:
    """A web process, the site's worker and one board (the interpreter)."""

    def __init__(self, folder: Path, servers: dict[str, str]) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.environment = environment_of(folder, **servers)
        self.children: list[Child] = []

    def start(self, name: str, *module: str) -> Child:
        command = [sys.executable, "-m", *module]
        child = Child(name, command, self.environment, log=self.folder / f"{name}.log")
        self.children.append(child)
        return child

    def start_web(self) -> None:
        bind = f"127.0.0.1:{self.port}"
        self.start("web", "gunicorn", "kbx_site.wsgi", "--chdir", str(ROOT), "--bind", bind)
        retries = httpx.Client(transport=httpx.HTTPTransport(retries=10), timeout=PATIENCE)
        assert retries.get(f"{self.url}/readyz").json()["ready"]

    def start_writer(self) -> Child:
        """The site's worker, which writes results down."""
        return self.start("site", "runner", "worker", "--no-devices", "--site-queue")

    def start_board(self, jobs: int = 1) -> Child:
        return self.start("board", "runner", "worker", "--devices", "cpu", "--jobs", str(jobs))

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

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What is in the site's own database, without its help."""
        url = self.environment["DATABASE_URL"]
        connect = sqlite3.connect if url.startswith("sqlite") else psycopg2.connect
        with closing(connect(url.removeprefix("sqlite:///"))) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())

    def change(self, statement: str) -> None:
        """Of an embedded site."""
        path = self.environment["DATABASE_URL"].removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, timeout=PATIENCE)) as connection, connection:
            # As Django has it: the table's constraints call it.
            connection.create_function("regexp", 2, lambda form, text: bool(re.search(form, text)))
            connection.execute(statement)

    def jobs(self) -> dict[str, tuple[str, str, int]]:
        """State, stage and attempt of the job by task."""
        found = self.rows(
            "SELECT task.slug, job.state, job.stage, job.attempt FROM runner_job job"
            " JOIN benchmark_candidate candidate ON candidate.id = job.candidate_id"
            " JOIN benchmark_task task ON task.id = candidate.task_id"
        )
        return {slug: (state, stage, attempt) for slug, state, stage, attempt in found}

    def runs(self) -> list[tuple[str, str, str]]:
        """Task, verdict and detail of every run."""
        return self.rows(
            "SELECT task.slug, run.verdict, run.detail FROM benchmark_run run"
            " JOIN benchmark_candidate candidate ON candidate.id = run.candidate_id"
            " JOIN benchmark_task task ON task.id = candidate.task_id ORDER BY task.slug"
        )

    def wait_until(self, holds: Callable[[], bool]) -> None:
        wait_until(holds, lambda: f"{self.jobs()}\n{self.logs()}")

    def wait_until_judging(self, task: str) -> None:
        """Until the candidate's own code runs on the board."""
        self.wait_until(lambda: self.jobs()[task][:2] == ("running", "load"))

    def wait_until_judged(self) -> None:
        self.wait_until(lambda: {state for state, *_ in self.jobs().values()} == {"done"})

    def logs(self) -> str:
        return "\n".join(path.read_text()[-4000:] for path in self.folder.glob("*.log"))


def wait_until(holds: Callable[[], bool], explain: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, explain()
        time.sleep(POLL_SECONDS)


def fill(folder: Path, database: str) -> None:
    """Tables and tasks, once; each site gets a copy."""
    environment = environment_of(folder, DATABASE_URL=database)
    manage(environment, "migrate", "-v0")
    manage(environment, "sync_tasks")
    manage(environment, "judge_on", "cpu-interpreter")


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    fill(folder, f"sqlite:///{folder / 'kbx.sqlite3'}")
    return folder / "kbx.sqlite3"


@contextmanager
def database_of_its_own(**options: str) -> Iterator[str]:
    """The URL of a new database on the server that the environment names; dropped at the end."""
    server, name = os.environ["KBX_TEST_DATABASE_URL"], f"kbx_{uuid4().hex[:12]}"
    like = "".join(f" {word.upper()} {value}" for word, value in options.items())
    with closing(psycopg2.connect(server)) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}{like}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def filled_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of a database to copy."""
    with database_of_its_own() as url:
        fill(tmp_path_factory.mktemp("filled"), url)
        yield urlsplit(url).path.strip("/")


@pytest.fixture
def embedded(tmp_path: Path, filled_file: Path) -> dict[str, str]:
    shutil.copy(filled_file, tmp_path)
    return {"DATABASE_URL": f"sqlite:///{tmp_path / filled_file.name}"}


@pytest.fixture
def on_servers(filled_database: str) -> Iterator[dict[str, str]]:
    broker = os.environ["KBX_TEST_BROKER_URL"]
    empty(broker)
    with database_of_its_own(template=filled_database) as url:
        yield {"DATABASE_URL": url, "KBX_BROKER_URL": broker}


def empty(broker: str) -> None:
    """What an earlier test left in the queues is not this one's."""
    if broker.startswith("redis"):
        import redis

        redis.Redis.from_url(broker).flushdb()
        return
    for queue in QUEUES:
        with kombu.Connection(broker) as connection, contextlib.suppress(connection.channel_errors):
            connection.default_channel.queue_delete(queue)


@pytest.fixture(
    params=[
        pytest.param("embedded"),
        pytest.param("on_servers", id="servers", marks=SERVERS),
    ]
)
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path, request.getfixturevalue(request.param))
    try:
        site.start_web()
        yield site
    finally:
        stop_all(site.children[::-1], 10)


def processes() -> Iterator[tuple[int, int, Path]]:
    """Process id, parent's id and folder in /proc of everything alive."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if fields[0] != "Z":
                yield int(folder.name), int(fields[1]), folder


def children_of(pid: int) -> list[int]:
    return [child for child, parent, _ in processes() if parent == pid]


def below(pid: int) -> list[int]:
    """All processes that this one started, and theirs."""
    return [found for child in children_of(pid) for found in (child, *below(child))]


def processes_of(site: Site) -> list[str]:
    """Command lines of living processes that work for this site, its web process left out."""
    mark, found = f"KBX_STATE_DIR={site.folder}".encode(), []
    for _, _, folder in processes():
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_text().replace("\0", " "))
    return [line for line in found if "gunicorn" not in line]


def celery_worker(of: Child) -> int:
    """Beside it the site's host has a clock."""
    below_it = children_of(of.process.pid)
    [worker] = [pid for pid in below_it if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return worker


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def kill_judging_process(site: Site, board: Child, writer: Child) -> None:
    """Of the board's worker only the pool's process: Celery gives the message out again."""
    worker = celery_worker(board)
    [judging] = children_of(worker)
    kill(judging)
    site.wait_until(lambda: children_of(worker) not in ([], [judging]))


def kill_boards_worker(site: Site, board: Child, writer: Child) -> None:
    """The Celery worker with all below it, at once; `kbx worker` starts another."""
    worker = celery_worker(board)
    kill(worker, *below(worker))


def kill_boards_host(site: Site, board: Child, writer: Child) -> None:
    """`kbx worker` and all below it, as when a host loses power; then the host is back."""
    kill(board.process.pid, *below(board.process.pid))
    site.start_board()


def kill_board_and_nothing_below(site: Site, board: Child, writer: Child) -> None:
    """What `kbx worker` started must not go on unwatched; another one takes its place."""
    worker = celery_worker(board)
    kill(board.process.pid)
    site.wait_until(lambda: worker not in [pid for pid, _, _ in processes()])
    site.start_board()


def kill_sites_worker(site: Site, board: Child, writer: Child) -> None:
    """The process that writes results down; `kbx worker` starts another."""
    worker = celery_worker(writer)
    kill(worker, *below(worker))


def kill_sites_host(site: Site, board: Child, writer: Child) -> None:
    kill(writer.process.pid, *below(writer.process.pid))
    site.start_writer()


Strike = Callable[[Site, Child, Child], None]
PROCESSES = [kill_judging_process, kill_boards_worker, kill_sites_worker]
HOSTS = [kill_boards_host, kill_board_and_nothing_below, kill_sites_host]


def test_an_upload_becomes_a_run_on_a_page(site: Site) -> None:
    site.start_writer()
    site.start_board()
    uuid = site.submit(relu=RELU, gelu=WRONG.replace("relu", "gelu"))
    command = [sys.executable, "-m", "runner", "status", uuid, "--watch", "--site", site.url]
    watching = subprocess.run(
        ["timeout", str(PATIENCE), *command], env=site.environment, capture_output=True, text=True
    )
    assert watching.returncode == 0, f"{watching.stderr}\n{site.logs()}"
    assert watching.stdout.splitlines()[-1].startswith("2/2 judged"), site.logs()
    verdicts = {task: verdict for task, verdict, _ in site.runs()}
    assert verdicts["relu"] == "passed"
    assert verdicts["gelu"] != "passed"
    [[run]] = site.rows("SELECT uuid FROM benchmark_run WHERE verdict = 'passed'")
    page = httpx.get(f"{site.url}/runs/{UUID(str(run))}/")
    assert page.status_code == 200
    assert "relu" in page.text
    board = httpx.get(f"{site.url}/leaderboard/?gpu=cpu-interpreter")
    assert board.status_code == 200
    assert "End &amp; &lt;End&gt;" in board.text


@pytest.mark.parametrize("strike", PROCESSES, ids=lambda strike: strike.__name__)
def test_a_kill_in_mid_job_loses_doubles_and_charges_nothing(site: Site, strike: Strike) -> None:
    struck_in_mid_job(site, strike)


@pytest.mark.parametrize("strike", HOSTS, ids=lambda strike: strike.__name__)
@pytest.mark.parametrize("site", [pytest.param("on_servers", marks=SERVERS)], indirect=True)
def test_a_host_that_dies_in_mid_job_loses_doubles_and_charges_nothing(
    site: Site, strike: Strike
) -> None:
    struck_in_mid_job(site, strike)


def struck_in_mid_job(site: Site, strike: Strike) -> None:
    """relu is struck while its code runs; gelu waits behind it."""
    writer, board = site.start_writer(), site.start_board()
    site.submit(relu=SLOW, gelu=QUICK.replace("relu", "gelu"))
    site.wait_until_judging("relu")
    strike(site, board, writer)
    site.wait_until_judged()
    assert [(task, verdict) for task, verdict, _ in site.runs()] == [
        ("gelu", "load-error"),
        ("relu", "load-error"),
    ], site.logs()
    assert all("my own fault" in detail for *_, detail in site.runs())
    stop_all(site.children[:0:-1], 20)
    assert processes_of(site) == []


def test_sigterm_ends_what_is_in_hand_and_leaves_the_rest_to_others(site: Site) -> None:
    site.start_writer()
    board = site.start_board()
    site.submit(relu=SLOW, gelu=QUICK.replace("relu", "gelu"))
    site.wait_until_judging("relu")
    started = below(board.process.pid)
    board.signal(signal.SIGTERM)
    assert board.process.wait(timeout=PATIENCE) == 0
    assert not {pid for pid, _, _ in processes()} & set(started)
    site.wait_until(lambda: site.jobs()["relu"][0] == "done")
    assert site.jobs()["gelu"][0] == "queued"
    assert len(site.runs()) == 1
    site.start_board()
    site.wait_until_judged()
    assert [task for task, *_ in site.runs()] == ["gelu", "relu"]
    assert {attempt for *_, attempt in site.jobs().values()} == {1}, site.logs()


EMBEDDED = pytest.mark.parametrize("site", ["embedded"], indirect=True)


@EMBEDDED
def test_a_board_that_fails_its_probe_leaves_the_queue_and_comes_back(site: Site) -> None:
    """Its judge's processes die under it, as those of a board that falls off the bus do."""
    broken = site.folder / "broken"
    site.environment["KBX_PROBE"] = f"sh -c '! test -e {broken} || {{ echo no power; exit 1; }}'"
    site.start_writer()
    board = site.start_board()
    site.submit(relu=SLOW)
    site.wait_until_judging("relu")
    broken.touch()
    [judging] = children_of(celery_worker(board))
    kill(*below(judging))
    site.wait_until(lambda: site.rows("SELECT state FROM runner_device") == [("broken",)])
    assert "no power" in httpx.get(f"{site.url}/queue/").text
    assert site.rows("SELECT state, failures FROM runner_job") == [("queued", 0)]
    broken.unlink()
    site.wait_until(lambda: site.rows("SELECT state FROM runner_device") == [("serving",)])
    assert "no power" not in httpx.get(f"{site.url}/queue/").text
    assert site.rows("SELECT failures FROM runner_job") == [(0,)]


@EMBEDDED
def test_a_worker_of_another_version_is_refused_on_both_sides_until_it_fits(site: Site) -> None:
    [[digest]] = site.rows("SELECT digest FROM benchmark_task WHERE slug = 'gelu'")
    site.change(f"UPDATE benchmark_task SET digest = '{'0' * 64}' WHERE slug = 'gelu'")
    site.start_writer()
    board = site.start_board()
    site.submit(relu=QUICK)
    site.wait_until(lambda: site.rows("SELECT state FROM runner_device") == [("refused",)])
    said = "contracts of 1 of "
    page = httpx.get(f"{site.url}/queue/").text
    assert said in page
    assert "run sync_tasks" in page
    assert board.log is not None
    site.wait_until(lambda: "refused by the site" in site.logs())
    terminal = board.log.read_text()
    assert said in terminal
    assert "Remedy: " in terminal
    assert site.jobs()["relu"] == ("queued", "", 1)
    site.change(f"UPDATE benchmark_task SET digest = '{digest}' WHERE slug = 'gelu'")
    site.wait_until_judged()
    assert site.jobs()["relu"][2] == 1


THREE = {"relu": SLOW, "gelu": SLOW.replace("relu", "gelu"), "tanh": SLOW.replace("relu", "tanh")}


def three_in_hand(site: Site) -> tuple[Child, str]:
    """A board of three threads with three slow candidates under judgement; the submission."""
    site.start_writer()
    board = site.start_board(jobs=3)
    uuid = site.submit(**THREE)
    site.wait_until(
        lambda: (
            {(state, stage) for state, stage, _ in site.jobs().values()} == {("running", "load")}
        )
    )
    return board, uuid


def all_three_ended_unspent(site: Site) -> None:
    """Each by its own doing, and charged with no failure."""
    site.wait_until_judged()
    assert [task for task, *_ in site.runs()] == ["gelu", "relu", "tanh"], site.logs()
    assert all("my own fault" in detail for *_, detail in site.runs())
    assert site.rows("SELECT failures FROM runner_job") == [(0,)] * 3, site.logs()


@EMBEDDED
def test_a_judge_that_dies_under_several_is_replaced_and_none_of_them_charged(site: Site) -> None:
    """Nobody knows whose doing it was, so each is judged once more, by itself."""
    board, uuid = three_in_hand(site)
    assert site.rows("SELECT jobs FROM runner_device") == [(3,)]
    told = httpx.get(f"{site.url}/api/v1/submissions/{uuid}/", timeout=PATIENCE).json()
    assert told["jobs"]["running"] == 3
    command = [sys.executable, "-m", "runner", "status", uuid, "--site", site.url]
    said = subprocess.run(command, env=site.environment, capture_output=True, text=True)
    assert "3 running" in said.stdout, said.stderr
    page = httpx.get(f"{site.url}/submissions/{uuid}/").text
    assert "<strong>3</strong> running" in page
    worker = celery_worker(board)
    kill(*below(worker))
    all_three_ended_unspent(site)
    assert celery_worker(board) == worker
    assert {attempt for *_, attempt in site.jobs().values()} == {1}


@EMBEDDED
def test_a_board_that_fails_gives_all_in_hand_back(site: Site) -> None:
    broken = site.folder / "broken"
    site.environment["KBX_PROBE"] = f"sh -c '! test -e {broken} || {{ echo no power; exit 1; }}'"
    board, _ = three_in_hand(site)
    broken.touch()
    kill(*below(celery_worker(board)))
    site.wait_until(lambda: site.rows("SELECT state FROM runner_device") == [("broken",)])
    site.wait_until(lambda: {state for state, *_ in site.jobs().values()} == {"queued"})
    broken.unlink()
    all_three_ended_unspent(site)


@EMBEDDED
@pytest.mark.parametrize("end", [signal.SIGQUIT, signal.SIGKILL], ids=lambda number: number.name)
def test_several_in_hand_outlive_their_worker(site: Site, end: signal.Signals) -> None:
    """`kbx worker` itself is told to end, or its worker dies; all of them come to others."""
    board, _ = three_in_hand(site)
    started = below(board.process.pid)
    if end == signal.SIGKILL:
        kill(celery_worker(board), *below(celery_worker(board)))
    else:
        board.signal(end)
        assert board.process.wait(timeout=PATIENCE) == 0
        assert not {pid for pid, _, _ in processes()} & set(started)
        site.start_board(jobs=3)
    site.wait_until_judged()
    assert [task for task, *_ in site.runs()] == ["gelu", "relu", "tanh"], site.logs()
    assert all("my own fault" in detail for *_, detail in site.runs())
    stop_all(site.children[:0:-1], 20)
    assert processes_of(site) == []
