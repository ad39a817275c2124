"""Several jobs in hand in one process: the pool of threads, in a real worker with a real broker."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery

from kbx_site.celery import configuration
from runner.processes import Child

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60  # seconds; only a broken system needs them
POLL_SECONDS = 0.05
HANDS = 3
MESSAGE = {
    "attempt": 2, "task": "relu",
    "task_digest": "0" * 64, "round": 0, "source": "", "source_sha256": "0" * 64, "time_limit": 2,
}  # fmt: skip


class Toy:
    """Workers with HANDS threads each on one queue, and who sends to it."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder, self.broker = folder, broker
        self.app = Celery("sender", set_as_current=False)
        self.app.conf.update(configuration(broker, folder))
        self.queue = f"toy.{uuid4().hex}"  # what an earlier test left is not this one's
        self.children: list[Child] = []

    def start(self) -> Child:
        command = [
            sys.executable, "-m", "runner.threads", "-A", "toy_worker", "worker",
            "-P", "custom", "-c", str(HANDS), "-Q", self.queue, "-l", "WARNING",
            "-n", f"toy{len(self.children)}@here",
            "--without-gossip", "--without-mingle", "--without-heartbeat",
        ]  # fmt: skip
        ours = {
            "CELERY_CUSTOM_WORKER_POOL": "runner.threads:Pool",
            "KBX_BROKER_URL": self.broker,
            "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}",
            "TOY_FOLDER": str(self.folder),
            "KBX_STATE_DIR": str(self.folder),
        }
        log = self.folder / "worker.log"
        child = Child("toy", command, {**os.environ, **ours}, log)
        self.children.append(child)
        return child

    def send(self, *words: str) -> None:
        for word in words:
            self.app.send_task("toy.job", kwargs={"word": word}, queue=self.queue)

    def told(self, job: str) -> dict[str, Any]:
        """The next message to the site about this job."""
        with self.app.connection_for_read() as connection, connection.SimpleQueue("site") as site:
            while True:
                message = site.get(timeout=PATIENCE)
                message.ack()
                facts = {"name": message.headers["task"], **message.payload[1]}
                if facts.get("job") == job:
                    return facts

    def go(self, *words: str) -> None:
        for word in words:
            (self.folder / f"{word}.go").touch()

    def begun(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.begun")}

    def done(self) -> set[str]:
        return {path.stem for path in self.folder.glob("*.done")}

    def times_begun(self, word: str) -> int:
        return len((self.folder / f"{word}.begun").read_text().splitlines())

    def wait_until(self, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, (self.begun(), self.done(), self.log())
            time.sleep(POLL_SECONDS)

    def log(self) -> str:
        return (self.folder / "worker.log").read_text()[-4000:]

    def ended(self, child: Child) -> int:
        return child.process.wait(timeout=PATIENCE)


@pytest.fixture(
    params=[pytest.param("embedded"), pytest.param("servers", marks=pytest.mark.servers)]
)
def toy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Toy]:
    broker = "filesystem://localhost//"
    if request.param == "servers":
        broker = os.environ["KBX_TEST_BROKER_URL"]
    toy = Toy(tmp_path, broker)
    yield toy
    for child in toy.children:
        child.kill_group()


def test_so_many_are_in_hand_and_no_more_are_fetched(toy: Toy) -> None:
    toy.send("a", "b", "c", "d", "e")
    toy.start()
    toy.wait_until(lambda: toy.begun() == {"a", "b", "c"})
    toy.start()  # what the first has not in hand is there for others
    toy.wait_until(lambda: toy.begun() == {"a", "b", "c", "d", "e"})
    toy.go("e", "b", "a", "c", "d")
    toy.wait_until(lambda: toy.done() == {"a", "b", "c", "d", "e"})


def test_whoever_ends_makes_room_for_the_next(toy: Toy) -> None:
    toy.send("a", "b", "c", "d")
    toy.start()
    toy.wait_until(lambda: len(toy.begun()) == HANDS)
    toy.go("b")
    toy.wait_until(lambda: "d" in toy.begun())
    assert toy.done() == {"b"}


def test_sigterm_waits_for_all_in_hand_and_takes_no_more(toy: Toy) -> None:
    toy.send("a", "b", "c", "d")
    child = toy.start()
    toy.wait_until(lambda: len(toy.begun()) == HANDS)
    child.signal(signal.SIGTERM)
    toy.wait_until(lambda: "Warm shutdown" in toy.log())
    toy.go("a")
    toy.wait_until(lambda: "a" in toy.done())
    assert child.is_alive
    toy.go("b", "c", "d")
    assert toy.ended(child) == 0
    assert toy.done() == {"a", "b", "c"}
    toy.start()  # of what was done nothing is done again
    toy.wait_until(lambda: "d" in toy.done())
    assert [toy.times_begun(word) for word in "abcd"] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "signals", [[signal.SIGQUIT], [signal.SIGTERM, signal.SIGQUIT]], ids=["at once", "after all"]
)
def test_sigquit_gives_all_in_hand_back_and_the_process_ends(
    toy: Toy, signals: list[signal.Signals]
) -> None:
    toy.send("a", "b", "c")
    child = toy.start()
    toy.wait_until(lambda: len(toy.begun()) == HANDS)
    for number in signals:
        child.signal(number)
        if number == signal.SIGTERM:
            toy.wait_until(lambda: "Warm shutdown" in toy.log())
    toy.ended(child)  # though its threads wait for ever
    assert toy.done() == set()
    toy.go("a", "b", "c")
    toy.start()
    toy.wait_until(lambda: toy.done() == {"a", "b", "c"})
    assert [toy.times_begun(word) for word in "abc"] == [2, 2, 2]


def test_a_job_that_hangs_ends_the_process_and_comes_not_again_but_the_others_do(toy: Toy) -> None:
    toy.send("a", "b")
    message = {**MESSAGE, "job": str(uuid4())}
    hanging = {"word": "hangs", **message}
    toy.app.send_task("toy.job", kwargs=hanging, queue=toy.queue, time_limit=2)
    child = toy.start()
    toy.ended(child)
    assert toy.begun() == {"hangs", "a", "b"}
    told = toy.told(message["job"])
    assert told["name"] == "runner.record_failure"
    assert (told["job"], told["attempt"]) == (message["job"], message["attempt"])
    assert told["reason"] == "the judgement did not end within 2 s"
    toy.go("a", "b", "hangs", "last")
    toy.start()
    toy.send("last")
    toy.wait_until(lambda: toy.done() == {"a", "b", "last"})
    assert [toy.times_begun(word) for word in ("hangs", "a", "b")] == [1, 2, 2]
