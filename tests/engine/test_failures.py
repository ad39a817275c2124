"""Candidates that use up what the host has, or stay behind: each ends in its verdict, and whoever
comes next is judged as if nothing had been.
"""

import pytest

from benchmark.vocabulary import OUT_OF_MEMORY, PASSED
from runner.engine import Candidate, Judge, Limits
from tests.engine.conftest import ROOT, candidate, judging_with

EXPLOITS = ROOT / "tests" / "exploits"
PLAIN = (ROOT / "samples" / "plain" / "Activation" / "relu.py").read_text()
TAKES_MEMORY = (
    PLAIN
    + """

_relu = relu
held = []


def relu(input, inplace=False):
    while len(held) < 4096:
        held.append(bytearray(b"x") * (16 << 20))
    return _relu(input, inplace)
"""
)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("fork_bomb", PASSED),
        ("fills_the_disk", PASSED),
        ("floods_the_log", PASSED),
        ("poisons_caches", PASSED),
        ("outlives_its_judge", PASSED),
        ("kills_parents", PASSED),
        ("exit_in_call", "crashed"),
        ("eats_memory", OUT_OF_MEMORY),
    ],
)
def test_the_next_candidate_is_judged_as_if_nothing_had_been(
    judge: Judge, name: str, verdict: str
) -> None:
    assert judge.judge(candidate(EXPLOITS / f"{name}.py", "relu")).verdict == verdict
    after = judge.judge(Candidate("relu", PLAIN))
    assert (after.verdict, after.detail, after.findings, after.suspect) == (PASSED, "", [], False)
    assert after.log_tail == ""


def test_memory_ends_in_its_verdict(judge: Judge) -> None:
    """Memory that is really used, little by little, up to 64 GiB."""
    with judging_with(judge, limits=Limits(memory=4 << 30, answer=1 << 30)):
        assert judge.judge(Candidate("relu", TAKES_MEMORY)).verdict == OUT_OF_MEMORY
        assert judge.judge(Candidate("relu", PLAIN)).verdict == PASSED
