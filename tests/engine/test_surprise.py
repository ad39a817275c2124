"""An answer of a timed call that is right without the candidate's kernels."""

from dataclasses import replace

import pytest

from benchmark.vocabulary import CRASHED, FORBIDDEN, PASSED, WRONG_VALUES
from runner.engine import Options, profiling, surprise
from runner.engine.timing import Samples
from runner.engine.trial import Answer, Trial, Verdict
from tests.engine.test_timing import case, trial_of

CASE = case("timed-large")
BLOCK = Samples((1.0,) * 3, (1.0,) * 3, (10, 11, 12), {"outputs": [{"t": "tensor"}]})


class Judged(Trial):
    """A referee that finds the answer right for the seeds that a test names."""

    right: object

    def compare(self, answer: Answer) -> dict:
        return {"verdict": PASSED if self.right(answer.seed) else WRONG_VALUES, "detail": ""}


def judged(right) -> Judged:
    trial = Judged(**vars(trial_of([CASE], 1.0)))
    trial.right = right
    return trial


OWN = BLOCK.seeds


def blocks(_samples: int, _keep: int) -> Samples:
    return BLOCK


def test_right_for_its_own_arguments_alone_is_others_work():
    trial = judged(lambda seed: seed in OWN)
    with pytest.raises(Verdict, match="switched off") as caught:
        surprise.look(trial, CASE, blocks)
    assert caught.value.verdict == FORBIDDEN
    assert trial.result(CASE).verdict == FORBIDDEN


@pytest.mark.parametrize("right", [lambda seed: False, lambda seed: True])
def test_wrong_or_right_for_any_arguments_says_nothing(right):
    surprise.look(judged(right), CASE, blocks)


@pytest.mark.parametrize("lucky", range(1, surprise.LOOKS))
def test_an_answer_left_in_memory_that_is_right_by_chance_accuses_nobody(lucky):
    """As the mean of another call's millions of numbers is, once in a hundred looks."""
    looks = []
    trial = judged(lambda seed: seed in OWN and len(looks) <= lucky)
    surprise.look(trial, CASE, lambda *asked: looks.append(asked) or BLOCK)
    assert len(looks) == lucky + 1


def test_who_fails_without_its_kernels_has_none_to_spare():
    def fails(_samples: int, _keep: int) -> Samples:
        raise Verdict(CRASHED, "an illegal memory access")

    surprise.look(judged(lambda seed: seed in OWN), CASE, fails)


@pytest.mark.parametrize("change", [{"draws": 3}, {"delegates": ("linalg_eig",)}])
def test_where_the_answer_says_nothing_nobody_looks(change):
    trial = trial_of([CASE], 1.0)
    assert surprise.pick(trial, [CASE]) == "timed-large"
    trial.contract = replace(trial.contract, **change)
    assert surprise.pick(trial, [CASE]) == ""


def test_without_the_stage_that_proves_whose_work_it_is_nobody_looks():
    trial = trial_of([CASE], 1.0)
    trial.options = Options(stages=("load", "call", "time"))
    assert surprise.pick(trial, [CASE]) == ""


def test_others_kernels_in_a_call_among_the_timed_ones_are_forbidden():
    trial = trial_of([CASE], 1.0)
    rows = [["relu_kernel", True, True, 1, 10.0], ["vectorized_elementwise", False, True, 1, 90.0]]
    with pytest.raises(Verdict, match="own kernels took 10%") as caught:
        profiling.require_own(trial, CASE, profiling.read_activity(rows))
    assert caught.value.verdict == FORBIDDEN
    profiling.require_own(trial, CASE, profiling.read_activity(rows[:1]))
    profiling.require_own(trial, CASE, [])
