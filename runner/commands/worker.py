"""`kbx worker`: one judging process per board of this host, and on request the site's own worker
and one that compiles.

Each board gets a Celery worker with a pool of one process. The pool (rather than judging in the
worker itself) keeps the worker answering its broker while a judgement takes minutes, and lets the
hard time limit end a judge that hangs. With `--jobs` above one the worker judges in threads of its
own instead, which share the board's judge (`runner.threads`).
"""

import json
import logging
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType

import click

from benchmark.vocabulary import DRAINING, GONE, MOST_JOBS, STARTING
from kbx_site import env
from runner.judging import SUPERSEDED_SECONDS, outbox, publish
from runner.places import Place, Seat
from runner.processes import Child, adopt, end_orphans, stop_all
from runner.replies import Mailbox, host_name

logger = logging.getLogger("kbx.worker")

STEP_SECONDS = 0.5
ANNOUNCE_SECONDS = 15
RESTART_SECONDS = 5  # between a worker's death and its successor: no tight loop over a broken host
HURRIED_SECONDS = 5  # for Celery to give jobs back to the broker, once it must end
# What only matters to many workers that talk to one another, which ours don't; heartbeats only to
# who listens to events.
QUIET = ("--without-gossip", "--without-mingle")
SILENT = ("--without-heartbeat",)


def seats(wanted: Sequence[str], jobs: int = 1) -> list[Seat]:
    """The boards that the words mean ("cpu", "cuda:N", "all"), each with so many jobs in hand;
    naming `cpu` twice seats two.
    """
    from runner.engine import find_devices

    specs = [spec for word in wanted for spec in find_devices(word)]
    twice = [spec for spec, times in Counter(specs).items() if times > 1 and spec.kind != "cpu"]
    if twice:
        raise ValueError(f"cuda:{twice[0].index} is named twice: one process per board")
    return [Seat(spec, at, jobs) for at, spec in enumerate(specs)]


def celery(
    name: str, queue: str, *options: str, module: str = "celery", jobs: int = 1
) -> list[str]:
    """The command line of a Celery worker on one queue, `module` being what runs Celery.

    No two may have one name: RabbitMQ gives the queue of that name, for remote control, to one.
    """
    quiet = QUIET if env.flag("KBX_TASK_EVENTS", False) else (*QUIET, *SILENT)
    node = f"{name}.{os.getpid()}@{host_name()}"
    return [
        sys.executable, "-m", module, "-A", "kbx_site.celery", "worker",
        "-Q", queue, "-n", node, "-c", str(jobs), "-l", "WARNING", *quiet, *options,
    ]  # fmt: skip


def seat_worker(seat: Seat) -> Child:
    """A worker for this board."""
    name, gpus_queue = seat.name, f"gpu.{seat.spec.gpu}"
    if seat.jobs == 1:
        return Child(name, celery(name, gpus_queue, "-P", "prefork"), seat.environment)
    ours = {"CELERY_CUSTOM_WORKER_POOL": "runner.threads:Pool"}
    command = celery(name, gpus_queue, "-P", "custom", module="runner.threads", jobs=seat.jobs)
    return Child(name, command, seat.environment | ours)


def site_worker() -> Child:
    """The worker that writes results down.

    A pool of one: SQLite has one writer anyway. Without a pool, messages of RabbitMQ lay in the
    worker for a minute and more, until its next timer, and it could not answer the broker while the
    database is away.
    """
    environment = {"DJANGO_SETTINGS_MODULE": "kbx_site.settings.development"} | dict(os.environ)
    return Child("site", celery("site", "site", "-P", "prefork"), environment)


def build_worker() -> Child:
    """A worker that compiles for architectures that are not here. No board, no Django."""
    from kbx_site.celery import BUILDS_QUEUE

    environment = {
        name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"
    }
    return Child("builds", celery("builds", BUILDS_QUEUE, "-P", "prefork"), environment)


def clock() -> Child:
    """What asks for a sweep now and then. A process of its own: inside of the site's worker it held
    RabbitMQ's messages back for 20 s and more.
    """
    command = [
        sys.executable, "-m", "celery", "-A", "kbx_site.celery", "beat", "-l", "WARNING",
        "--pidfile=",
    ]  # fmt: skip
    return Child("clock", command, dict(os.environ))


@dataclass
class Crew:
    """The boards' places and the site's own workers, watched until somebody says stop."""

    places: Sequence[Place]
    children: list[Child] = field(default_factory=list)
    mailbox: Mailbox = field(default_factory=Mailbox)
    stopped: threading.Event = field(default_factory=threading.Event)
    hurried: threading.Event = field(default_factory=threading.Event)
    announced: float | None = None

    def listen(self) -> None:
        """Before the first child starts: a signal that comes earlier must not leave it behind."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, self.on_signal)

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal lets the judgements in hand end; a second, or SIGQUIT, gives them back
        at once.
        """
        if self.stopped.is_set() or number == signal.SIGQUIT:
            self.hurried.set()
        self.stopped.set()

    @property
    def everybody(self) -> list[Child]:
        """What this process started and has not ended."""
        return [place.child for place in self.places if place.child] + self.children

    def start(self, starters: Iterable[Callable[[], Child]]) -> None:
        for starter in starters:
            if self.stopped.is_set():
                return
            self.children.append(starter())

    def watch(self) -> None:
        """Let places take their steps and replace the site's workers that died, until stopped."""
        while not self.stopped.wait(STEP_SECONDS):
            for place in self.places:
                place.step()
            if self.places:
                self.exchange()
            for child in self.children:
                if not child.is_alive and not self.stopped.wait(RESTART_SECONDS):
                    logger.error("worker %s died: started again", child.name)
                    child.kill_group()
                    child.start()
            # What a dead worker left would use the board beside its successor.
            end_orphans([child.process.pid for child in self.everybody])

    def exchange(self) -> None:
        """News to the site, or every few seconds that the boards are there; the site's word."""
        now, every = time.monotonic(), env.integer("KBX_ANNOUNCE_SECONDS", ANNOUNCE_SECONDS)
        is_due = self.announced is None or now - self.announced > every
        if is_due or any(place.is_news for place in self.places):
            self.announced = now
            self.announce()
            outbox().deliver(older_than=every)
        for word in self.mailbox.read():
            for place in self.places:
                if place.serial == word["serial"]:
                    place.hear(word)

    def announce(self) -> None:
        """Places that are not tried out yet have nothing to say."""
        for place in self.places:
            if place.contract is None and place.state == STARTING:
                continue
            try:
                facts = {**place.announcement(), "answer": self.mailbox.address}
                publish("record_board", facts, expires=SUPERSEDED_SECONDS)
                place.is_news = False
            except Exception:  # the broker is away; the workers wait for it, and so do we
                logger.warning("board %s not announced", place.seat.name, exc_info=True)

    def end(self) -> None:
        """Warm: wait for what is in hand. A second signal cuts that short. Nothing is left."""
        for place in self.places:
            place.leave(DRAINING)
        for child in self.everybody:
            child.signal(signal.SIGTERM)
        self.announce()
        while any(child.is_alive for child in self.everybody) and not self.hurried.wait(0.2):
            pass
        stop_all(self.everybody, HURRIED_SECONDS, [signal.SIGQUIT])
        end_orphans()
        for place in self.places:
            place.leave(GONE)
        self.announce()
        outbox().deliver()
        self.mailbox.close()


@click.command()
@click.option(
    "--devices",
    default="all",
    show_default=True,
    help="comma-separated: cpu, cuda:N, all (every GPU); cpu,cpu starts two interpreters",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST_JOBS),
    default=1,
    show_default=True,
    envvar="KBX_JOBS",
    help="candidates that a board has in hand at once: others compile while one is timed",
)
@click.option("--site-queue", is_flag=True, help="also write results down: needs the database")
@click.option("--no-devices", is_flag=True, help="no board: with --site-queue, the site's host")
@click.option(
    "--builds",
    is_flag=True,
    help="also compile candidates for other architectures: keeps a core busy, so not beside boards",
)
@click.option("--list", "listing", is_flag=True, help="print this host's boards as JSON and end")
def command(
    devices: str, jobs: int, site_queue: bool, no_devices: bool, builds: bool, listing: bool
) -> None:
    """Judge the jobs of a site (KBX_BROKER_URL) on this host's boards, until SIGTERM."""
    if listing:
        list_boards()
        return
    words = [] if no_devices else [word.strip() for word in devices.split(",")]
    try:
        taken = seats(words, jobs)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--devices") from error
    if not taken and not site_queue and not builds:
        raise click.UsageError("nothing to do: name --devices, --site-queue or --builds")
    work(taken, site_queue, builds)


def list_boards() -> None:
    from runner.engine import discover_devices

    for spec in discover_devices():
        click.echo(json.dumps(spec.to_json()))


def work(taken: Sequence[Seat], site_queue: bool, builds: bool = False) -> None:
    from kbx_site.celery import set_up_logging

    set_up_logging()
    adopt()
    crew = Crew([Place(seat, seat_worker) for seat in taken])
    crew.listen()
    crew.start([*([site_worker, clock] if site_queue else []), *([build_worker] if builds else [])])
    crew.watch()
    logger.info("ending: waiting for judgements in hand; a second signal gives them back")
    crew.end()
