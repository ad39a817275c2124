"""Child processes of ours: started in their own group, ended as a group, never left behind."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
POLL_SECONDS = 0.1


def die_with_parent(sign: int = signal.SIGKILL) -> None:
    """Ask Linux to signal this process when its parent is gone, however the parent went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, sign)


def _end_with_parent() -> None:
    die_with_parent(signal.SIGTERM)


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
                preexec_fn=_end_with_parent,  # safe: we start children from one thread
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


def wait_all(children: Sequence[Child], seconds: float | None) -> bool:
    """True when all have ended; False when `seconds` passed first (None: no limit)."""
    deadline = None if seconds is None else time.monotonic() + seconds
    while any(child.is_alive for child in children):
        if deadline is not None and time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def stop_all(children: Sequence[Child], grace: float) -> None:
    """SIGTERM, `grace` seconds, SIGQUIT (Celery: give jobs back), `grace` seconds, SIGKILL."""
    for sign in (signal.SIGTERM, signal.SIGQUIT):
        for child in children:
            child.signal(sign)
        if wait_all(children, grace):
            break
    for child in children:
        child.kill_group()
