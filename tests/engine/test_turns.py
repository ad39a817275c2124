"""Who has the board when: many check, one times, and nobody is kept away for good."""

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runner.engine import DeviceSpec
from runner.engine.turns import AT_ONCE, Turns
from tests.engine.conftest import comes_true

BOARD = DeviceSpec("cuda", 0, "h200", "a board", "turns-of-the-tests")
SECONDS = 20.0  # until a thread that should have come counts as lost


@pytest.fixture(autouse=True)
def locks_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.engine.turns.tempfile.gettempdir", lambda: str(tmp_path))


class Somebody:
    """A thread that takes a turn, says so, and keeps it until it is let go."""

    def __init__(self, turns: Turns, how: str, *about: bool) -> None:
        self.has_it, self.done = threading.Event(), threading.Event()
        self._let_go = threading.Event()
        self._turn: Callable = lambda: getattr(turns, how)(*about)
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


def test_no_more_than_a_few_use_it_at_once():
    turns = Turns(BOARD)
    few = [Somebody(turns, "among_others") for _ in range(AT_ONCE)]
    assert all(one.got_it() for one in few)
    late = Somebody(turns, "among_others")
    assert joining(turns, 1)
    assert not late.has_it.is_set()
    few.pop().let_go()
    assert late.got_it()
    for one in (*few, late):
        one.let_go()


def test_the_interpreter_serves_any_number_at_once():
    turns = Turns(DeviceSpec("cpu", 0, "cpu-interpreter", ""))
    many = [Somebody(turns, "among_others") for _ in range(AT_ONCE + 1)]
    assert all(one.got_it() for one in many)
    for one in many:
        one.let_go()


@pytest.mark.parametrize("overlap", [True, False])
def test_who_steps_aside_lets_another_use_the_board_and_waits_to_have_it_again(overlap):
    turns = Turns(BOARD, overlap=overlap)
    few = [Somebody(turns, "among_others") for _ in range(AT_ONCE - 1)]
    assert all(one.got_it() for one in few)
    back = threading.Event()
    with turns.among_others() as hold:
        late = Somebody(turns, "among_others")
        assert joining(turns, 1)
        hold.step_aside()
        assert late.got_it()
        again = threading.Thread(target=lambda: (hold.step_back(), back.set()))
        again.start()
        assert not back.is_set()
        late.let_go()
        assert back.wait(SECONDS)
        again.join()
    for one in few:
        one.let_go()
    assert (turns._among, turns._using) == (0, 0)


def test_without_overlap_nobody_times_while_one_compiles():
    turns = Turns(BOARD, patience=0.0)
    with turns.among_others() as hold:
        hold.step_aside()
        timing = Somebody(turns, "alone")
        assert comes_true(lambda: turns._waiting, SECONDS)
        assert not timing.has_it.is_set()
        hold.step_back()
        assert not timing.has_it.is_set()
    assert timing.got_it()
    timing.let_go()


def test_a_turn_that_ends_aside_is_over():
    turns = Turns(BOARD, patience=0.0)
    with turns.among_others() as hold:
        hold.step_aside()
    assert (turns._among, turns._using) == (0, 0)
    with turns.alone():
        pass


def test_whoever_waits_longest_to_be_alone_is_next():
    turns = Turns(BOARD, overlap=True)
    order = []

    def time_it(number: int) -> None:
        with turns.alone():
            order.append(number)

    first = Somebody(turns, "alone")
    assert first.got_it()
    threads = []
    for number in range(6):
        threads.append(threading.Thread(target=time_it, args=(number,)))
        threads[-1].start()
        assert comes_true(lambda: len(turns._waiting) == number + 1, SECONDS)  # noqa: B023
    first.let_go()
    for thread in threads:
        thread.join(SECONDS)
    assert order == [*range(6)]


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


class Timing:
    """A thread that has the board alone, and lets others in between when it is told to."""

    def __init__(self, turns: Turns) -> None:
        self.has_it = threading.Event()
        self.paused: list[float] = []
        self._next, self._rested = threading.Semaphore(0), threading.Semaphore(0)
        self._over = False
        self._turns = turns
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._turns.alone() as pause:
            self.has_it.set()
            while self._next.acquire(timeout=SECONDS) and not self._over:
                self.paused.append(pause())
                self._rested.release()

    def begin_pause(self) -> None:
        self._next.release()

    def is_back(self) -> bool:
        return self._rested.acquire(timeout=SECONDS)

    def let_go(self) -> None:
        self._over = True
        self._next.release()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def joining(turns: Turns, count: int) -> bool:
    """Wait until so many stand before the board."""
    return comes_true(lambda: len(turns._joining) == count, SECONDS)


@pytest.fixture
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.engine.turns.SLICE", 0.0)
    monkeypatch.setattr("runner.engine.turns.BREAK", 0.0)
    monkeypatch.setattr("runner.engine.turns.LONG_WAIT", SECONDS)


class TestOverlap:
    def test_a_timing_begins_though_others_are_in_hand(self):
        turns = Turns(BOARD, patience=SECONDS, overlap=True)
        with turns.in_hand(), turns.in_hand():
            timing = Timing(turns)
            assert timing.has_it.wait(SECONDS)
            timing.let_go()

    def test_who_compiles_does_not_keep_the_board_and_waits_to_have_it_again(self, short_slices):
        turns = Turns(BOARD, overlap=True)
        compiled = threading.Event()
        with turns.among_others() as hold:
            timing = Timing(turns)
            hold.step_aside()
            assert timing.has_it.wait(SECONDS)
            again = threading.Thread(target=lambda: (hold.step_back(), compiled.set()))
            again.start()
            assert joining(turns, 1)
            assert not compiled.is_set()
            timing.begin_pause()
            assert compiled.wait(SECONDS), "the pause is for those who wait"
            again.join()
            hold.give_back()
        assert timing.is_back()
        assert timing.paused[0] > 0
        timing.let_go()

    def test_the_pause_lasts_until_everybody_who_was_let_in_is_through(self, short_slices):
        turns = Turns(BOARD, overlap=True)
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        first, second = Somebody(turns, "among_others"), Somebody(turns, "among_others")
        assert joining(turns, 2)
        timing.begin_pause()
        assert first.got_it()
        assert second.got_it()
        first.let_go()
        assert timing.paused == []
        second.let_go()
        assert timing.is_back()
        late = Somebody(turns, "among_others")
        assert joining(turns, 1), "the board is closed again"
        timing.let_go()
        assert late.got_it(), "nobody times any more"
        late.let_go()

    def test_a_pause_ends_though_others_go_on_coming(self, short_slices):
        turns = Turns(BOARD, overlap=True)
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        few = [Somebody(turns, "among_others") for _ in range(AT_ONCE)]
        assert joining(turns, AT_ONCE)
        timing.begin_pause()
        assert all(one.got_it() for one in few)
        late = Somebody(turns, "among_others")
        assert joining(turns, 1)
        assert comes_true(lambda: not turns._open_to, SECONDS), "closed, though one still waits"
        for one in few:
            one.let_go()
        assert timing.is_back()
        assert not late.has_it.is_set()
        timing.let_go()
        assert late.got_it()
        late.let_go()

    def test_nobody_else_times_in_a_pause(self, short_slices):
        turns = Turns(BOARD, overlap=True)
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        sharing, other = Somebody(turns, "among_others"), Somebody(turns, "alone")
        assert joining(turns, 1)
        timing.begin_pause()
        assert sharing.got_it()
        sharing.let_go()
        assert timing.is_back()
        assert not other.has_it.is_set()
        timing.let_go()
        assert other.got_it()
        other.let_go()

    def test_other_processes_may_use_the_board_in_a_pause(self, short_slices):
        turns, theirs = Turns(BOARD, overlap=True), Turns(BOARD, overlap=True)
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        mine, other = Somebody(turns, "among_others"), Somebody(theirs, "among_others")
        assert joining(turns, 1)
        timing.begin_pause()
        assert mine.got_it()
        assert other.got_it()
        mine.let_go()
        other.let_go()
        assert timing.is_back()
        timing.let_go()

    @pytest.mark.parametrize("why", ["no overlap", "a slice is not over", "nobody waits"])
    def test_there_is_no_pause_without_need(self, short_slices, monkeypatch, why):
        turns = Turns(BOARD, overlap=why != "no overlap")
        if why == "a slice is not over":
            monkeypatch.setattr("runner.engine.turns.SLICE", 1000.0)
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        waiting = why != "nobody waits" and Somebody(turns, "among_others")
        assert joining(turns, 1 if waiting else 0)
        timing.begin_pause()
        assert timing.is_back()
        assert timing.paused == [0.0]
        timing.let_go()
        if waiting:
            assert waiting.got_it()
            waiting.let_go()

    def test_long_calls_wait_for_each_other(self, short_slices):
        turns = Turns(BOARD, overlap=True)
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        for _ in range(5):  # two fifths of them are two
            turns._present += 1
        long = Somebody(turns, "among_others", True)
        assert joining(turns, 1)
        timing.begin_pause()
        assert timing.is_back()
        assert timing.paused == [0.0], "not for one that would take long"
        short = Somebody(turns, "among_others")
        assert joining(turns, 2)
        timing.begin_pause()
        assert short.got_it()
        short.let_go()
        assert timing.is_back()
        assert not long.has_it.is_set(), "a pause for short calls"
        other = Somebody(turns, "among_others", True)
        assert joining(turns, 2)
        timing.begin_pause()
        assert long.got_it()
        assert other.got_it()
        long.let_go()
        other.let_go()
        assert timing.is_back()
        timing.let_go()

    def test_a_long_call_does_not_wait_for_ever(self, short_slices, monkeypatch):
        monkeypatch.setattr("runner.engine.turns.LONG_WAIT", 0.0)
        turns = Turns(BOARD, overlap=True)
        turns._present = 100
        timing = Timing(turns)
        assert timing.has_it.wait(SECONDS)
        long = Somebody(turns, "among_others", True)
        assert joining(turns, 1)
        timing.begin_pause()
        assert long.got_it()
        long.let_go()
        assert timing.is_back()
        timing.let_go()

    def test_a_timing_that_fails_in_its_pause_leaves_a_board_that_others_can_use(
        self, short_slices, monkeypatch
    ):
        turns = Turns(BOARD, overlap=True)
        files = turns.files

        def time_and_fail() -> None:
            with turns.alone() as pause:
                sharing = Somebody(turns, "among_others")
                assert joining(turns, 1)
                sharing.may_go()
                monkeypatch.setattr(turns, "files", fail_alone)
                pause()

        def fail_alone(how: int):
            if how == fcntl.LOCK_EX:
                raise OSError("no more files")
            return files(how)

        with pytest.raises(OSError, match="no more files"):
            time_and_fail()
        with turns.among_others():
            assert turns._among == 1

    def test_what_was_given_back_is_not_given_back_twice(self):
        turns = Turns(BOARD, overlap=True)
        with turns.among_others() as hold:
            hold.give_back()
            hold.give_back()
        with turns.alone():
            pass
        assert turns._among == 0


@pytest.mark.parametrize("overlap", [True, False])
def test_many_in_two_processes_get_through_and_whoever_times_is_alone(short_slices, overlap):
    """Two judges on one board, each with candidates that check, compile aside and are timed."""
    both = [Turns(BOARD, patience=0.0, overlap=overlap) for _ in range(2)]
    lock = threading.Lock()
    using: dict[str, int] = {"sharing": 0, "alone": 0}
    wrong: list[str] = []
    done: list[int] = []

    @contextlib.contextmanager
    def use(how: str):
        with lock:
            using[how] += 1
            if using["alone"] > 1 or (using["alone"] and using["sharing"]):
                wrong.append(f"{using}")
        os.sched_yield()
        yield
        with lock:
            using[how] -= 1

    def judge(turns: Turns, number: int) -> None:
        with turns.in_hand():
            for step in range(4):
                with turns.among_others((number + step) % 3 == 0) as hold:
                    with use("sharing"):
                        pass
                    hold.step_aside()
                    hold.step_back()
                    with use("sharing"):
                        pass
            with turns.alone() as pause:
                for _ in range(5):
                    with use("alone"):
                        pass
                    pause()
            with turns.among_others(True), use("sharing"):
                pass
        done.append(number)

    threads = [
        threading.Thread(target=judge, args=(both[number % 2], number), daemon=True)
        for number in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert sorted(done) == list(range(16))
    assert wrong == []


class TestByItself:
    """Memory on a board belongs to whole processes, whoever has the turn."""

    def test_it_waits_for_all_in_hand_and_none_begins_meanwhile(self):
        turns = Turns(BOARD)
        first = Somebody(turns, "in_hand")
        assert first.got_it()
        sole = Somebody(turns, "in_hand", True)
        assert comes_true(lambda: turns._sole, SECONDS)
        late = Somebody(turns, "in_hand")
        assert not sole.has_it.is_set()
        first.let_go()
        assert sole.got_it()
        assert not late.has_it.is_set()
        sole.let_go()
        assert late.got_it()
        late.let_go()

    def test_two_who_want_that_have_it_one_after_the_other(self):
        turns = Turns(BOARD)
        both = [Somebody(turns, "in_hand", True) for _ in range(2)]
        assert comes_true(lambda: turns._sole == 2, SECONDS)
        assert comes_true(lambda: any(one.has_it.is_set() for one in both), SECONDS)
        assert not all(one.has_it.is_set() for one in both)
        for one in both:
            one.may_go()
        assert all(one.done.wait(SECONDS) for one in both)

    def test_company_is_remembered_though_it_has_gone(self):
        turns = Turns(BOARD)
        with turns.in_hand() as stay:
            assert not stay.had_company
            with turns.in_hand() as other:
                assert other.had_company
            assert stay.had_company
        with turns.in_hand(True) as sole:
            assert not sole.had_company
