"""The judge on a real board: short; `python -m tests.gpu.selftest` is the long one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from runner.engine import Candidate, Judge, Limits, Options, find_devices
from tests.gpu.sources import as_baseline, with_wrong_constant

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]
RELU = (ROOT / "samples" / "plain" / "Activation" / "relu.py").read_text()

EXPLOITS = ROOT / "tests" / "exploits" / "gpu"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(find_devices("cuda")[0], Options(trust_candidates=True)) as judge:
        yield judge


def test_a_plain_solution_passes_with_a_speedup_and_its_kernels(judge: Judge) -> None:
    report = judge.judge(Candidate("relu", RELU))
    assert (report.verdict, report.detail) == ("passed", "")
    assert report.speedup_low <= report.speedup <= report.speedup_high
    timed = [case for case in report.cases if case.kind == "timed"]
    assert timed
    assert all(case.own_share > 0.9 for case in timed)
    assert report.kernels
    assert all(kernel["registers"] > 0 and kernel["hash"] for kernel in report.kernels)
    assert not report.suspect
    json.dumps(report.to_json(), allow_nan=False)


def test_a_wrong_constant_fails(judge: Judge) -> None:
    assert judge.judge(Candidate("relu", with_wrong_constant(RELU))).verdict == "wrong-values"


def test_pytorch_itself_is_forbidden(judge: Judge) -> None:
    source = as_baseline("relu", "torch.nn.functional.relu")
    assert judge.judge(Candidate("relu", source)).verdict == "forbidden"


@pytest.mark.parametrize(("join", "seen"), [(True, True), (False, False)])
def test_a_call_that_ends_with_all_streams_is_read_without_the_host(join: bool, seen: bool) -> None:
    from runner.engine.bench import Block, Stopwatch  # needs torch's build for CUDA

    watch, aside = Stopwatch("cuda:0"), torch.cuda.Stream()
    spin = 20_000_000  # cycles: about 10 ms

    def call() -> None:
        with torch.cuda.stream(aside):
            torch.cuda._sleep(spin)

    watch.sample(call, Block(1, 100.0, join))
    torch.cuda.synchronize()
    _, start, end, _ = watch.sample(call, Block(1, 100.0, join))
    assert not aside.query(), "the host has waited for the board"
    torch.cuda.synchronize()
    assert (start.elapsed_time(end) > 5) is seen


def exploit(name: str) -> Candidate:
    """A cheat of `tests/exploits/gpu`; all of these are for relu."""
    return Candidate("relu", (EXPLOITS / f"{name}.py").read_text())


def test_work_on_a_stream_of_its_own_is_not_free(judge: Judge) -> None:
    plain, hidden = judge.judge(Candidate("relu", RELU)), judge.judge(exploit("side_stream"))
    assert hidden.verdict != "passed" or hidden.suspect or hidden.speedup < plain.speedup * 1.1


def test_the_current_stream_must_be_restored(judge: Judge) -> None:
    report = judge.judge(exploit("left_stream"))
    assert report.verdict == "call-error"
    assert "stream" in report.detail


def test_a_patched_clock_changes_nothing(judge: Judge) -> None:
    plain, patched = judge.judge(Candidate("relu", RELU)), judge.judge(exploit("patched_clock"))
    assert patched.verdict != "passed" or abs(patched.speedup / plain.speedup - 1) < 0.05


def test_stopping_the_work_in_the_timed_calls_is_found(judge: Judge) -> None:
    assert judge.judge(exploit("stops_after_calls")).verdict == "wrong-values"


@pytest.mark.parametrize(
    ("name", "verdict"), [("illegal_address", "crashed"), ("endless_kernel", "timeout")]
)
def test_a_broken_context_ends_with_its_candidate(name: str, verdict: str) -> None:
    options = Options(trust_candidates=True, limits=Limits(call=20))
    with Judge(find_devices("cuda")[0], options) as judge:
        assert judge.judge(exploit(name)).verdict == verdict
        after = judge.judge(Candidate("relu", RELU))
    assert (after.verdict, after.detail, after.suspect) == ("passed", "", False)
