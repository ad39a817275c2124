"""Every verdict that an interpreter can reach, reached: `samples/verdicts/<verdict>/<task>.py`."""

import contextlib
import json
from pathlib import Path

import pytest

from benchmark.vocabulary import IMPOSSIBLE, PASSED, TIMEOUT, UNSTABLE, VERDICTS
from runner.engine import Judge
from tests.engine.conftest import ROOT, candidate, hurried

SAMPLES = sorted((ROOT / "samples" / "verdicts").rglob("*.py"))
PLAIN = (
    "Activation/relu",
    "MatrixMultiply/matmul",
    "Reduce/sum",
    "Random/rand",
    "LinearAlgebra/cholesky",
)
NEEDS_A_CLOCK = {UNSTABLE, IMPOSSIBLE}


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_sample_ends_in_its_verdict(judge: Judge, path: Path) -> None:
    with hurried(judge) if path.parent.name == TIMEOUT else contextlib.nullcontext():
        report = judge.judge(candidate(path, path.stem))
    assert (report.verdict, report.detail) == (path.parent.name, report.detail)
    assert report.detail
    json.dumps(report.to_json(), allow_nan=False)


def test_samples_show_every_verdict_that_needs_no_clock() -> None:
    assert {path.parent.name for path in SAMPLES} == set(VERDICTS) - NEEDS_A_CLOCK - {PASSED}


def test_samples_fit_into_one_submission() -> None:
    names = [path.stem for path in SAMPLES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", PLAIN)
def test_plain_solution_passes_with_nothing_held_against_it(judge: Judge, name: str) -> None:
    path = ROOT / "samples" / "plain" / f"{name}.py"
    report = judge.judge(candidate(path, path.stem))
    assert (report.verdict, report.detail) == (PASSED, "")
    assert report.findings == []
    judged = {case.case: case.state for case in report.cases if case.kind == "small"}
    assert set(judged.values()) <= {"passed", "not-judgeable"}
    assert "passed" in judged.values()
    assert all(case.candidate_ms is None for case in report.cases)
    assert report.kernels
    assert all(kernel["calls"] > 0 for kernel in report.kernels)
