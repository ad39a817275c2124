"""What goes beyond the published contract is tried and told, and decides nothing."""

import pytest

from benchmark import suite
from benchmark.vocabulary import PASSED, WRONG_VALUES
from runner.engine import Candidate, Judge, Report

COSINE = """
import os

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.cos(tl.load(x + at, mask=at < n)), mask=at < n)


def cos(input, *, out=None):
    {first}
    result = torch.empty_like(input).contiguous() if out is None else out
    kernel[(triton.cdiv(result.numel(), 1024),)](input, result, result.numel(), BLOCK=1024)
    return result
"""
AS_PUBLISHED = COSINE.format(first="pass")  # no strides, and tl.cos takes no float16


def beyond(report: Report) -> list[str]:
    return [one.message for one in report.findings if one.code == "beyond-contract"]


def test_a_kernel_written_for_the_published_contract_passes_and_is_told_its_limits(
    judge: Judge,
) -> None:
    report = judge.judge(Candidate("cos", AS_PUBLISHED))
    assert (report.verdict, report.stage, report.detail) == (PASSED, "proof", "")
    assert [one.code for one in report.findings] == ["beyond-contract"]
    (message,) = beyond(report)
    assert "small-half" in message
    assert "call-error" in message
    assert "small-strided" in message
    assert WRONG_VALUES in message
    assert {case.case for case in report.cases} == {case.name for case in suite.get("cos").cases}


@pytest.mark.parametrize(
    "first", ["if not input.is_contiguous(): os._exit(1)", "assert input.is_contiguous()"]
)
def test_not_even_the_end_of_the_process_there_decides(judge: Judge, first: str) -> None:
    report = judge.judge(Candidate("cos", COSINE.format(first=first)))
    assert (report.verdict, report.detail) == (PASSED, "")
    assert len(beyond(report)) == 1


def test_a_published_layout_decides(judge: Judge) -> None:
    """Published tests hand `scatter` an index that isn't contiguous."""
    assert "transposed" in {case.layout for case in suite.get("scatter").cases}
    assert "transposed" not in {case.layout for case in suite.get("scatter").beyond}


FLOOR = """
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.floor(tl.load(x + at, mask=at < n).to(tl.float32)), mask=at < n)


def floor(input, out=None):
    if not input.is_floating_point():
        return input.clone() if out is None else out.copy_(input)
    result = torch.empty_like(input) if out is None else out
    input = input.contiguous()
    kernel[(triton.cdiv(input.numel(), 1024),)](input, result, input.numel(), BLOCK=1024)
    return result
"""


def test_a_copy_of_an_argument_needs_no_kernel_where_it_is_the_answer(judge: Judge) -> None:
    report = judge.judge(Candidate("floor", FLOOR))
    assert (report.verdict, report.detail) == (PASSED, "")
