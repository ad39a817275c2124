"""Calls in a row by our own clock, played over a real socket, and the board's word on them."""

import functools
import socket
from itertools import count
from types import SimpleNamespace

import pytest

from runner.engine import INTERPRETER, crosschecks, physics, protocol
from runner.engine.clocks import Clocks
from runner.engine.protocol import NEXT, SEED
from runner.engine.trial import Trial
from tests.engine.played import Other, case, trial_of

CALL_SECONDS = 0.004
LARGE = 1e12  # bytes that cross over to no host meanwhile
# The host may be busy, so that calls take longer here than they would.
HONEST_MS, LYING_MS = 10e3 * CALL_SECONDS, 0.1


class Board(Clocks):
    """One whose driver says that it worked for so much of its last period."""

    def __init__(self, share: float | None, close: bool) -> None:
        super().__init__(INTERPRETER)
        self.share, self.close = share, close

    @property
    def close_to_host(self) -> bool:
        return self.close

    def busy_share(self) -> float | None:
        return self.share


def trial_with(other: Other, share: float | None, moved: float, close: bool) -> Trial:
    trial = trial_of([{**case("one"), "bytes": moved}], 1.0)
    trial.clocks = Board(share, close)
    trial.board = lambda: physics.Board(4e12, 60 << 20, "sm_90")
    trial.session = SimpleNamespace(channel=other.channel)  # type: ignore[assignment]
    trial.deadline = crosschecks.time.monotonic() + 30
    return trial


def slow_calls(sock: socket.socket, slow_rows: int) -> None:
    """Rows in which each call takes its time, so many of them, until nobody asks any more."""
    try:
        for row in count():
            message, _ = protocol.receive(sock)
            sock.sendall(NEXT)
            sock.recv(SEED.size, socket.MSG_WAITALL)
            seconds = CALL_SECONDS * message["calls"] * (row < slow_rows)
            until = crosschecks.time.perf_counter() + seconds
            while crosschecks.time.perf_counter() < until:
                pass
            protocol.send(sock, {"ok": True})
    except (protocol.Closed, OSError):
        return


def codes(trial: Trial) -> list[str]:
    return [finding.code for finding in trial.report.findings]


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crosschecks, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(crosschecks, "SAME_ROW", 100.0)  # of a host that others use
    monkeypatch.setattr(crosschecks, "boards_here", lambda: 1)


@pytest.mark.usefixtures("short_rows")
class TestOuterBound:
    def checked(
        self,
        other: Other,
        share: float | None,
        claimed: float,
        moved: float = LARGE,
        close: bool = False,
        slow_rows: int = 100,
    ) -> Trial:
        trial = trial_with(other, share, moved, close)
        other.play(functools.partial(slow_calls, slow_rows=slow_rows))
        crosschecks.outer_bound(trial, trial.contract.cases[0], claimed)
        other.channel.close()
        return trial

    def test_calls_that_take_as_long_as_their_events_say_are_believed(self, other):
        trial = self.checked(other, share=1.0, claimed=HONEST_MS)
        assert (codes(trial), trial.report.suspect) == ([], False)

    def test_a_busy_board_in_calls_whose_events_read_less_makes_them_suspect(self, other):
        trial = self.checked(other, share=1.0, claimed=LYING_MS)
        assert (codes(trial), trial.report.suspect) == (["suspect-clock"], True)
        assert "the board was busy for" in trial.report.findings[0].message

    def test_a_board_that_had_nothing_to_do_says_that_the_host_took_the_time(self, other):
        trial = self.checked(other, share=0.02, claimed=LYING_MS)
        assert (codes(trial), trial.report.suspect) == (["host-bound"], False)
        assert "the rest is the host's" in trial.report.findings[0].message

    @pytest.mark.parametrize(("moved", "close"), [(2e6, False), (0.0, False), (LARGE, True)])
    def test_a_host_that_could_have_had_the_numbers_may_have_done_the_work(
        self, other, moved, close
    ):
        """While the board spins before a timed call, by copies beside its stream."""
        trial = self.checked(other, share=0.02, claimed=LYING_MS, moved=moved, close=close)
        assert (codes(trial), trial.report.suspect) == (["suspect-clock"], True)

    def test_another_board_of_the_host_may_have_done_the_work(self, other, monkeypatch):
        monkeypatch.setattr(crosschecks, "boards_here", lambda: 2)
        trial = self.checked(other, share=0.02, claimed=LYING_MS)
        assert (codes(trial), trial.report.suspect) == (["suspect-clock"], True)

    def test_a_long_row_that_is_quick_enough_is_the_best_of_all(self, other):
        """The host may have had hiccups in the short ones."""
        trial = self.checked(other, share=1.0, claimed=LYING_MS, slow_rows=3)
        assert (codes(trial), trial.report.suspect) == ([], False)

    def test_where_the_driver_says_nothing_they_stay_suspect(self, other):
        trial = self.checked(other, share=None, claimed=LYING_MS)
        assert (codes(trial), trial.report.suspect) == (["suspect-clock"], True)


class TestProfiler:
    @pytest.mark.parametrize(
        ("busy", "claimed", "suspect"),
        [(1.0, 1.0, False), (1.0, 0.82, False), (1.0, 0.5, True), (0.005, 0.001, False)],
    )
    def test_events_that_miss_work_are_suspect(self, busy, claimed, suspect):
        trial = trial_of([case("one")], claimed)
        crosschecks.agree_with_profiler(trial, case("one"), claimed, busy)
        assert trial.report.suspect is suspect
        assert [f.code for f in trial.report.findings] == ["suspect-profile"] * suspect


class TestHostS:
    def test_a_board_that_worked_for_as_long_as_the_events_say_leaves_the_rest_to_the_host(self):
        assert crosschecks.is_the_host_s(claimed=0.13, wall=0.42, again=0.41, busy=0.14)

    def test_what_the_clock_grants_the_host_is_no_time_of_the_board_s(self):
        assert not crosschecks.is_the_host_s(claimed=0.13, wall=0.42, again=0.41, busy=0.25)

    @pytest.mark.parametrize("again", [0.2, 0.9])
    def test_rows_that_differ_say_nothing_about_each_other(self, again):
        assert not crosschecks.is_the_host_s(claimed=0.13, wall=0.42, again=again, busy=0.01)


def test_without_a_board_nobody_says_how_busy_it_was_or_how_far_away():
    assert Clocks(INTERPRETER).busy_share() is None
    assert Clocks(INTERPRETER).close_to_host is True


def test_numbers_take_their_time_to_the_host():
    board = physics.Board(4e12, 60 << 20, "sm_90")
    assert board.crossing_ms(512e6) == pytest.approx(4.0)
    assert board.crossing_ms(None) == 0.0
    assert physics.Board(4e12, 60 << 20, "sm_75").crossing_ms(512e6) == 0.0
