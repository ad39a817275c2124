"""Who may use a board now: many check side by side, one times alone, also against other processes
of ours.

Emptying the board for a timing costs the longest call that is under way, so timings are gathered:
the board goes over to them once everybody in hand waits for one, or the first has waited long
enough, and back when all of them are through.
"""

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from runner.engine.model import DeviceSpec

PATIENCE = 20.0  # seconds that the first who wants the board alone lets the others go on


class Turns:
    """A lock between threads (many, or one alone) with file locks per board behind it, between
    processes.
    """

    def __init__(self, device: DeviceSpec, patience: float = PATIENCE) -> None:
        self._condition = threading.Condition()
        self._patience = patience
        self._present = 0
        self._among = 0
        self._waiting = 0
        self._alone = False
        self._timing = False  # nobody joins the others now
        stem = f"kbx-{os.getuid()}-{device.gpu}-{device.uuid_hash or device.index}"
        folder = Path(tempfile.gettempdir())
        self._door, self._room = folder / f"{stem}.door.lock", folder / f"{stem}.lock"
        self._board = device.kind == "cuda"

    @property
    def present(self) -> int:
        """Judgements in hand."""
        return self._present

    @contextlib.contextmanager
    def in_hand(self) -> Iterator[None]:
        """Around a whole judgement: it may want a turn later."""
        with self._condition:
            self._present += 1
        try:
            yield
        finally:
            with self._condition:
                self._present -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def among_others(self) -> Iterator[None]:
        """Use the board beside others; waits while it belongs to those who time."""
        with self._condition:
            self._condition.wait_for(lambda: not self._timing)
            self._among += 1
        try:
            with self._files(fcntl.LOCK_SH):
                yield
        finally:
            with self._condition:
                self._among -= 1
                self._condition.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Have the board to oneself."""
        with self._condition:
            self._waiting += 1
            self._gather()
            self._condition.wait_for(lambda: not self._alone and not self._among)
            self._waiting -= 1
            self._alone = True
        try:
            with self._files(fcntl.LOCK_EX):
                yield
        finally:
            with self._condition:
                self._alone = False
                self._timing = self._waiting > 0
                self._condition.notify_all()

    def _gather(self) -> None:
        """Wait until the board goes over to those who time, and see to it that it does."""
        until = time.monotonic() + self._patience
        self._condition.notify_all()
        self._condition.wait_for(
            lambda: self._timing or self._waiting >= self._present,
            max(0.0, until - time.monotonic()),
        )
        self._timing = True

    @contextlib.contextmanager
    def _files(self, how: int) -> Iterator[None]:
        """Whoever wants the room alone keeps the door shut while the others leave: locks on files
        know no queue, so without a door those who share would never let it be empty.
        """
        if not self._board:
            yield
            return
        with _open(self._room) as room, _open(self._door) as door:
            fcntl.flock(door, how)
            fcntl.flock(room, how)
            if how == fcntl.LOCK_SH:
                fcntl.flock(door, fcntl.LOCK_UN)
            yield


@contextlib.contextmanager
def _open(path: Path) -> Iterator[int]:
    """A file to lock; closing it unlocks it."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
