"""Which cores are kept quiet, and whether threads really go there."""

import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from runner.engine import INTERPRETER, cores
from runner.engine.cores import Cores, choose
from runner.engine.workers import Session

ALONE: dict[int, set[int]] = {}
READS_A_LINE = "import sys; print(flush=True); sys.stdin.readline()"


class TestChoice:
    def test_three_of_sixteen_are_quiet(self):
        found = choose(range(16), ALONE, 0, 1)
        assert found == Cores(frozenset({13, 14, 15}), frozenset(range(13)))

    @pytest.mark.parametrize(("available", "boards"), [(7, 1), (15, 2), (0, 1)])
    def test_with_few_cores_none_are(self, available, boards):
        assert choose(range(available), ALONE, 0, boards) is None

    def test_only_those_that_we_may_use_count(self):
        available = {1, 3, 5, 7, 9, 11, 13, 15}
        found = choose(available, ALONE, 0, 1)
        assert found == Cores(frozenset({11, 13, 15}), frozenset({1, 3, 5, 7, 9}))

    def test_every_board_has_its_own_and_no_board_compiles_on_anothers(self):
        found = [choose(range(32), ALONE, board, 4) for board in range(4)]
        assert all(found)
        quiet = [one.quiet for one in found if one]
        assert len(frozenset().union(*quiet)) == 12
        assert {one.busy for one in found if one} == {frozenset(range(20))}

    def test_a_core_s_other_thread_is_quiet_too(self):
        siblings = {core: {core % 8, core % 8 + 8} for core in range(16)}
        found = choose(range(16), siblings, 0, 1)
        assert found == Cores(frozenset({7, 15, 6, 14}), frozenset(range(16)) - {7, 15, 6, 14})

    def test_a_sibling_that_we_may_not_use_is_left_alone(self):
        siblings = {core: {core % 16, core % 16 + 16} for core in range(32)}
        found = choose(range(16), siblings, 0, 1)
        assert found == Cores(frozenset({13, 14, 15}), frozenset(range(13)))

    @pytest.mark.parametrize(
        ("text", "found"), [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("1,3-4", {1, 3, 4})]
    )
    def test_the_kernel_s_lists_are_read(self, text, found):
        assert cores.read_list(text) == found

    def test_without_the_right_to_move_others_none_are(self, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert cores.cores_for(0, 1) is None


class TestMoving:
    def test_a_process_goes_with_its_threads_and_descendants(self):
        source = (
            "import subprocess, sys, threading\n"
            "threading.Thread(target=threading.Event().wait, args=(60,), daemon=True).start()\n"
            f"subprocess.run([sys.executable, '-c', {READS_A_LINE!r}])\n"
        )
        command = [sys.executable, "-c", source]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()  # both are there
            threads = cores.threads_of(process.pid)
            first = min(os.sched_getaffinity(0))
            cores.move(lambda: cores.threads_of(process.pid), {first})
            where = {frozenset(os.sched_getaffinity(thread)) for thread in threads}
            process.communicate(b"\n")
        assert process.pid in threads
        assert len(threads) >= 3
        assert where == {frozenset({first})}

    def test_threads_that_end_or_begin_meanwhile_are_no_matter(self):
        gone = subprocess.Popen([sys.executable, "-c", ""])
        gone.wait()
        looks: list[int] = []

        def threads() -> set[int]:
            looks.append(1)
            return {gone.pid} if len(looks) == 1 else {gone.pid, threading.get_native_id()}

        with cores.this_thread_on(os.sched_getaffinity(0)):
            cores.move(threads, {min(os.sched_getaffinity(0))})
            assert len(os.sched_getaffinity(0)) == 1
        assert len(looks) == 3

    def test_nobody_has_no_threads(self):
        assert cores.threads_of(2**22 + 1) == set()

    def test_a_thread_returns_to_where_it_was(self):
        before = os.sched_getaffinity(0)
        with cores.this_thread_on({min(before)}):
            assert os.sched_getaffinity(0) == {min(before)}
        assert os.sched_getaffinity(0) == before


def test_judging_keeps_to_the_cores(judge, monkeypatch):
    """A real judgement with the choice made for it: it takes no more than these cores."""
    every = os.sched_getaffinity(0)
    chosen = Cores(frozenset({max(every)}), frozenset({min(every)}))
    monkeypatch.setattr(judge, "_cores", chosen)
    with judge._quiet_thread():
        assert os.sched_getaffinity(0) == set(chosen.quiet)
    assert os.sched_getaffinity(0) == every
    nursery = judge._nursery
    try:
        judge._make_busy(nursery)
        assert os.sched_getaffinity(nursery.pid) == set(chosen.busy)
    finally:
        cores.move(lambda: cores.threads_of(nursery.pid), every)


def test_both_sides_are_quiet_while_they_are_timed_and_busy_again_afterwards(judge, monkeypatch):
    every = os.sched_getaffinity(0)
    chosen = Cores(frozenset({max(every)}), frozenset({min(every)}))
    monkeypatch.setattr(judge, "_cores", chosen)
    (referee,) = judge._referees

    def where(*pids: int) -> set[frozenset[int]]:
        threads = {thread for pid in pids for thread in cores.threads_of(pid)}
        assert len(threads) >= len(pids)
        return {frozenset(os.sched_getaffinity(thread)) for thread in threads}

    try:
        with Session(judge._nursery, INTERPRETER, judge.options) as session:
            session.start()
            trial = SimpleNamespace(session=session, referee=referee)
            with judge._quiet(trial):
                assert where(session.pid, referee.pid) == {chosen.quiet}
            assert where(session.pid, referee.pid) == {chosen.busy}
    finally:
        cores.move(lambda: cores.threads_of(referee.pid), every)
