"""What we start ends with us, all of it, in whatever way we end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds; only a broken system needs them
POLL_SECONDS = 0.05
MARK = "KBX_TEST_MARK"
# Says "up" once it can't be ended by request any more; below it one that left its group.
STUBBORN = """
import signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if len(sys.argv) > 1:
    subprocess.Popen([sys.executable, "-c", sys.argv[1]], start_new_session=True)
    print("up", flush=True)
time.sleep(600)
"""
PARENT = """
import os, sys
from runner.processes import Child, adopt, end_orphans, stop_all

adopt()
stubborn = sys.argv[1]
child = Child("stubborn", [sys.executable, "-c", stubborn, stubborn], os.environ)
sys.stdin.readline()
stop_all([child], 0.2)
end_orphans()
print("ended", flush=True)
"""


@pytest.fixture
def mark() -> Iterator[str]:
    """In the environment of all that a test starts; what is left of it is killed."""
    word = uuid4().hex
    yield word
    for pid in alive(word):
        os.kill(pid, signal.SIGKILL)


def alive(mark: str) -> list[int]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
        except OSError:
            continue
    return found


@contextmanager
def started(mark: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), MARK: mark, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until(holds: Callable[[], bool], explain: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, explain()
        time.sleep(POLL_SECONDS)


@pytest.fixture
def parent(mark: str) -> Iterator[subprocess.Popen[str]]:
    """With a child and a grandchild that don't end when asked."""
    with started(mark, "-c", PARENT, STUBBORN) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert len(alive(mark)) == 3
        yield process


def test_what_does_not_end_when_asked_is_ended_with_all_below(
    parent: subprocess.Popen[str], mark: str
) -> None:
    assert parent.communicate("end\n", timeout=PATIENCE)[0] == "ended\n"
    assert alive(mark) == []


def test_a_child_dies_with_a_parent_that_is_killed(
    parent: subprocess.Popen[str], mark: str
) -> None:
    parent.kill()
    wait_until(lambda: len(alive(mark)) == 1, lambda: alive(mark))  # the one that left by itself


def worker(mark: str, state: Path, *what: str) -> AbstractContextManager[subprocess.Popen[str]]:
    return started(
        mark, "-m", "runner", "worker", *what,
        KBX_STATE_DIR=str(state), KBX_BROKER_URL="filesystem://localhost//",
    )  # fmt: skip


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT], ids=lambda n: n.name)
def test_a_worker_that_must_end_while_it_starts_leaves_nothing(
    mark: str, tmp_path: Path, number: signal.Signals
) -> None:
    with worker(mark, tmp_path, "--devices", "cpu,cpu", "--builds") as running:
        wait_until(lambda: len(alive(mark)) > 1, lambda: alive(mark))
        running.send_signal(number)
        said = running.communicate(timeout=PATIENCE)[0]
    assert running.returncode == 0, said
    assert alive(mark) == []


def test_nothing_of_a_worker_lives_on_when_it_is_killed(mark: str, tmp_path: Path) -> None:
    with worker(mark, tmp_path, "--no-devices", "--builds") as running:
        wait_until(lambda: len(alive(mark)) >= 3, lambda: alive(mark))  # with a pool of one
        running.kill()
        wait_until(lambda: alive(mark) == [], lambda: alive(mark))
