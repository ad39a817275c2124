"""Outputs of timed calls: read at once, judged when the board need not be quiet any more."""

import mmap
import os
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from benchmark import suite
from benchmark.vocabulary import CRASHED, PASSED, WRONG_SHAPE, WRONG_VALUES
from runner.engine import timing
from runner.engine.export import Exporter
from runner.engine.referee import Referee
from runner.engine.timing import Samples
from runner.engine.trial import Trial, Verdict
from tests.engine.test_timing import case, trial_of

SIZE = 1 << 20
SEED = 11
RELU = suite.get("relu")
SMALL = next(one for one in RELU.cases if one.kind == "small")


class InProcess:
    """The referee without its process, and the candidate's file."""

    def __init__(self) -> None:
        self._sock, self._other = socket.socketpair()
        self.referee = Referee(self._sock, "cpu")
        self.descriptor, self.size = os.memfd_create("answers"), SIZE
        os.ftruncate(self.descriptor, SIZE)
        self.exporter = Exporter(mmap.mmap(self.descriptor, SIZE), SIZE)
        self.asked: list[str] = []

    @property
    def file(self) -> "InProcess":
        return self

    def ask(self, message: dict, _seconds: float, descriptors: Any = ()) -> dict:
        self.asked.append(message["op"])
        return self.referee._operations[message["op"]](message, list(descriptors))

    def write(self, output: Any) -> dict:
        """What the candidate answers now."""
        self.exporter.begin()
        return {"outputs": [self.exporter.export(output)], "after": None}

    def close(self) -> None:
        for sock in (self._sock, self._other):
            sock.close()
        os.close(self.descriptor)


@pytest.fixture
def other() -> Iterator[InProcess]:
    other = InProcess()
    yield other
    other.close()


@pytest.fixture
def trial(other: InProcess) -> Trial:
    trial = trial_of([case(SMALL.name)], 1.0)
    cases = tuple({**one, "judgeable": True} for one in trial.contract.cases)
    trial.contract = replace(trial.contract, cases=cases)
    trial.referee = trial.session = other  # type: ignore[assignment]
    return trial


def right_answer() -> torch.Tensor:
    return RELU.reference(RELU.arguments(SMALL, SEED, "cpu"))


def block(reply: dict) -> Samples:
    return Samples((1.0,), (1.0,), (SEED,), reply)


def keep(trial: Trial, reply: dict) -> None:
    timing.keep_outputs(trial, trial.contract.cases[0], block(reply), keep=0)


def test_what_is_written_after_the_call_changes_nothing(trial, other):
    keep(trial, other.write(right_answer()))
    other.write(right_answer() + 1)
    trial.catch_up()
    assert trial.result({"case": SMALL.name}).verdict == PASSED
    keep(trial, other.write(right_answer() + 1))
    other.write(right_answer())
    with pytest.raises(Verdict, match="a timed call") as caught:
        trial.catch_up()
    assert caught.value.verdict == WRONG_VALUES


def test_nothing_is_compared_before_the_trial_catches_up(trial, other):
    keep(trial, other.write(right_answer()))
    keep(trial, other.write(right_answer()))
    assert other.asked == ["keep", "keep"]
    trial.catch_up()
    assert other.asked == ["keep", "keep", "compare", "compare"]
    assert not trial.later
    assert not trial.kept


def test_wrong_outputs_take_their_case_s_times_away(trial, other):
    row = trial.result({"case": SMALL.name})
    row.speedup, row.samples = 2.0, 96
    keep(trial, other.write(right_answer() + 1))
    with pytest.raises(Verdict):
        trial.catch_up()
    assert (row.candidate_ms, row.speedup, row.samples) == (None, None, None)


def test_an_answer_that_cannot_be_read_is_judged_later_too(trial, other):
    reply = other.write(right_answer())
    reply["outputs"][0]["offset"] = SIZE
    keep(trial, reply)
    with pytest.raises(Verdict, match="unusable") as caught:
        trial.catch_up()
    assert caught.value.verdict == WRONG_SHAPE


def test_no_output_at_all_is_no_answer(trial):
    with pytest.raises(Verdict) as caught:
        keep(trial, {"outputs": None})
    assert caught.value.verdict == CRASHED


def test_the_referee_forgets_what_nobody_asks_for_any_more(trial, other):
    keep(trial, other.write(right_answer()))
    assert len(other.referee._kept) == 1
    trial.forget()
    assert not other.referee._kept


def test_where_too_much_is_kept_it_is_judged_at_once(trial, other):
    """A board that is full would fail PyTorch, or the candidate."""
    kept = other.referee.keep
    other.referee._operations["keep"] = lambda *asked: {**kept(*asked), "much": True}
    keep(trial, other.write(right_answer()))
    assert other.asked == ["keep", "compare"]


def test_the_times_are_concluded_after_the_outputs_are_judged(trial, other):
    """Else a wrong candidate would have a speedup."""
    keep(trial, other.write(right_answer() + 1))
    trial.later.append(lambda: pytest.fail("concluded"))
    with pytest.raises(Verdict):
        trial.catch_up()
