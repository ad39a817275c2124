"""Who may use a board now: many check side by side, one times alone, also against other processes
of ours.

A board serves processes one after the other in slices of its own: with a dozen of them busy, each
of the small steps of a check waits for all others. So of those who share it only a few use it at
once, and whoever compiles steps aside.

Emptying the board for a timing costs the longest call that is under way. Two ways to make that
rare:

- Without overlap timings are gathered: the board goes over to them once everybody in hand waits for
  one, or the first has waited long enough, and back when all of them are through.
- With overlap whoever compiles holds no turn, so timings begin at once and go on in slices: after
  each the board is open for a moment to those whose compile ended. Long calls are gathered, because
  the longest of them is what a break costs, however many there are.
"""

import contextlib
import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from runner.engine.model import DeviceSpec

PATIENCE = 20.0  # seconds that the first who wants the board alone lets the others go on
# With overlap. By a simulation with what an H200 measured, 8 to 24 candidates in hand, this is on
# average 2 to 5 % faster than slices of 0.4 s, breaks of 0.5 s and six at once, and no setting much
# faster: two thirds of the time goes to timings, which nobody can share.
SLICE, BREAK = 1.0, 0.02  # seconds alone, and seconds that the board is open between two slices
LONGEST_BREAK = 1.0  # seconds; whoever comes later waits for the next
LONG = 0.1  # seconds
AT_ONCE = 8  # who share a board use it at the same time
# Long calls wait for so many others of those in hand (no more than go at once), or so long.
LONG_SHARE, LONG_WAIT = 0.4, 2.0


class Hold:
    """A turn that can be lent to others in the middle, by the thread that has it."""

    def __init__(self, turns: "Turns", long: bool) -> None:
        self._turns, self._long = turns, long
        self._taken = float("inf")
        self._files: contextlib.ExitStack | None = None
        self._using = False

    @property
    def may_step_aside(self) -> bool:
        """Does anybody gain by it?"""
        return self._turns.overlap or self._turns.is_scarce

    def take(self) -> None:
        """Wait for the board, and share it. The lock behind belongs to the thread's own files."""
        self._turns.join(self._long)
        self._using = True
        self._files = contextlib.ExitStack()
        try:
            self._files.enter_context(self._turns.files(fcntl.LOCK_SH))
        except BaseException:
            self.give_back()
            raise
        self._taken = time.monotonic()

    def give_back(self) -> None:
        """Use it no more; nothing happens to one that was given back."""
        files, self._files = self._files, None
        if files is None:
            return
        self._long |= time.monotonic() - self._taken > LONG  # an autotuner measures: it will again
        using, self._using = self._using, False
        try:
            files.close()
        finally:
            self._turns.leave(using)

    def step_aside(self) -> None:
        """Let others use the board for a while. Those who time need it quiet, the host too: without
        overlap they go on waiting.
        """
        if self._turns.overlap:
            self.give_back()
        elif self._using:
            self._using = False
            self._turns.put_down()

    def step_back(self) -> None:
        """Wait to use it again."""
        if self._turns.overlap:
            self.take()
        else:
            self._turns.pick_up()
            self._using = True

    def __enter__(self) -> Self:
        self.take()
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()


@dataclass(eq=False)
class Stay:
    """A judgement in hand; did others have a process on the board at any time of it?"""

    had_company: bool = False


class Turns:
    """A lock between threads (many, or one alone) with file locks per board behind it, between
    processes. `overlap`: may others time while one compiles?
    """

    def __init__(
        self, device: DeviceSpec, patience: float = PATIENCE, overlap: bool = False
    ) -> None:
        self.overlap = overlap
        self._condition = threading.Condition()
        self._patience = patience
        self._present = 0
        self._stays: list[Stay] = []
        self._sole = 0  # who want to be in hand by themselves, or are
        self._among = 0  # who share the board; without overlap those who compile too
        self._using = 0  # of them, those who use it
        self._waiting: list[object] = []  # for the board alone, who came first first
        self._alone = False  # somebody has it, or has it back after a break
        self._timing = False  # nobody joins the others now, but in breaks
        self._open_to = ""  # in a break: "short" calls or "all"
        self._shared = True  # since the last slice began
        self._slice = float("-inf")  # when it began
        self._joining: list[tuple[float, bool]] = []  # since when, and whether the call is long
        stem = f"kbx-{os.getuid()}-{device.gpu}-{device.uuid_hash or device.index}"
        folder = Path(tempfile.gettempdir())
        self._door, self._room = folder / f"{stem}.door.lock", folder / f"{stem}.lock"
        self._board = device.kind == "cuda"
        self._at_once = AT_ONCE if self._board else float("inf")

    @property
    def is_scarce(self) -> bool:
        """Do only a few use it at once?"""
        return self._board

    @contextlib.contextmanager
    def in_hand(self, sole: bool = False) -> Iterator[Stay]:
        """Around a whole judgement: it may want a turn later. `sole`: when all others have ended,
        and while none begins.
        """
        with self._condition:
            self._sole += sole
            self._condition.wait_for(lambda: not (self._present if sole else self._sole))
            stay = Stay(had_company=bool(self._stays))
            for other in self._stays:
                other.had_company = True
            self._stays.append(stay)
            self._present += 1
        try:
            yield stay
        finally:
            with self._condition:
                self._stays.remove(stay)
                self._present -= 1
                self._sole -= sole
                self._condition.notify_all()

    # -- beside others --

    def among_others(self, long: bool = False) -> Hold:
        """Use the board beside others; waits while it belongs to those who time. `long`: for a
        tenth of a second or more.
        """
        return Hold(self, long)

    def join(self, long: bool) -> None:
        """Wait until the board is open, and be one of those who use it. For `Hold`."""
        with self._condition:
            if not self._may_join(long):
                entry = time.monotonic(), long
                self._joining.append(entry)
                try:
                    self._condition.wait_for(lambda: self._may_join(long))
                finally:
                    self._joining.remove(entry)
                    self._condition.notify_all()
            self._among += 1
            self._using += 1
            self._shared = True

    def leave(self, using: bool) -> None:
        """Be no more one of them, `using` the board or not. For `Hold`."""
        with self._condition:
            self._among -= 1
            self._using -= using
            self._condition.notify_all()

    def put_down(self) -> None:
        """Stay one of them without using the board. For `Hold`."""
        with self._condition:
            self._using -= 1
            self._condition.notify_all()

    def pick_up(self) -> None:
        """Wait to use it again. For `Hold`."""
        with self._condition:
            self._condition.wait_for(lambda: self._using < self._at_once)
            self._using += 1

    def _may_join(self, long: bool) -> bool:
        return self._using < self._at_once and self._is_open(long)

    def _is_open(self, long: bool) -> bool:
        return not self._timing or self._open_to in (("all",) if long else ("all", "short"))

    # -- alone --

    @contextlib.contextmanager
    def alone(self) -> Iterator[Callable[[], float]]:
        """Have the board to oneself. It yields what to call between two steps: when a slice is over
        and others wait, they use the board and it comes back; the seconds that this took.
        """
        self._wait_to_be_alone()
        try:
            with contextlib.ExitStack() as files:
                files.enter_context(self.files(fcntl.LOCK_EX))
                yield lambda: self._pause(files)
        finally:
            with self._condition:
                self._alone, self._open_to = False, ""
                self._timing = bool(self._waiting)
                self._condition.notify_all()

    def _wait_to_be_alone(self) -> None:
        ticket = object()
        with self._condition:
            self._waiting.append(ticket)
            try:
                if not self.overlap:
                    self._gather()
                self._timing = True
                self._condition.wait_for(lambda: self._may_be_alone(ticket))
                self._alone = True
            finally:
                self._waiting.remove(ticket)
                self._timing = self._alone or bool(self._waiting)
                self._condition.notify_all()
            self._begin_slice()

    def _may_be_alone(self, ticket: object) -> bool:
        return not self._alone and not self._among and self._waiting[0] is ticket

    def _gather(self) -> None:
        """Wait until the board goes over to those who time."""
        until = time.monotonic() + self._patience
        self._condition.notify_all()
        self._condition.wait_for(
            lambda: self._timing or len(self._waiting) >= self._present,
            max(0.0, until - time.monotonic()),
        )

    def _begin_slice(self) -> None:
        if self._shared:
            self._slice, self._shared = time.monotonic(), False

    def _pause(self, files: contextlib.ExitStack) -> float:
        started = time.monotonic()
        with self._condition:
            open_to = self._wanted(started)
        if not open_to:
            return 0.0
        files.close()
        with self._condition:
            self._open_to = open_to
            self._condition.notify_all()
            self._condition.wait_for(lambda: False, BREAK)
            self._condition.wait_for(lambda: not self._is_anybody_admitted(), LONGEST_BREAK)
            self._open_to = ""
            self._condition.wait_for(lambda: not self._among)
        files.enter_context(self.files(fcntl.LOCK_EX))
        with self._condition:
            self._begin_slice()
        return time.monotonic() - started

    def _is_anybody_admitted(self) -> bool:
        """Are there still some before the board who may join now?"""
        return any(self._is_open(long) for _, long in self._joining)

    def _wanted(self, now: float) -> str:
        """To whom a break would open the board; "" for no break now."""
        if not self.overlap or now - self._slice < SLICE:
            return ""
        longs = [since for since, long in self._joining if long]
        enough = min(AT_ONCE, max(1.0, LONG_SHARE * self._present))
        if longs and (len(longs) >= enough or now - min(longs) >= LONG_WAIT):
            return "all"
        return "short" if len(longs) < len(self._joining) else ""

    @contextlib.contextmanager
    def files(self, how: int) -> Iterator[None]:
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
def nobody_else(_long: bool = False) -> Iterator[None]:
    """The turn of whoever has the board alone: none is needed, and none can be given back."""
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
