"""Products of half dtypes with long sums: PyTorch on tensor cores is off by more than a few
roundings, and what is allowed follows; narrower arithmetic still fails.

What a tensor core cuts off can't be computed here: errors of PyTorch and of honest kernels are
given as measured on an H200, those of narrower dtypes computed.
"""

import pytest
import torch

from benchmark import suite
from benchmark.suite.checks import Leaf

# PyTorch's worst error in timed cases, in roundings, and the worst of honest kernels
MEASURED = [
    ("addmm", torch.float16, 12.8, 9.0),
    ("matmul", torch.float16, 9.1, 9.1),
    ("matmul_bf16", torch.bfloat16, 9.2, 7.8),
    ("matmul_fp16", torch.float16, 14.1, 16.1),
]
TASKS = [(name, dtype) for name, dtype, *_ in MEASURED]
K = 4096


@pytest.mark.parametrize(("name", "dtype", "own", "kernel"), MEASURED)
def test_the_cap_leaves_four_times_pytorchs_error_and_room_for_kernels(name, dtype, own, kernel):
    check = suite.get(name).check
    limit = check.limit(own, dtype)
    assert limit == check.k * own + check.floor / 4
    assert kernel < limit / 2


@pytest.mark.parametrize(("name", "dtype"), TASKS)
def test_a_bad_reference_opens_the_gate_no_further(name, dtype):
    assert suite.get(name).check.limit(1000.0, dtype) == 64


def factors(dtype, seed):
    """(256, K) and (K, 256) of the spread of timed cases: magnitudes from 1/16 to 8."""
    generator = torch.Generator().manual_seed(seed)

    def mixed(*shape):
        exponent = torch.randint(-4, 4, shape, generator=generator)
        return (torch.randn(shape, generator=generator) * 2.0**exponent).to(dtype)

    return mixed(256, K), mixed(K, 256)


def worst(name, dtype, seed, candidate):
    """A candidate's worst error in roundings, against the product of the same factors."""
    left, right = factors(dtype, seed)
    wide = left.double(), right.double()
    truth, size = wide[0] @ wide[1], wide[0].abs() @ wide[1].abs()
    leaf = Leaf("output", truth.to(dtype), truth, size)
    got = candidate(left, right).to(dtype)
    return max(error for error, *_ in suite.get(name).check.errors(leaf, got))


def in_float32(left, right):
    return left.float() @ right.float()


def split(left, right):
    """Sums of 512 terms added in float32."""
    parts = zip(left.float().split(512, 1), right.float().split(512, 0), strict=True)
    return sum(a @ b for a, b in parts)


def parts_rounded(left, right):
    """Sums of 512 terms, each rounded to the factors' dtype before it is added."""
    parts = zip(left.float().split(512, 1), right.float().split(512, 0), strict=True)
    return sum((a @ b).to(left.dtype).float() for a, b in parts)


def added_up_narrow(left, right):
    """A sum that is rounded to the factors' dtype after every 32 terms."""
    total = torch.zeros(left.shape[0], right.shape[1], dtype=left.dtype)
    for a, b in zip(left.float().split(32, 1), right.float().split(32, 0), strict=True):
        total = (total.float() + a @ b).to(left.dtype)
    return total


def in_float8(left, right):
    """Factors with the three digits of float8; two tensors of scales let it hold them."""
    return in_float32(left.to(torch.float8_e4m3fn), right.to(torch.float8_e4m3fn))


def in_bfloat16(left, right):
    return in_float32(left.bfloat16(), right.bfloat16())


@pytest.mark.parametrize(("name", "dtype"), TASKS)
@pytest.mark.parametrize("candidate", [in_float32, split])
def test_sums_in_float32_are_off_by_a_rounding(name, dtype, candidate):
    for seed in range(5):
        assert worst(name, dtype, seed, candidate) < 1.5


@pytest.mark.parametrize(("name", "dtype"), TASKS)
@pytest.mark.parametrize("candidate", [parts_rounded, added_up_narrow, in_float8])
def test_narrower_arithmetic_is_off_by_more_than_ever_allowed(name, dtype, candidate):
    check = suite.get(name).check
    for seed in range(5):
        assert worst(name, dtype, seed, candidate) > 2 * check.limit(1000.0, dtype)


@pytest.mark.parametrize(("name", "dtype"), [one for one in TASKS if one[1] is torch.float16])
def test_so_are_factors_in_bfloat16_where_float16_is_asked_for(name, dtype):
    for seed in range(5):
        assert worst(name, dtype, seed, in_bfloat16) > suite.get(name).check.limit(1000.0, dtype)
