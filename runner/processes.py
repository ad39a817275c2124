"""Child processes of ours: started in their own group, ended with all below, never left behind.

Who starts others calls `adopt` first: then what a dead child leaves becomes ours and is ended, too.
And what we start dies with us, however we went.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
POLL_SECONDS = 0.1
END_SECONDS = 10.0  # a killed process may be in the middle of a call into a driver


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent, whose number is given, is gone; at once when
    it is gone already.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)


def adopt() -> None:
    """What loses its parent anywhere below this process becomes its child, for `end_orphans`."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def children_of(pid: int) -> Iterator[int]:
    """The processes that this one is the parent of, the dead among them that nobody waited for."""
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, listed.read_text().split())


def end_orphans(ours: Collection[int] = ()) -> None:
    """Kill all children of this process except those, then what that leaves, until none is left.

    A process that can't be killed is left after seconds: nothing can be done about it from here.
    """
    deadline = time.monotonic() + END_SECONDS
    while orphans := [pid for pid in children_of(os.getpid()) if pid not in ours]:
        for pid in orphans:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        if time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS / 10)


@dataclass
class Child:
    """A process that leads its own group, so that all of it can be ended."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path | None = None
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Output goes to the log where there is one, else where ours goes."""
        with contextlib.ExitStack() as stack:
            out = stack.enter_context(self.log.open("ab")) if self.log else None
            self.process = subprocess.Popen(
                list(self.arguments),
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT if out else None,
                start_new_session=True,
                # Safe: we start children from one thread.
                preexec_fn=partial(die_with_parent, os.getpid()),
            )

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def signal(self, sign: int) -> None:
        """Signal the process itself: it knows how to end its own children."""
        if self.is_alive:
            self.process.send_signal(sign)

    def kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def wait_all(children: Sequence[Child], seconds: float) -> bool:
    """True when all have ended; False when `seconds` passed first."""
    deadline = time.monotonic() + seconds
    while any(child.is_alive for child in children):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def stop_all(
    children: Sequence[Child],
    grace: float,
    signals: Sequence[int] = (signal.SIGTERM, signal.SIGQUIT),
) -> None:
    """SIGTERM, `grace` seconds, SIGQUIT (Celery: give jobs back), `grace` seconds, SIGKILL."""
    for sign in signals:
        for child in children:
            child.signal(sign)
        if wait_all(children, grace):
            break
    for child in children:
        child.kill_group()
