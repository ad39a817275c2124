"""Who may use a board now: many check side by side, one times alone, also against other processes
of ours.
"""

import contextlib
import fcntl
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from runner.engine.model import DeviceSpec


class Turns:
    """A lock between threads (many, or one alone) with a file lock per board behind it, between
    processes.
    """

    def __init__(self, device: DeviceSpec) -> None:
        self._condition = threading.Condition()
        self._among = 0
        self._alone = False
        self._waiting = 0
        self._path = (
            Path(tempfile.gettempdir())
            / f"kbx-{os.getuid()}-{device.gpu}-{device.uuid_hash or device.index}.lock"
        )
        self._board = device.kind == "cuda"

    @contextlib.contextmanager
    def among_others(self) -> Iterator[None]:
        """Use the board beside others; waits while somebody times or waits to time."""
        with self._condition:
            self._condition.wait_for(lambda: not self._alone and not self._waiting)
            self._among += 1
        try:
            with self._file(fcntl.LOCK_SH):
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
            self._condition.wait_for(lambda: not self._alone and not self._among)
            self._waiting -= 1
            self._alone = True
        try:
            with self._file(fcntl.LOCK_EX):
                yield
        finally:
            with self._condition:
                self._alone = False
                self._condition.notify_all()

    @contextlib.contextmanager
    def _file(self, how: int) -> Iterator[None]:
        if not self._board:
            yield
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        descriptor = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(descriptor, how)
            yield
        finally:
            os.close(descriptor)
