"""Compiling aside: what a candidate's process may say about it, and what becomes of the board and
of the limits. The other side is played over a real socket; some of it by a judged candidate.
"""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmark.vocabulary import CRASHED, PASSED, TIMEOUT
from runner.engine import INTERPRETER, Candidate, DeviceSpec, Judge, Limits, Options, child, timing
from runner.engine.clocks import Clocks
from runner.engine.observer import Observer, watch_compiling
from runner.engine.protocol import (
    COMPILED,
    COMPILING,
    FAILED,
    GO,
    MAX_COMPILES,
    NEXT,
    OVERLAP,
    TOLD,
    Channel,
    encode,
    receive,
    send,
)
from runner.engine.report import Report
from runner.engine.trial import Contract, Trial, Verdict
from runner.engine.turns import Turns, nobody_else
from runner.engine.workers import Session
from tests.engine.conftest import comes_true

BOARD = DeviceSpec("cuda", 0, "h200", "a board", "overlap-in-the-tests")
SECONDS = 20.0
BEGIN, END = encode({COMPILING: True}), encode({COMPILED: True})
ANSWER = encode({"ok": True, "outputs": []})
Peer = Callable[[socket.socket, dict], None]


@pytest.fixture(autouse=True)
def locks_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.engine.turns.tempfile.gettempdir", lambda: str(tmp_path))


class Played(Session):
    """A session whose process is a thread of the test."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.theirs.settimeout(SECONDS)
        self.channel = Channel(ours, stranger=True)
        self.asked: list[dict] = []
        self._thread: threading.Thread | None = None

    def play(self, peer: Peer) -> None:
        def run() -> None:
            message, _ = receive(self.theirs)
            self.asked.append(message)
            peer(self.theirs, message)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def end(self, grace: float = 0.0) -> dict:
        return {"status": -11, "died": True, "out_of_memory": False, "peak_memory": None}

    def close(self) -> None:
        if self._thread:
            self._thread.join(SECONDS)
        self.channel.close()
        self.theirs.close()


@pytest.fixture
def session():
    session = Played()
    yield session
    session.close()


@pytest.fixture
def turns() -> Turns:
    return Turns(BOARD, overlap=True)


def trial_of(session: Session, turns: Turns, call_seconds: float = SECONDS) -> Trial:
    trial = Trial(
        candidate=Candidate("relu", ""),
        contract=Contract("relu", "Activation", "0" * 64, (), (), 1, ()),
        device=BOARD,
        options=Options(limits=Limits(call=call_seconds)),
        referee=None,  # type: ignore[arg-type]  # nothing is asked of it here
        report=Report("relu", "Activation", 0, "", "", "h200"),
        progress=lambda *_: None,
        board=lambda: None,  # type: ignore[arg-type, return-value]
        turn=turns.among_others,
        clocks=Clocks(INTERPRETER),
    )
    trial.session = session
    return trial


def ask(trial: Trial) -> dict:
    with trial.stage("call"):
        return trial.ask({"op": "call", "case": "small"})


def verdict_of(trial: Trial) -> tuple[str, str]:
    with pytest.raises(Verdict) as raised:
        ask(trial)
    return raised.value.verdict, str(raised.value)


def is_free(turns: Turns) -> bool:
    """Nobody holds the board: not between threads, nor between processes."""
    with turns.alone():
        return turns._among == 0


class TestProperly:
    def test_others_have_the_board_while_it_compiles(self, session, turns):
        had_it = []

        def compile_twice(sock, _message):
            for _ in range(2):
                sock.sendall(BEGIN)
                with turns.alone():
                    had_it.append(True)
                sock.sendall(END)
                had_it.append(sock.recv(1) == GO)
            sock.sendall(ANSWER)

        session.play(compile_twice)
        assert ask(trial_of(session, turns))["outputs"] == []
        assert session.asked[0][OVERLAP] is True
        assert had_it == [True] * 4
        assert is_free(turns)

    def test_it_goes_on_when_the_board_is_there_again_and_is_not_charged(self, session, turns):
        order: list[str] = []

        def compile_and_wait(sock, _message):
            sock.sendall(BEGIN)
            with turns.alone():
                sock.sendall(END)
                assert comes_true(lambda: turns._joining, SECONDS)
                order.append("timed")
            sock.recv(1)
            order.append("goes on")
            sock.sendall(ANSWER)

        session.play(compile_and_wait)
        trial = trial_of(session, turns)
        before = time.monotonic()
        ask(trial)
        assert order == ["timed", "goes on"]
        assert trial.waited > 0
        assert trial.deadline >= before + SECONDS + trial.waited
        assert trial.report.seconds["call"] < time.monotonic() - before

    def test_what_is_told_meanwhile_is_heard(self, session, turns):
        def tell(sock, _message):
            sock.sendall(BEGIN)
            send(sock, {TOLD: "native-code", "about": "x"})
            sock.sendall(END)
            sock.recv(1)
            sock.sendall(ANSWER)

        session.play(tell)
        trial = trial_of(session, turns)
        ask(trial)
        assert trial.flagged

    def test_without_overlap_it_compiles_aside_too_but_nobody_times_meanwhile(self, session):
        turns = Turns(BOARD, patience=0.0)
        seen = []

        def compile_once(sock, _message):
            sock.sendall(BEGIN)
            assert comes_true(lambda: not turns._using, SECONDS)
            seen.append((turns._among, turns._using))
            sock.sendall(END)
            sock.recv(1)
            seen.append((turns._among, turns._using))
            sock.sendall(ANSWER)

        session.play(compile_once)
        ask(trial_of(session, turns))
        assert seen == [(1, 0), (1, 1)]
        assert is_free(turns)

    def test_nothing_is_offered_on_the_interpreter(self, session):
        session.play(lambda sock, _message: sock.sendall(ANSWER))
        ask(trial_of(session, Turns(INTERPRETER)))
        assert OVERLAP not in session.asked[0]

    def test_nor_to_one_who_has_the_board_alone(self, session, turns):
        session.play(lambda sock, _message: sock.sendall(ANSWER))
        trial = trial_of(session, turns)
        trial.turn = nobody_else
        ask(trial)
        assert OVERLAP not in session.asked[0]


class TestHostile:
    def check(self, session: Played, turns: Turns, sent: bytes, verdict: str, why: str) -> None:
        session.play(lambda sock, _message: sock.sendall(sent))
        found, detail = verdict_of(trial_of(session, turns))
        assert (found, why in detail) == (verdict, True), detail
        assert is_free(turns)

    @pytest.mark.parametrize(
        ("sent", "why"),
        [
            (END, "the end of compiling that did not begin"),
            (BEGIN + ANSWER, "an answer in the middle of compiling"),
            (BEGIN + BEGIN + END, "an answer in the middle of compiling"),
            (BEGIN + END + END, "the end of compiling that did not begin"),
            ((BEGIN + END) * MAX_COMPILES, "does not read what it asked for"),
            (BEGIN + END + b"\xff" * 8, "the limit is"),
            (BEGIN + b"\xff" * 8, "the limit is"),
        ],
    )
    def test_what_is_out_of_order_ends_in_a_crash(self, session, turns, sent, why):
        self.check(session, turns, sent, CRASHED, why)

    def test_so_does_compiling_all_the_time(self, session, turns):
        def compile_on(sock, _message):
            for _ in range(MAX_COMPILES):
                sock.sendall(BEGIN + END)
                sock.recv(1)
            sock.sendall(ANSWER)

        session.play(compile_on)
        found, detail = verdict_of(trial_of(session, turns))
        assert (found, f"more than {MAX_COMPILES} times" in detail) == (CRASHED, True), detail
        assert is_free(turns)

    @pytest.mark.parametrize("sent", [BEGIN, BEGIN + END, END])
    def test_so_does_all_of_it_where_it_was_not_offered(self, session, sent):
        why = "did not begin" if sent == END else "was not asked for"
        self.check(session, Turns(INTERPRETER), sent, CRASHED, why)

    def test_compiling_without_end_runs_into_the_limit(self, session, turns):
        session.play(lambda sock, _message: sock.sendall(BEGIN))
        found, detail = verdict_of(trial_of(session, turns, call_seconds=0.2))
        assert (found, detail) == (TIMEOUT, "the call stage did not end within 0.2 s")
        assert is_free(turns)

    def test_so_does_silence_after_the_word_to_go_on(self, session, turns):
        session.play(lambda sock, _message: sock.sendall(BEGIN + END))
        assert verdict_of(trial_of(session, turns, call_seconds=0.2))[0] == TIMEOUT
        assert is_free(turns)

    @pytest.mark.parametrize("sent", [BEGIN, BEGIN + END])
    def test_dying_meanwhile_is_a_crash(self, session, turns, sent):
        def die(sock, _message):
            sock.sendall(sent)
            sock.shutdown(socket.SHUT_RDWR)

        session.play(die)
        assert verdict_of(trial_of(session, turns)) == (
            CRASHED,
            "the process was killed by SIGSEGV",
        )
        assert is_free(turns)

    def test_compiling_after_the_answer_is_an_answer_that_nobody_asked_for(self, session, turns):
        session.play(lambda sock, _message: sock.sendall(ANSWER + BEGIN + END))
        trial = trial_of(session, turns)
        ask(trial)
        found, detail = verdict_of(trial)
        assert (found, "nobody asked for" in detail) == (CRASHED, True)

    @pytest.mark.parametrize("byte", [b"", NEXT])
    def test_in_a_timed_block_it_is_refused(self, session, turns, byte):
        session.play(lambda sock, _message: sock.sendall(byte + BEGIN))
        trial = trial_of(session, turns)
        with pytest.raises(Verdict, match="in the middle of a block"), trial.stage("time"):
            timing.candidate_block(trial, {"case": "x", "may_mutate": False}, 3, 10.0)

    def test_a_failure_in_a_timed_block_can_not_be_compiling(self, session, turns):
        session.play(lambda sock, _message: sock.sendall(FAILED + BEGIN))
        trial = trial_of(session, turns)
        with pytest.raises(Verdict) as raised, trial.stage("time"):
            timing.candidate_block(trial, {"case": "x", "may_mutate": False}, 3, 10.0)
        assert raised.value.verdict == CRASHED


@pytest.fixture
def on_a_board(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if CUDA had been started here, and had nothing to do."""
    monkeypatch.setattr(child, "_started", lambda: True)
    monkeypatch.setattr(child, "_capturing", lambda: False)
    monkeypatch.setattr(child, "_synchronize", lambda: None)


@pytest.fixture
def compiling(session: Played) -> child.Compiling:
    return child.Compiling(session.theirs, Observer())


class TestInTheProcess:
    def test_it_says_so_and_waits(self, session, compiling, on_a_board):
        compiling.allow(True)
        assert compiling.begin()
        assert COMPILING in session.channel.wait(time.monotonic() + SECONDS)
        session.channel.send_bytes(GO)
        compiling.end()
        assert COMPILED in session.channel.wait(time.monotonic() + SECONDS)

    def test_compiling_within_compiling_is_one(self, session, compiling, on_a_board):
        compiling.allow(True)
        assert compiling.begin()
        assert not compiling.begin()
        session.channel.send_bytes(GO)
        compiling.end()
        assert compiling.begin()

    def test_it_says_nothing_unless_it_is_allowed(self, compiling, on_a_board):
        assert not compiling.begin()
        compiling.allow(True)
        compiling.allow(False)
        assert not compiling.begin()

    def test_it_stays_below_what_the_supervisor_bears(self, session, compiling, on_a_board):
        compiling.allow(True)
        said = 0
        while said < MAX_COMPILES and compiling.begin():
            session.channel.wait(time.monotonic() + SECONDS)
            said += 1
        assert 0 < said < MAX_COMPILES

    def test_another_thread_says_nothing_nor_does_one_with_company(self, compiling, on_a_board):
        compiling.allow(True)
        found, over = [], threading.Event()

        def elsewhere() -> None:
            found.append(compiling.begin())
            over.wait(SECONDS)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        found.append(compiling.begin())
        over.set()
        thread.join()
        assert found == [False, False]

    @pytest.mark.parametrize(
        ("name", "value"), [("_started", lambda: False), ("_capturing", lambda: True)]
    )
    def test_it_says_nothing_before_cuda_starts_nor_in_a_graph(
        self, compiling, on_a_board, monkeypatch, name, value
    ):
        monkeypatch.setattr(child, name, value)
        compiling.allow(True)
        assert not compiling.begin()

    def test_nor_with_a_broken_context(self, compiling, on_a_board, monkeypatch):
        def broken() -> None:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

        monkeypatch.setattr(child, "_synchronize", broken)
        compiling.allow(True)
        assert not compiling.begin()

    def test_every_compilation_passes_there_and_ends_though_it_fails(self, monkeypatch):
        from triton.runtime import build
        from triton.runtime.jit import JITFunction

        assert "_do_compile" in JITFunction.run.__code__.co_names
        said = []

        def fail(_self: object, key: str, *, warmup: bool) -> None:
            said.append(key)
            raise ValueError("no such type")

        monkeypatch.setattr(JITFunction, "_do_compile", fail)
        monkeypatch.setattr(build, "_build", lambda name: said.append(name) or name)
        watch_compiling(lambda: not said.append("begin"), lambda: said.append("end"))
        with pytest.raises(ValueError, match="no such type"):
            JITFunction._do_compile(object(), "key", warmup=False)  # type: ignore[arg-type]
        assert said == ["begin", "key", "end"]
        assert build._build("launcher") == "launcher"
        assert said[3:] == ["begin", "launcher", "end"]
        assert "_build" in build.compile_module_from_src.__code__.co_names


SAMPLE = Path(__file__).parents[2] / "samples" / "plain" / "Activation" / "relu.py"
SPEAKER = """
import gc
import json
import struct

def say(word):
    body = json.dumps({word: True}).encode()
    CHANNEL.sendall(struct.pack("!I", len(body)) + body)


CHANNEL = next(one for one in gc.get_objects() if type(one).__name__ == "socket")


"""


def speaking(words: str) -> Candidate:
    """A plain sample that says something in each call."""
    plain = SAMPLE.read_text(encoding="utf-8")
    at = "    x = input.contiguous()\n"
    assert plain.count(at) == 1
    return Candidate("relu", SPEAKER + plain.replace(at, f"    {words}\n{at}"))


class TestJudged:
    """Candidates that got hold of the channel, in a judge that offers the overlap."""

    def judged(self, judge: Judge, monkeypatch: pytest.MonkeyPatch, speaks: str):
        monkeypatch.setattr(judge.turns, "overlap", True)
        return judge.judge(speaking(speaks))

    def test_who_waits_for_its_turn_is_judged_like_others(self, judge, monkeypatch):
        speaks = "say('compiling'); say('compiled'); CHANNEL.recv(1)"
        report = self.judged(judge, monkeypatch, speaks)
        assert (report.verdict, report.suspect) == (PASSED, True), report.detail

    @pytest.mark.parametrize(
        "speaks",
        ["say('compiling')", "say('compiled')", "[say('compiling') for _ in range(2)]"],
    )
    def test_who_does_not_crashes(self, judge, monkeypatch, speaks):
        report = self.judged(judge, monkeypatch, speaks)
        assert (report.verdict, report.stage) == (CRASHED, "call"), report.detail

    def test_a_flood_ends_in_a_crash_and_the_next_is_judged(self, judge, monkeypatch):
        speaks = "while True: say('compiling'); say('compiled')"
        report = self.judged(judge, monkeypatch, speaks)
        assert (report.verdict, report.stage) == (CRASHED, "call"), report.detail
        assert self.judged(judge, monkeypatch, "pass").verdict == PASSED

    def test_without_end_it_is_a_timeout(self, judge, monkeypatch):
        report = self.judged(judge, monkeypatch, "say('compiling'); CHANNEL.recv(1)")
        assert (report.verdict, report.stage) == (TIMEOUT, "call"), report.detail

    def test_the_interpreter_offers_nothing_by_itself(self, judge):
        assert judge.environment["overlap"] is False
        assert judge.environment["quiet_cores"] == []
        assert judge.judge(speaking("say('compiling'); say('compiled')")).verdict == CRASHED
