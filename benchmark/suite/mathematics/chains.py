"""Two functions in a row or side by side, elementwise."""

import torch

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import (
    Maker,
    dtype_named,
    elementwise_cases,
    one_tensor,
    small,
    timed,
    with_options,
)
from benchmark.suite.mathematics.domains import at_most, mostly_positive, with_output
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

mathematics = category("Math")
WITH_OUT: tuple[dict[str, object], ...] = ({}, {"out": True})


def for_exponential(make: Maker) -> Arguments:
    """A tensor whose exponential the dtype holds, infinities and NaN of `special` aside."""
    limit = 10.0 if make.case.dtype == "float16" else 80.0
    if make.case.family == "special":
        return with_output(make, make.tensor(*make.case.shape))
    return with_output(make, at_most(make, limit))


def exp_sqrt_magnitude(input, out=None):
    """|x / 2| exp(x / 2): what a rounding of the exponent does; infinite x has no rounding."""
    return (torch.exp(input / 2) * (input / 2).abs()).nan_to_num(0, 0, 0)


@mathematics(
    "exp_sqrt",
    inputs=for_exponential,
    cases=elementwise_cases(*WITH_OUT),
    check=Close(magnitude=exp_sqrt_magnitude),
    flops=per_element(6),
    mutates=("out",),
    differences=(
        "arguments stay where exp(x) is a number of the dtype: beyond, exp(x / 2) still is one, "
        "and the two published forms of the answer disagree",
    ),
)
def exp_sqrt(input, out=None):
    """The square root of exp(x), which is exp(x / 2), for each element; asked for only where exp(x)
    is a number of the dtype. Written to `out`, and returned, where given.
    """
    return torch.sqrt(torch.exp(input), out=out)


def sqrt_exp_magnitude(input, out=None):
    """sqrt(x) exp(sqrt(x)): what a rounding of the exponent does."""
    root = torch.sqrt(input)
    return (torch.exp(root) * root).nan_to_num(0, 0, 0)


@mathematics(
    "sqrt_exp",
    inputs=mostly_positive,
    cases=elementwise_cases(*WITH_OUT),
    check=Close(magnitude=sqrt_exp_magnitude, narrow_intermediates=True),
    flops=per_element(6),
    mutates=("out",),
)
def sqrt_exp(input, out=None):
    """exp(sqrt(x)) of each element; NaN where x < 0. Written to `out`, and returned, where
    given.
    """
    return torch.exp(torch.sqrt(input), out=out)


@mathematics(
    "sqrt_tanh",
    inputs=mostly_positive,
    cases=elementwise_cases(*WITH_OUT),
    check=Close(),
    flops=per_element(10),
    mutates=("out",),
    differences=("`out` is written, as its name promises; the published reference ignored it",),
)
def sqrt_tanh(input, out=None):
    """tanh(sqrt(x)) of each element, right in its own digits near 0; NaN where x < 0. Written to
    `out`, and returned, where given.
    """
    return torch.tanh(torch.sqrt(input), out=out)


def erfc_magnitude(input):
    """x^2 erfc(x): what a rounding of the exponent of exp(-x^2) does; the root has none."""
    tail = torch.erfc(input) * input.square()
    return tail.nan_to_num(0, 0, 0), torch.zeros_like(input)


@mathematics(
    "erfc_sqrt",
    inputs=one_tensor,
    cases=elementwise_cases(),
    check=Close(magnitude=erfc_magnitude),
    flops=per_element(25),
)
def erfc_sqrt(input: torch.Tensor):
    """The pair (erfc(x), sqrt(x)) of each element. erfc = 1 - erf must be right in its own digits
    where it is small; the root is NaN where x < 0.
    """
    return torch.erfc(input), torch.sqrt(input)


@mathematics(
    "rad2deg_sqrt",
    inputs=one_tensor,
    cases=elementwise_cases(),
    check=Close(),
    flops=per_element(2),
)
def rad2deg_sqrt(input: torch.Tensor):
    """The pair (180 x / pi, sqrt(x)) of each element; the root is NaN where x < 0."""
    return torch.rad2deg(input), torch.sqrt(input)


def signs_and_bits(make: Maker) -> Arguments:
    """Values that int8 holds, and a tensor of the option `kind`, int8 or bool."""
    values = at_most(make, 127.0)
    kind = dtype_named(make.case.options["kind"])
    return Arguments((values, make.tensor(*make.case.shape, dtype=kind)))


BYTES, FLAGS = {"kind": "int8"}, {"kind": "bool"}


@mathematics(
    "signbit_bitwise_and",
    inputs=signs_and_bits,
    cases=(
        with_options(small("one", "normal", n=1), **BYTES),
        with_options(small("odd", "heavy_tail", rows=37, columns=53), **BYTES),
        with_options(small("prime", "wide", n=1009), **FLAGS),
        with_options(small("scaled", "scaled", a=3, b=5, c=67), **BYTES),
        with_options(
            small("transposed", "scaled", layout="transposed", rows=33, columns=48), **FLAGS
        ),
        with_options(small("half", "scaled", "float16", rows=31, columns=65), **BYTES),
        with_options(small("ties", "ties", rows=64, columns=128), **FLAGS),
        with_options(timed("large", "scaled", rows=8192, columns=8192), **BYTES),
        with_options(timed("half", "scaled", "float16", rows=8192, columns=16384), **BYTES),
        with_options(timed("flags", "scaled", rows=8191, columns=8192), **FLAGS),
    ),
    check=Exact(),
    flops=per_element(2),
    differences=(
        "values stay within -127 to 127: a larger one has no int8, and what a cast makes of it "
        "hangs on the processor",
    ),
)
def signbit_bitwise_and(input: torch.Tensor, other: torch.Tensor):
    """The pair (sign bit of x, int8(x) & int8(y)), bool and int8. `input` is floating and is cut to
    its whole part towards zero; `other` is int8 or bool, true counting as 1.
    """
    return torch.signbit(input), torch.bitwise_and(input.to(torch.int8), other.to(torch.int8))
