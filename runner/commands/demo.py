"""`kbx demo`: a whole site on one machine, with samples, from nothing. What `make demo` runs.

Processes: this one (sets up, shows progress, stops the rest), gunicorn, and `kbx worker`, which has
the site's worker and one worker per board below it.
"""

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console

from runner.processes import Child, adopt, end_orphans, stop_all
from runner.sandbox import probe

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = (
    (ROOT / "samples/plain", "Plain Triton (ours)", "human"),
    (ROOT / "samples/verdicts", "Cautionary examples (ours)", "human"),
)
RECORDED = ROOT / "samples/recorded"  # what our judge found elsewhere, without the sources
START_SECONDS = 60
GRACE_SECONDS = 10
POLL_SECONDS = 1.0
TELL_SECONDS = 15.0  # between two lines of progress in a log file, which can't show a bar
MOST_INTERPRETERS = 8


class Stop(BaseException):
    """Ctrl-C, or SIGTERM. No `Exception`: what catches those must not swallow it."""


class Ending:
    """The word to end. It is raised where it comes, which cuts waiting short; and remembered, as
    code of others may wrap or swallow what is raised in its middle.
    """

    def __init__(self) -> None:
        self.asked = False

    def listen(self) -> None:
        """From now on."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._come)

    def _come(self, _number: int, _frame: FrameType | None) -> None:
        for again in (signal.SIGTERM, signal.SIGINT):
            signal.signal(again, signal.SIG_IGN)  # ending takes seconds, and is not interrupted
        self.asked = True
        raise Stop

    def heed(self) -> None:
        """Raise Stop if it came."""
        if self.asked:
            raise Stop


@dataclass(frozen=True)
class Plan:
    """Where the demo lives and what judges it."""

    state: Path
    port: int
    devices: tuple[str, ...]  # as `kbx worker --devices` takes them
    gpus: tuple[str, ...]  # slugs
    trust: bool = False  # judge without walls: this host has none, and every run will say so

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        return dict(os.environ) | {
            "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
            "KBX_STATE_DIR": str(self.state),
            "DATABASE_URL": f"sqlite:///{self.state / 'kbx.sqlite3'}",
            "KBX_BROKER_URL": "filesystem://localhost//",
            "KBX_TRUST_CANDIDATES": os.environ.get("KBX_TRUST_CANDIDATES", str(int(self.trust))),
        }


@click.command()
@click.option("--exit-when-judged", is_flag=True, help="end once the samples are judged")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535))
@click.option("--gpu", type=click.Choice(["auto", "cpu"]), default="auto", show_default=True)
@click.option("--state", type=click.Path(path_type=Path), default=ROOT / "var/demo", hidden=True)
def command(exit_when_judged: bool, port: int, gpu: str, state: Path) -> None:
    """Set up a site with our samples, judge them, and serve it until Ctrl-C."""
    console = Console()
    refuse_port_in_use(port)
    ending = Ending()
    ending.listen()
    try:
        plan = replace(planned(state.resolve(), port, gpu), trust=must_trust(console))
        set_up(plan, console)
        ending.heed()
        lost = serve(plan, console, exit_when_judged, ending)
    except BaseException:
        if not ending.asked:
            raise
        console.print("stopped")
        return
    if lost:
        raise click.ClickException(f"{lost} judgements were lost: see {plan.state / 'worker.log'}")


def refuse_port_in_use(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise click.ClickException(
                f"port {port} can't be used ({error.strerror}): choose another with --port"
            ) from error


def must_trust(console: Console) -> bool:
    """True on a host without walls: the samples are our own, and the site answers on loopback only.
    Says so, and how to get them.
    """
    walls = probe()
    if walls.minimum:
        return False
    console.print("[yellow]This host can't wall candidates in; they are judged trusted:[/yellow]")
    for line in walls.missing():
        console.print(f"  {line}", highlight=False)
    return True


def planned(state: Path, port: int, gpu: str) -> Plan:
    """Judge on the GPUs of this machine, or else on the CPU with Triton's interpreter."""
    boards = [] if gpu == "cpu" else [board for board in found_boards() if board["kind"] == "cuda"]
    state.mkdir(parents=True, exist_ok=True)
    if boards:
        devices = tuple(f"cuda:{board['index']}" for board in boards)
        return Plan(state, port, devices, tuple(sorted({board["gpu"] for board in boards})))
    # One a core: site and database need little, and a sample that hangs must not hold up the rest.
    interpreters = min(MOST_INTERPRETERS, os.cpu_count() or 1)
    return Plan(state, port, ("cpu",) * interpreters, ("cpu-interpreter",))


def found_boards() -> list[dict[str, Any]]:
    """This host's boards, asked in another process: it may load torch."""
    command = [sys.executable, "-m", "runner", "worker", "--list"]
    lines = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def set_up(plan: Plan, console: Console) -> None:
    """Database, tasks and samples; each step finds what an earlier start left."""
    with console.status("setting up the database"):
        manage(plan, "migrate", "--verbosity", "0")
    with console.status("bringing in the tasks"):
        console.print(manage(plan, "sync_tasks").strip())
    load_recorded(plan, console)
    with console.status("choosing what to judge"):
        manage(plan, "judge_on", "--missing", *plan.gpus)
    for folder, method, kind in SAMPLES:
        if any(folder.rglob("*.*")):
            said = manage(
                plan, "import_submission", str(folder), "--method", method, "--kind", kind,
                "--label", label(folder),
            )  # fmt: skip
            console.print(f"{method}: {said.strip().partition(' ')[2]}")


def load_recorded(plan: Plan, console: Console, folder: Path = RECORDED) -> None:
    """Results that are recorded in `folder`, so that there is a board to look at from the start."""
    if any(folder.glob("*.json*")):
        with console.status("loading recorded results"):
            console.print(manage(plan, "import_recorded", str(folder)).strip(), highlight=False)


def label(folder: Path) -> str:
    """Names what the folder holds now: samples that were edited are another submission."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return f"samples {digest.hexdigest()[:8]}"


def manage(plan: Plan, *arguments: str) -> str:
    """Run a management command; its output, or a `ClickException` with its last words."""
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, env=plan.environment, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"{arguments[0]} failed:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def serve(plan: Plan, console: Console, exit_when_judged: bool, ending: Ending) -> int:
    """Start everything, show progress, end everything. Returns the number of lost judgements."""
    adopt()
    children: list[Child] = []
    try:
        children.append(web(plan))
        wait_for_web(plan, children[0])
        console.print(f"[bold]{plan.address}[/bold]  (Ctrl-C stops all of it)", highlight=False)
        children.append(worker(plan))
        return watch(plan, children, console, exit_when_judged, ending)
    finally:
        stop_all(children[::-1], GRACE_SECONDS)
        end_orphans()


def web(plan: Plan) -> Child:
    command = [
        sys.executable, "-m", "gunicorn", "kbx_site.wsgi", "--chdir", str(ROOT),
        "--bind", f"127.0.0.1:{plan.port}", "--workers", "2", "--threads", "4",
        "--access-logfile", "-", "--graceful-timeout", "3",
    ]  # fmt: skip
    environment = plan.environment
    environment.pop("TRITON_INTERPRET", None)
    return Child("web", command, environment, log=plan.state / "web.log")


def worker(plan: Plan) -> Child:
    command = [
        sys.executable, "-m", "runner", "worker", "--devices", ",".join(plan.devices),
        "--site-queue", "--builds",
    ]  # fmt: skip
    environment = plan.environment | {"PYTHONPATH": str(ROOT)}
    return Child("worker", command, environment, log=plan.state / "worker.log")


def wait_for_web(plan: Plan, child: Child) -> None:
    """Until the site answers; a `ClickException` when it died or takes too long."""
    import httpx

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and child.is_alive:
        try:
            if httpx.get(f"{plan.address}/readyz", timeout=5).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise click.ClickException(f"the site did not start: see {plan.state / 'web.log'}")


def watch(
    plan: Plan, children: Sequence[Child], console: Console, until_judged: bool, ending: Ending
) -> int:
    """Show how far the samples are until they are judged, then wait unless told to end."""
    import django

    os.environ.update(plan.environment)
    django.setup()
    from runner.watching import Tally, bar

    with bar(console) as progress:
        line = progress.add_task("", total=None)
        told = 0.0
        while True:
            ending.heed()
            for child in children:
                if not child.is_alive:
                    log = plan.state / f"{child.name}.log"
                    raise click.ClickException(f"the {child.name} process ended: see {log}")
            tally = Tally.read()
            if not console.is_terminal and time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                console.print(tally.line(), highlight=False)
            progress.update(
                line, description=tally.line(), completed=tally.ended, total=tally.total or None
            )
            if tally.is_over and until_judged:
                break
            time.sleep(POLL_SECONDS)
    console.print(tally.line(), highlight=False)
    return tally.lost
