"""Jobs while everything dies: are they judged once and recorded once?

    python benchmarks/drills.py --broker embedded --jobs 200 --workers 4 --kills 20 --record
    python benchmarks/drills.py --broker redis --jobs 1000 --workers 4 --kills 20 --record
    python benchmarks/drills.py --broker rabbitmq --jobs 1000 --workers 4 --kills 20 --record

Starts a PostgreSQL and a broker of its own (Debian's postgresql, redis-server, rabbitmq-server) on
free ports, or the embedded SQLite and filesystem broker; the site's worker and its sweeper; and
real `kbx worker` processes on the CPU. It submits the candidates as one account, kills and restarts
at points that the seed draws, waits until all has ended, and counts what is in the database.
`--json FILE` keeps the figures; `--record` writes them into `docs/measurements/drills.*`.
"""

import argparse
import json
import os
import platform
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg2
import records
from servers import (
    POLL_SECONDS,
    Server,
    below,
    database_server,
    kill,
    processor,
    rabbitmq_server,
    redis_server,
)

from runner.processes import Child, adopt, children_of, end_orphans, stop_all

ROOT = Path(__file__).resolve().parents[1]
TELL_SECONDS = 10
NO_PROGRESS_SECONDS = 240  # then what is open counts as stuck
SETTLE_SECONDS = 30  # longer than a lease: what comes late comes now
BROKERS = {"embedded": 200, "redis": 1000, "rabbitmq": 1000}  # and jobs of a drill in full size
OPEN = ("queued", "running")
# Short, so that a drill takes minutes. The order of size is that of the defaults.
SETTINGS = {
    "KBX_RUN_LEASE": "20",
    "KBX_QUEUE_LEASE": "20",
    "KBX_HEARTBEAT_SECONDS": "2",
    "KBX_SWEEP_SECONDS": "3",
    "KBX_RETRY_SECONDS": "1",
    "KBX_ANNOUNCE_SECONDS": "5",
    "KBX_DISPATCH_WINDOW": "32",
    "KBX_PROBE_SECONDS": "2",
    "KBX_MAX_ATTEMPTS": "5",
    "KBX_QUOTA_PER_DAY": "100000",
}
SUBMIT = """
import sys, django
django.setup()
from django.contrib.auth import get_user_model
from benchmark.models import Gpu, Task
from runner import drafting
from runner.intake import Found, Intake

jobs, slow_every = map(int, sys.argv[1:])
gpu = Gpu.objects.get(slug="cpu-interpreter")
tasks = list(Task.objects.judged_on(gpu).order_by("slug"))
user = get_user_model().objects.create(username="drill")
found = []
for at in range(jobs):
    wait = "import time; time.sleep(3)" if at % slow_every == 0 else ""
    source = f"# {at}\\n{wait}\\nraise ValueError('the candidate number {at} ends itself')\\n"
    task = tasks[at % len(tasks)]
    found.append(Found(task.slug, at // len(tasks), source, f"{task.slug}.py"))
draft = drafting.make(drafting.Entry("Drill", "model", "drill"), Intake(tuple(found)), user)
drafting.confirm(draft, user)
"""
SLOW_EVERY = 10


@dataclass
class Site:
    """The servers, the site's worker, and the hosts with boards."""

    folder: Path
    broker_kind: str
    hosts: int
    jobs: int = 1  # that each board has in hand
    database: Server | None = None
    broker: Server | None = None
    children: dict[str, Child] = field(default_factory=dict)

    def start(self) -> None:
        if self.broker_kind != "embedded":
            self.database = database_server(self.folder)
            self.broker = {"redis": redis_server, "rabbitmq": rabbitmq_server}[self.broker_kind](
                self.folder
            )
            self.database.start()
            self.broker.start()
        for arguments in (["migrate", "-v0"], ["sync_tasks"], ["judge_on", "cpu-interpreter"]):
            self.run(str(ROOT / "manage.py"), *arguments)

    def start_workers(self) -> None:
        self.start_child("site", "--no-devices", "--site-queue")
        for at in range(self.hosts):
            self.start_host(f"host-{at}")

    def start_host(self, name: str) -> None:
        self.start_child(name, "--devices", "cpu", "--jobs", str(self.jobs))

    def start_child(self, name: str, *options: str) -> None:
        command = [sys.executable, "-m", "runner", "worker", *options]
        environment = self.environment | {"KBX_HOST_NAME": name}
        if self.broker_kind != "embedded" and name != "site":
            environment["KBX_STATE_DIR"] = str(self.folder / name)  # a machine of its own
        self.children[name] = Child(name, command, environment, self.folder / f"{name}.log")

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            **SETTINGS,
            "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
            "DATABASE_URL": self.database_url,
            "KBX_BROKER_URL": self.broker_url,
            "KBX_STATE_DIR": str(self.folder),
            "KBX_TRUST_CANDIDATES": "1",
            "PYTHONPATH": str(ROOT),
        }

    @property
    def database_url(self) -> str:
        if self.database is None:
            return f"sqlite:///{self.folder / 'kbx.sqlite3'}"
        return f"postgres://kbx@127.0.0.1:{self.database.port}/postgres"

    @property
    def broker_url(self) -> str:
        if self.broker is None:
            return "filesystem://localhost//"
        if self.broker.name == "redis":
            return f"redis://127.0.0.1:{self.broker.port}/0"
        return f"amqp://guest:guest@127.0.0.1:{self.broker.port}//"

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], env=self.environment, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        return done.stdout

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """From the site's database, without its help. Raises while that is away."""
        if self.database is None:
            path = self.database_url.removeprefix("sqlite:///")
            with closing(sqlite3.connect(path, timeout=30)) as connection:
                return connection.execute(query).fetchall()
        with closing(psycopg2.connect(self.database_url)) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())

    def number(self, query: str) -> int:
        [[found]] = self.rows(query)
        return int(found or 0)

    def states(self) -> Counter[str]:
        return Counter(dict(self.rows("SELECT state, COUNT(*) FROM runner_job GROUP BY state")))

    def end(self) -> None:
        stop_all(list(self.children.values()), 30)
        for server in (self.broker, self.database):
            if server is not None and server.child is not None:
                server.kill()
        end_orphans()


# What is killed, by name. Each brings back what the system doesn't bring back by itself.


def kill_host(site: Site, dice: random.Random) -> None:
    """`kbx worker` of a host with a board; what is below it must go by itself."""
    name = f"host-{dice.randrange(site.hosts)}"
    site.children[name].process.kill()
    site.children[name].process.wait()
    pause(dice)
    site.start_host(name)


def kill_boards_worker(site: Site, dice: random.Random) -> None:
    """The Celery worker of a board."""
    child = site.children[f"host-{dice.randrange(site.hosts)}"]
    kill(*children_of(child.process.pid))


def kill_judging_process(site: Site, dice: random.Random) -> None:
    """The pool's process below it, with what it started; of a worker with threads, the judge's."""
    child = site.children[f"host-{dice.randrange(site.hosts)}"]
    for worker in list(children_of(child.process.pid)):
        kill(*below(worker))


def kill_sites_host(site: Site, dice: random.Random) -> None:
    """`kbx worker --site-queue`: the process that records and the sweeper's clock with it."""
    site.children["site"].process.kill()
    site.children["site"].process.wait()
    pause(dice)
    site.start_child("site", "--no-devices", "--site-queue")


def kill_sites_worker(site: Site, dice: random.Random) -> None:
    """The process that records, and the clock, below it."""
    kill(*children_of(site.children["site"].process.pid))


def kill_broker(site: Site, dice: random.Random) -> None:
    assert site.broker is not None
    site.broker.kill()
    pause(dice)
    site.broker.start()


def kill_database(site: Site, dice: random.Random) -> None:
    assert site.database is not None
    site.database.kill()
    pause(dice)
    site.database.start()


def freeze_broker(site: Site, dice: random.Random) -> None:
    """Silent for seconds with its connections open, as when a network is cut."""
    assert site.broker is not None
    assert site.broker.child is not None
    pids = [site.broker.child.process.pid, *below(site.broker.child.process.pid)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(dice.uniform(3, 8))
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


def pause(dice: random.Random) -> None:
    time.sleep(dice.uniform(0.5, 3))


Strike = Callable[[Site, random.Random], None]
WORKERS: list[Strike] = [
    kill_host,
    kill_boards_worker,
    kill_judging_process,
    kill_sites_host,
    kill_sites_worker,
]
SERVERS: list[Strike] = [kill_broker, kill_database, freeze_broker]


@dataclass
class Drill:
    site: Site
    jobs: int
    plan: list[tuple[int, Strike]]  # after how many ended jobs, what
    dice: random.Random
    done: Counter[str] = field(default_factory=Counter)
    told: float = 0.0

    def run(self) -> float:
        """Strike and wait; seconds from the submission until all has ended or nothing moves."""
        began = moved = time.monotonic()
        ended = -1
        while True:
            states = self.look()
            now = sum(states.values()) - sum(states[word] for word in OPEN)
            if now != ended:
                ended, moved = now, time.monotonic()
            if self.plan and ended >= self.plan[0][0]:
                _, strike = self.plan.pop(0)
                self.strike(strike, ended)
                moved = time.monotonic()
            elif self.is_over(ended) or time.monotonic() - moved > NO_PROGRESS_SECONDS:
                return time.monotonic() - began
            self.tell(states, began)
            time.sleep(POLL_SECONDS)

    def is_over(self, ended: int) -> bool:
        return ended >= self.jobs and not self.plan

    def look(self) -> Counter[str]:
        try:
            return self.site.states()
        except psycopg2.OperationalError:  # it was killed and is recovering
            time.sleep(POLL_SECONDS)
            return self.look()

    def strike(self, strike: Strike, ended: int) -> None:
        say(f"{ended}/{self.jobs} ended: {strike.__name__}")
        strike(self.site, self.dice)
        self.done[strike.__name__] += 1

    def tell(self, states: Counter[str], began: float) -> None:
        if time.monotonic() - self.told > TELL_SECONDS:
            self.told = time.monotonic()
            words = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
            say(f"{self.told - began:.0f} s: {words}; {sum(self.done.values())} kills")


def say(words: str) -> None:
    sys.stdout.write(f"{datetime.now(UTC):%H:%M:%S} {words}\n")
    sys.stdout.flush()


def planned(kills: int, jobs: int, broker: str, dice: random.Random) -> list[tuple[int, Strike]]:
    """Every kind as often as every other, at points drawn from the first nine tenths of the way."""
    kinds = WORKERS if broker == "embedded" else WORKERS + SERVERS
    strikes = [kinds[at % len(kinds)] for at in range(kills)]
    dice.shuffle(strikes)
    points = sorted(dice.randrange(int(0.9 * jobs) + 1) for _ in range(kills))
    return list(zip(points, strikes, strict=True))


def counted(site: Site, jobs: int) -> dict[str, Any]:
    """What the database holds, against what was asked for."""
    states = site.states()
    twice = site.number(
        "SELECT COUNT(*) FROM (SELECT candidate_id FROM benchmark_run GROUP BY candidate_id"
        " HAVING COUNT(*) > 1) AS doubled"
    )
    charged = site.number("SELECT SUM(used) FROM runner_quota")
    still_charged = site.number("SELECT COUNT(*) FROM runner_job WHERE quota_id IS NOT NULL")
    rows = sum(states.values())
    wrong = "SELECT COUNT(*) FROM benchmark_run WHERE verdict <> 'load-error'"
    return {
        "lost": states["lost"] + states["cancelled"] + states["declined"] + max(0, jobs - rows),
        "duplicated": twice + max(0, rows - jobs) + abs(charged - still_charged),
        "stuck": sum(states[word] for word in OPEN),
        "runs": site.number("SELECT COUNT(*) FROM benchmark_run"),
        "wrong_verdicts": site.number(wrong),
        "charged": charged,
        "judged_in_first_attempt": site.number(
            "SELECT COUNT(*) FROM runner_job WHERE attempt = 1 AND state = 'done'"
        ),
        "most_attempts": site.number("SELECT MAX(attempt) FROM runner_job"),
        "most_failures": site.number("SELECT MAX(failures) FROM runner_job"),
        "states": dict(states),
    }


def versions(broker: str) -> dict[str, str]:
    found = {name: version(name) for name in ("django", "celery", "kombu", "torch", "triton")}
    found["python"] = platform.python_version()
    if broker != "embedded":
        commands = {"postgresql": ["postgres", "--version"], "redis": ["redis-server", "--version"]}
        commands["rabbitmq"] = ["dpkg-query", "-W", "-f", "${Version}", "rabbitmq-server"]
        for name in ("postgresql", broker):
            done = subprocess.run(commands[name], capture_output=True, text=True)
            found[name] = done.stdout.strip()
    return found


def drill(chosen: argparse.Namespace, folder: Path) -> dict[str, Any]:
    dice = random.Random(chosen.seed)
    site = Site(folder, chosen.broker, chosen.workers, chosen.hands)
    try:
        say(f"starting in {folder}")
        site.start()
        site.run("-c", SUBMIT, str(chosen.jobs), str(SLOW_EVERY))
        site.start_workers()
        plan = planned(chosen.kills, chosen.jobs, chosen.broker, dice)
        running = Drill(site, chosen.jobs, plan, dice)
        seconds = running.run()
        time.sleep(SETTLE_SECONDS)
        found = counted(site, chosen.jobs)
        site.run(str(ROOT / "manage.py"), "rebuild_aggregates", "--check")
    finally:
        site.end()
    left = list(children_of(os.getpid()))
    return {
        "broker": chosen.broker,
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": command_line(chosen),
        "seed": chosen.seed,
        "jobs": chosen.jobs,
        "workers": chosen.workers,
        "hands": chosen.hands,
        "kills": sum(running.done.values()),
        "kills_by_kind": dict(sorted(running.done.items())),
        **found,
        "processes_left": len(left),
        "seconds": round(seconds, 1),
        "load_average": round(os.getloadavg()[2], 1),
        "hardware": f"{processor()}, {os.cpu_count()} cores",
        "versions": versions(chosen.broker),
    }


def command_line(chosen: argparse.Namespace) -> str:
    """What to type for the same drill."""
    names = ("broker", "jobs", "workers", "hands", "kills", "seed")
    options = " ".join(f"--{name} {getattr(chosen, name)}" for name in names)
    return f"python benchmarks/drills.py {options} --record"


def page(drills: dict[str, dict[str, Any]]) -> str:
    """The record to read."""
    one = next(iter(drills.values()))
    head = ("broker", "jobs", "kills", "lost", "duplicated", "stuck", "seconds")
    more = ("judged in first attempt", "most attempts", "runs", "charged", "load average")
    names = [*head, *(word.replace(" ", "_") for word in more)]
    lines = [
        "# Delivery while everything dies",
        "",
        f"Date: {one['date']}. Hardware: {one['hardware']}, shared with other work. "
        + "; ".join(f"{b}: {_versions(d)}" for b, d in drills.items())
        + ".",
        "",
        "```",
        *(drill["command"] for drill in drills.values()),
        "```",
        "",
        f"| {' | '.join([*head, *more])} |",
        "|---|" + "---:|" * (len(names) - 1),
        *(f"| {' | '.join(str(d[name]) for name in names)} |" for d in drills.values()),
        "",
        *_not_run(drills),
        "Kills by kind: " + "; ".join(f"{b}: {_kinds(d)}" for b, d in drills.items()) + ".",
        "",
        NOTES,
    ]
    return "\n".join(lines)


def _not_run(drills: dict[str, dict[str, Any]]) -> list[str]:
    """So that nobody takes an empty place for a good result."""
    missing = [
        f"{name} with {jobs:,} jobs"
        for name, jobs in BROKERS.items()
        if name not in drills or drills[name]["jobs"] < jobs
    ]
    return [f"Not recorded so far: {', '.join(missing)}.", ""] if missing else []


def _versions(drill: dict[str, Any]) -> str:
    return ", ".join(f"{name} {text}" for name, text in drill["versions"].items())


def _kinds(drill: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count}" for name, count in drill["kills_by_kind"].items())


NOTES = f"""\
Lost: jobs without a run at the end, whatever the reason. Duplicated: candidates with two runs, jobs more than asked for, and quota charged twice. Stuck: jobs that are in no end state when nothing
has moved for {NO_PROGRESS_SECONDS} s. Every kill is a SIGKILL; `freeze_broker` stops the broker for 3 to 8 s with its connections open, as when a network is cut. `kill_host` kills `kbx worker` alone: what is
below it must go by itself. Servers and hosts are started again 0.5 to 3 s later; what is below a `kbx worker` is left to it.

The candidates are cheap on purpose: each ends with an exception of its own at its import, after 3 s in one of {SLOW_EVERY}, so that there are some to hit in mid-judgement. They go through the real judge on
the CPU, without walls (`KBX_TRUST_CANDIDATES=1`), so the figures say nothing about judging speed. Leases and pauses are short: {", ".join(f"`{name}={text}`" for name, text in SETTINGS.items())}.

PostgreSQL runs with its defaults. Redis keeps an append-only file, flushed every second, which a SIGKILL of Redis doesn't cost anything; what is missing after a power cut the sweeper sends again, as it does
for a lost message in the tests. RabbitMQ's queues of jobs are quorum queues, the site's is durable with persistent messages. Embedded has neither server: its broker is a folder, and a message in the hand of a killed worker is gone for good and sent again.

What disappoints: a job in the hand of a killed worker is judged again from the start, after its lease; one that kills its workers {SETTINGS["KBX_MAX_ATTEMPTS"]} times would be set aside (3 by default).
"""  # noqa: E501  a paragraph a line, as in the other records


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--broker", choices=BROKERS, required=True)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument(
        "--hands", type=int, default=1, help="jobs that each worker has in hand (its --jobs)"
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folder with the logs")
    chosen = parser.parse_args()
    adopt()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("stopped"))  # ends what was started
    folder = Path(tempfile.mkdtemp(prefix="kbx-drill-"))
    folder.chmod(0o755)
    found = drill(chosen, folder)
    say(json.dumps(found, indent=1))
    if not chosen.keep:
        shutil.rmtree(folder)
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n")
    if chosen.record:
        record(found)
    sys.exit(int(any(found[name] for name in ("lost", "duplicated", "stuck", "wrong_verdicts"))))


def record(found: dict[str, Any]) -> None:
    """Beside what was recorded of the other brokers."""
    path = records.FOLDER / "drills.json"
    drills = json.loads(path.read_text())["drills"] if path.exists() else {}
    drills[found["broker"]] = found
    records.write("drills", {"drills": drills}, page(drills))


if __name__ == "__main__":
    main()
