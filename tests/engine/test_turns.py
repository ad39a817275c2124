"""Who has the board when: many check, one times, and nobody is kept away for good."""

import fcntl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engine import DeviceSpec
from runner.engine.turns import Turns

BOARD = DeviceSpec("cuda", 0, "h200", "a board", "turns-of-the-tests")
SECONDS = 20.0  # until a thread that should have come counts as lost


@pytest.fixture(autouse=True)
def locks_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.engine.turns.tempfile.gettempdir", lambda: str(tmp_path))


class Somebody:
    """A thread that takes a turn, says so, and keeps it until it is let go."""

    def __init__(self, turns: Turns, how: str) -> None:
        self.has_it, self.done = threading.Event(), threading.Event()
        self._let_go = threading.Event()
        self._turn: Callable = getattr(turns, how)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._turn():
            self.has_it.set()
            self._let_go.wait(SECONDS)
        self.done.set()

    def got_it(self) -> bool:
        return self.has_it.wait(SECONDS)

    def may_go(self) -> None:
        self._let_go.set()

    def let_go(self) -> None:
        self.may_go()
        assert self.done.wait(SECONDS)


def test_several_share_the_board():
    turns = Turns(BOARD)
    first, second = Somebody(turns, "among_others"), Somebody(turns, "among_others")
    assert first.got_it()
    assert second.got_it()
    first.let_go()
    second.let_go()


def test_whoever_times_has_the_board_alone():
    turns = Turns(BOARD)
    timing = Somebody(turns, "alone")
    assert timing.got_it()
    sharing, other = Somebody(turns, "among_others"), Somebody(turns, "alone")
    assert not sharing.has_it.is_set()
    assert not other.has_it.is_set()
    timing.let_go()
    assert other.got_it(), "who waits to time goes first"
    assert not sharing.has_it.is_set()
    other.let_go()
    assert sharing.got_it()
    sharing.let_go()


def test_timings_are_gathered_while_somebody_is_still_checking():
    turns = Turns(BOARD, patience=SECONDS)
    with turns.in_hand(), turns.in_hand():
        first = Somebody(turns, "alone")
        checking = Somebody(turns, "among_others")
        assert checking.got_it(), "one wants the board, but the other may go on"
        checking.let_go()
        assert not first.has_it.is_set()
        second = Somebody(turns, "alone")  # now everybody in hand wants to time
        first.may_go()
        second.let_go()
        first.let_go()


def test_the_first_does_not_wait_for_ever():
    turns = Turns(BOARD, patience=0.0)
    with turns.in_hand(), turns.in_hand():
        timing = Somebody(turns, "alone")
        assert timing.got_it()
        timing.let_go()


def test_one_who_leaves_without_timing_holds_nobody_up():
    turns = Turns(BOARD, patience=SECONDS)
    with turns.in_hand():
        with turns.in_hand():
            timing = Somebody(turns, "alone")
        assert timing.got_it()
        timing.let_go()


def test_another_process_that_times_is_waited_for(tmp_path: Path):
    mine, theirs = Turns(BOARD), Turns(BOARD)
    timing = Somebody(theirs, "alone")
    assert timing.got_it()
    sharing = Somebody(mine, "among_others")
    (room,) = (path for path in tmp_path.glob("*.lock") if "door" not in path.name)
    with room.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    assert not sharing.has_it.is_set()
    timing.let_go()
    assert sharing.got_it()
    sharing.let_go()


def test_the_interpreter_needs_no_file(tmp_path: Path):
    with Turns(DeviceSpec("cpu", 0, "cpu-interpreter", "")).alone():
        assert list(tmp_path.iterdir()) == []
