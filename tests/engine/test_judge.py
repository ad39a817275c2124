"""The judge's own conduct: failures by fault, what a device can't, processes, secrets."""

import contextlib
import json
import os
import secrets
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmark.vocabulary import CALL_ERROR, LOAD_ERROR, PASSED, TIMEOUT, WRONG_VALUES
from runner.engine import INTERPRETER, Candidate, Declined, Judge, JudgeFailure, Limits, Options
from runner.engine.workers import Worker
from tests.engine.conftest import ROOT, comes_true, hurried, judging_with

RELU = (ROOT / "samples" / "plain" / "Activation" / "relu.py").read_text()
SLEEPERS = "outlives_its_judge"


def exploit(name: str) -> Candidate:
    return Candidate("relu", (ROOT / "tests" / "exploits" / f"{name}.py").read_text())


def test_unknown_task_is_declined_with_a_near_miss(judge: Judge) -> None:
    with pytest.raises(Declined, match="relu"):
        judge.judge(Candidate("rellu", RELU))


def test_a_task_in_bfloat16_is_declined_on_the_interpreter(judge: Judge) -> None:
    with pytest.raises(Declined, match="needs a GPU"):
        judge.judge(Candidate("gelu_bf16", RELU))


def test_a_candidate_that_needs_a_gpu_is_declined_on_the_interpreter(judge: Judge) -> None:
    source = RELU + "\n\ndef relu(input, inplace=False):\n    raise RuntimeError('no CUDA here')\n"
    with pytest.raises(Declined, match="needs a GPU"):
        judge.judge(Candidate("relu", source))


def test_a_candidate_that_asks_for_cuda_gets_something_that_looks_like_it(judge: Judge) -> None:
    asking = """
import triton

_relu = relu


def relu(input, inplace=False):
    assert input.is_cuda and input.device.type == "cuda" and torch.cuda.is_available()
    with torch.cuda.device(input.device):
        torch.zeros(3, device="cuda").cuda().to(input.device)
        torch.cuda.synchronize()
    count = triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]
    assert count == torch.cuda.get_device_properties(input.device).multi_processor_count
    return _relu(input, inplace)
"""
    assert judge.judge(Candidate("relu", RELU + asking)).verdict == PASSED


AUTOTUNED = """
import torch
import triton
import triton.language as tl


@triton.autotune(configs=[triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x < 0, 0.0, x), mask=offsets < n)


def relu(input, inplace=False):
    x = input.contiguous()
    y = torch.empty_like(x)
    if x.numel():
        relu_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return input.copy_(y) if inplace else y
"""


def test_a_bool_argument_is_no_fault(judge: Judge) -> None:
    source = AUTOTUNED.replace("x_ptr, y_ptr, n, BLOCK", "x_ptr, y_ptr, n, keep, BLOCK")
    source = source.replace("x < 0, 0.0, x)", "(x < 0) & keep, 0.0, x)")
    report = judge.judge(Candidate("relu", source.replace("x.numel())\n", "x.numel(), True)\n")))
    assert (report.verdict, report.detail) == (PASSED, "")


def test_an_autotuned_kernel_takes_its_first_configuration(judge: Judge) -> None:
    report = judge.judge(Candidate("relu", AUTOTUNED))
    assert (report.verdict, report.detail) == (PASSED, "")


@pytest.mark.parametrize(
    ("source", "verdict", "words"),
    [
        ("x = '\ud800'", LOAD_ERROR, "UTF-8"),
        ("x = 1\n" * 100_000, LOAD_ERROR, "bytes of source"),
        ("(" * 5000, LOAD_ERROR, "line 1|parsed"),
        ("def other(): pass", LOAD_ERROR, "no top-level function `relu`"),
        (RELU + "\n\nrelu = 3\n", LOAD_ERROR, "no function after the import"),
        (RELU + "\n\nimport nothing_of_the_kind\n", LOAD_ERROR, "nothing_of_the_kind"),
    ],
    ids=["surrogate", "size", "nesting", "entry", "overwritten", "import"],
)
def test_what_cannot_be_loaded_says_why(
    judge: Judge, source: str, verdict: str, words: str
) -> None:
    report = judge.judge(Candidate("relu", source))
    assert report.verdict == verdict
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(report.detail)


def test_kernel_function_is_an_entry_point_too(judge: Judge) -> None:
    source = RELU.replace("def relu(", "def kernel_function(")
    assert judge.judge(Candidate("relu", source)).verdict == PASSED


def test_authors_tests_below_the_separator_do_not_run(judge: Judge) -> None:
    source = RELU + "\n" + "#" * 146 + "\nraise SystemExit('a test of my own')\n"
    assert judge.judge(Candidate("relu", source)).verdict == PASSED


def test_an_exception_is_told_with_type_message_and_line(judge: Judge) -> None:
    source = RELU + "\n\ndef relu(input, inplace=False):\n    return {}['absent']\n"
    report = judge.judge(Candidate("relu", source))
    assert report.verdict == CALL_ERROR
    assert "KeyError" in report.detail
    trace = next(finding for finding in report.findings if finding.code == "traceback")
    assert "return {}['absent']" in trace.message


def test_messages_name_no_folder_of_the_host(judge: Judge) -> None:
    source = "from triton.language.math import no_such_thing\n" + RELU
    report = judge.judge(Candidate("relu", source)).to_json()
    assert report["verdict"] == LOAD_ERROR
    assert "(triton/language/math.py)" in report["detail"]
    told = json.dumps([report["detail"], report["findings"], report["log_tail"]])
    for place in (sysconfig.get_path("purelib"), sysconfig.get_path("stdlib"), str(ROOT)):
        assert place not in told


def test_a_timeout_names_its_stage_and_limit(judge: Judge) -> None:
    with hurried(judge):
        report = judge.judge(exploit("endless"))
        assert f"{judge.options.limits.call:g} s" in report.detail
    assert (report.verdict, report.stage) == (TIMEOUT, "call")


def test_seeds_are_secret_and_fresh(judge: Judge) -> None:
    source = (
        RELU
        + "\n_relu = relu\n\n\ndef relu(input, inplace=False):\n"
        + "    print(float(input.double().sum()))\n"
    )
    source += "    return _relu(input, inplace)\n"
    first, second = (judge.judge(Candidate("relu", source)).log_tail for _ in range(2))
    sums = [set(log.split()) - {"0.0", "nan", "inf", "-inf"} for log in (first, second)]
    assert len(sums[0]) > 5
    assert len(sums[0] & sums[1]) <= 2, "drawn from the same seeds"


def test_several_threads_share_a_judge(judge: Judge) -> None:
    verdicts: dict[str, str] = {}

    def judge_one(name: str) -> None:
        verdicts[name] = judge.judge(exploit(name)).verdict

    names = ("zeroed_inputs", "decoy", "exit_in_call", "floods_the_log")
    threads = [threading.Thread(target=judge_one, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == {
        "zeroed_inputs": "input-mutated",
        "decoy": "forbidden",
        "exit_in_call": "crashed",
        "floods_the_log": "passed",
    }


def test_stages_can_be_chosen(judge: Judge) -> None:
    with judging_with(judge, stages=("load", "call")):
        report = judge.judge(exploit("decoy"))
    assert (report.verdict, report.stage) == (PASSED, "call")
    assert {case.state for case in report.cases if case.kind == "small"} <= {
        "not-run",
        "not-judgeable",
    }
    with pytest.raises(ValueError, match="unknown stages"):
        Options(stages=("guess",))


MARKED = """import ctypes
ctypes.CDLL(None).prctl(15, b"{mark}")  # PR_SET_NAME: what it forks has the name too
"""


def test_nothing_of_a_candidate_outlives_its_run(judge: Judge) -> None:
    mark = f"kbx-{secrets.token_hex(5)}"
    source = MARKED.format(mark=mark) + exploit(SLEEPERS).source
    seen: list[int] = []

    def look(stage: str, _done: int, _total: int) -> None:
        if stage == "check":
            seen.extend(processes_named(mark))

    judge.judge(Candidate("relu", source), progress=look)
    assert len(set(seen)) >= 2, "neither the candidate nor what it left behind was seen at all"
    assert comes_true(lambda: not processes_named(mark))


def processes_named(name: str) -> list[int]:
    """Those that carry a name of their own, wherever they were reparented to."""
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().strip() == name:
                found.append(int(path.parent.name))
    return found


SURROUNDINGS = """
import os
import sys

told = [*sys.argv, *sys.orig_argv, *sys.path, *os.environ, *os.environ.values(), os.getcwd()]
with open("/proc/self/cmdline") as line:
    told.append(line.read().replace("\\0", " "))
print(*told, sep="\\n")
"""


def test_a_candidate_is_not_told_where_the_judge_lies_nor_what_it_is_called(judge: Judge) -> None:
    """Or one that works only where a path says `test` or `check` passes there."""
    lines = judge.judge(Candidate("relu", RELU + SURROUNDINGS)).log_tail.splitlines()
    assert lines[:2] == ["candidate", "candidate"]
    assert lines[-1].strip() == "candidate"
    outside = [line for line in lines if not line.startswith(sys.prefix)]
    assert not [line for line in outside if str(ROOT) in line or "nursery" in line]


def test_a_candidate_sees_no_secret_of_its_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KBX_SECRET_FOR_TESTS", "swordfish")
    limits = Limits(log=1 << 20)
    with Judge(INTERPRETER, Options(trust_candidates=True, limits=limits)) as judge:
        report = judge.judge(exploit("looks_around"))
    assert report.verdict == WRONG_VALUES
    assert "PATH" in report.log_tail
    assert "swordfish" not in report.log_tail


OWN_PROCESSES: dict[str, Callable[[Judge], Worker | None]] = {
    "referee": lambda judge: judge._referees[0],
    "nursery": lambda judge: judge._nursery,
}


@pytest.mark.parametrize("roles", [["referee"], ["nursery"], ["referee", "nursery"]])
def test_when_our_own_process_dies_it_is_our_failure_and_the_next_run_works(
    judge: Judge, roles: list
) -> None:
    def kill_it(stage: str, _done: int, _total: int) -> None:
        if stage == "check":
            for role in roles:
                os.kill(OWN_PROCESSES[role](judge)._process.pid, signal.SIGKILL)

    with pytest.raises(JudgeFailure, match=r"referee|nursery"):
        judge.judge(Candidate("relu", RELU), progress=kill_it)
    assert judge.judge(Candidate("relu", RELU)).verdict == PASSED
