"""When a board's word is good: steady clocks, the events' own part, the profiler's view."""

from dataclasses import replace

import pytest

from runner.engine import INTERPRETER
from runner.engine.activity import Activity, busy_microseconds, summarize
from runner.engine.clocks import Clocks, Reading, unsteady
from runner.engine.physics import Board
from runner.engine.profiling import read_busy

COOL = Reading(1980, 2619, 300.0, 700.0, 40, 0x0, "580")
POWER_CAP, THERMAL, BRAKE = 0x4, 0x40, 0x80


class TestUnsteady:
    def test_a_steady_board_is_trusted(self):
        assert unsteady((COOL, replace(COOL, sm_mhz=1965, reasons=POWER_CAP))) == ""

    @pytest.mark.parametrize(("reasons", "word"), [(THERMAL, "heat"), (BRAKE, "power brake")])
    def test_a_board_that_is_held_back_is_not(self, reasons, word):
        assert word in unsteady((COOL, replace(COOL, reasons=reasons)))

    def test_nor_one_whose_clock_moves(self):
        assert unsteady((COOL, replace(COOL, sm_mhz=1400))) == (
            "the SM clock went from 1980 to 1400 MHz"
        )

    def test_a_silent_driver_says_nothing_against_it(self):
        assert unsteady((None, None)) == ""
        assert Clocks(INTERPRETER).read() is None

    def test_a_board_is_hot_right_after_work_and_not_before(self):
        clocks = Clocks(INTERPRETER)
        assert not clocks.is_hot
        clocks.note_work()
        assert clocks.is_hot

    @pytest.mark.parametrize(("sm_mhz", "hot"), [(1980, True), (1890, True), (345, False)])
    def test_a_board_whose_clock_is_up_by_the_work_of_others_is_hot_too(self, sm_mhz, hot):
        class Board(Clocks):
            def read(self) -> Reading:
                return replace(COOL, sm_mhz=sm_mhz)

        clocks = Board(INTERPRETER)
        clocks._highest = COOL.sm_mhz
        assert clocks.is_hot is hot


class TestNetTimes:
    BOARD = Board(4e12, 60 << 20, "sm_90", event_ms=0.002, joined_event_ms=0.005)

    def test_the_events_own_part_is_no_part_of_a_call(self):
        assert self.BOARD.net([0.102, 1.002]) == pytest.approx((0.1, 1.0))

    def test_a_call_that_ends_with_all_streams_has_a_part_of_its_own(self):
        assert self.BOARD.net([0.105, 0.004], joined=True) == pytest.approx((0.1, 0.0005))

    def test_a_call_is_never_nothing(self):
        assert self.BOARD.net([0.002, 0.0001]) == pytest.approx((0.0005, 0.0005))


def ran(name: str, stream: int, start_us: float, microseconds: float) -> Activity:
    return Activity(name, stream, microseconds, int(start_us * 1e3))


MARKER = ran("fill", 7, 0, 1)


class TestActivity:
    def test_overlapping_streams_are_busy_once(self):
        call = [MARKER, ran("a", 7, 10, 20), ran("b", 9, 20, 30), ran("c", 7, 100, 5)]
        assert busy_microseconds(call) == pytest.approx(45)

    def test_a_call_without_work_is_idle(self):
        assert busy_microseconds([MARKER]) == busy_microseconds([]) == 0

    def test_rows_tell_whose_kernels_ran_where(self):
        calls = [[MARKER, ran("mine", 7, 5, 10), ran("gemm", 9, 5, 30)]] * 2 + [[]]
        assert summarize(calls, {"mine"}) == [
            ["gemm", False, False, 2, 60.0],
            ["mine", True, True, 2, 20.0],
        ]

    def test_the_shortest_call_counts(self):
        assert read_busy([9000.0, 1500.0]) == 1.5

    @pytest.mark.parametrize("forged", [None, [], "x", [float("nan")], [-1], ["1"], {"a": 1}])
    def test_forged_times_count_as_none(self, forged):
        assert read_busy(forged) == 0.0
