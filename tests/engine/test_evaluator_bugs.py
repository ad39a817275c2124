"""Mistakes that other judges made and this one must not: the catalogue's B numbers.

Those that another test covers are named in tests/exploits/README.md.
"""

import hashlib

import pytest
import torch

from benchmark import suite
from benchmark.suite import scenes
from benchmark.vocabulary import PASSED, WRONG_DTYPE, WRONG_SHAPE, WRONG_VALUES
from runner.engine import Candidate, Judge, JudgeFailure, timing
from runner.engine.figures import Interval, Pair
from tests.engine.conftest import ROOT
from tests.engine.test_timing import case, trial_of

MIN = suite.get("min")
PLAIN = (ROOT / "samples" / "plain" / "Activation" / "relu.py").read_text()


def judged_min(change) -> str:
    """The verdict on PyTorch's (values, indices) after `change(values, indices)`."""
    small = MIN.case("small-odd")
    arguments = MIN.arguments(small, 3, "cpu")
    answer = scenes.honest(MIN, arguments)
    outputs = [change(*output) for output in answer.outputs]
    return MIN.compare(small, arguments, outputs, answer.mutated).verdict


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda values, indices: (values, indices), PASSED),
        (lambda values, indices: (values + 1, indices), WRONG_VALUES),
        (lambda values, indices: (values, indices.roll(1)), WRONG_VALUES),
        (lambda values, indices: (values,), WRONG_SHAPE),
        (lambda values, indices: (values, indices, indices), WRONG_SHAPE),
        (lambda values, indices: (), WRONG_SHAPE),
        (lambda values, indices: (indices, values), WRONG_DTYPE),
    ],
)
def test_b01_b04_every_output_is_judged_and_none_may_be_missing(change, verdict):
    assert judged_min(change) == verdict


def test_b07_what_ran_is_what_was_handed_in(judge: Judge) -> None:
    wrong = PLAIN.replace("tl.where(x < 0, 0.0, x)", "tl.where(x < 0, 0.5, x)")
    assert wrong != PLAIN
    for source, verdict in ((wrong, WRONG_VALUES), (PLAIN, PASSED), (wrong, WRONG_VALUES)):
        report = judge.judge(Candidate("relu", source, name="relu.py"))
        assert report.verdict == verdict
        assert report.source_sha256 == hashlib.sha256(source.encode()).hexdigest()


def test_b20_times_keep_seven_digits_and_samples_nine():
    assert timing._rounded(Interval(0.123456789, 0.1, 0.2))[0] == 0.1234568
    pairs = [[Pair((1.0,), (candidate,))] for candidate in (0.12345678, 0.12345679)]
    assert timing.digest(pairs[0]) != timing.digest(pairs[1])


def test_b22_a_board_whose_every_block_is_left_out_is_our_failure():
    trial = trial_of([case("one")], 1.0)
    found = timing.CaseTimes(left_out=timing.MOST_LEFT_OUT)
    timing._require_steady(trial, found, "heat")
    found.left_out += 1
    with pytest.raises(JudgeFailure, match="does not run steadily: heat"):
        timing._require_steady(trial, found, "heat")


def test_a_tensor_is_no_tuple_of_one():
    assert judged_min(lambda values, indices: torch.stack((values, values))) == WRONG_SHAPE
