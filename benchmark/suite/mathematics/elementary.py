"""Elementary functions of one tensor, elementwise."""

import torch

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import (
    Maker,
    elementwise_cases,
    one_tensor,
    small,
    timed,
    with_options,
)
from benchmark.suite.mathematics.domains import mostly_positive, signed_unit, with_output
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

mathematics = category("Math")
WITH_OUT: tuple[dict[str, object], ...] = ({}, {"out": True})
INTEGERS = small("integers", "integers", "int64", rows=19, columns=45)


def with_bool_output(make: Maker) -> Arguments:
    """One tensor; `out`, where asked for, is of booleans."""
    return with_output(make, make.tensor(*make.case.shape), dtype=torch.bool)


def one(input, *args, **kwargs):
    """1: the largest of the terms that make a result small by cancelling."""
    return torch.ones_like(input)


@mathematics(
    "abs",
    inputs=one_tensor,
    cases=(*elementwise_cases(*WITH_OUT), INTEGERS),
    check=Exact(),
    flops=per_element(1),
    mutates=("out",),
)
def abs(input_tensor: torch.Tensor, out: torch.Tensor | None = None):
    """Absolute value |x| of each element; NaN stays NaN. Written to `out`, and returned, where
    given. Output: shape and dtype of the input, which is floating or int64.
    """
    return torch.abs(input_tensor, out=out)


@mathematics(
    "floor",
    inputs=one_tensor,
    cases=(*elementwise_cases(*WITH_OUT), INTEGERS),
    copies=(INTEGERS.name,),
    check=Exact(),
    flops=per_element(1),
    mutates=("out",),
)
def floor(input: torch.Tensor, out: torch.Tensor | None = None):
    """The largest integer not above x, in the dtype of x; NaN and infinities stay. Integers (int64)
    are returned as they are. Written to `out`, and returned, where given.
    """
    return torch.floor(input, out=out)


@mathematics(
    "trunc",
    inputs=one_tensor,
    cases=elementwise_cases(*WITH_OUT),
    check=Exact(),
    flops=per_element(1),
    mutates=("out",),
)
def trunc(input: torch.Tensor, out: torch.Tensor | None = None):
    """x without its fraction: rounded towards zero, in the dtype of x; NaN and infinities stay.
    Written to `out`, and returned, where given.
    """
    return torch.trunc(input, out=out)


@mathematics(
    "signbit",
    inputs=with_bool_output,
    cases=elementwise_cases(*WITH_OUT),
    check=Exact(),
    flops=per_element(1),
    mutates=("out",),
)
def signbit(input: torch.Tensor, out: torch.Tensor | None = None):
    """Whether the sign bit of x is set: true for negative values and for -0.0. Output: bool, shape
    of the input; written to `out` where given.
    """
    return torch.signbit(input, out=out)


@mathematics(
    "reciprocal",
    inputs=one_tensor,
    cases=elementwise_cases(*WITH_OUT),
    check=Close(),
    flops=per_element(1),
    mutates=("out",),
)
def reciprocal(input: torch.Tensor, out: torch.Tensor | None = None):
    """1 / x of each element; infinite, with the sign of x, at 0 and -0. Written to `out` where
    given.
    """
    return torch.reciprocal(input, out=out)


@mathematics(
    "rsqrt",
    inputs=mostly_positive,
    cases=elementwise_cases(*WITH_OUT),
    check=Close(),
    flops=per_element(2),
    mutates=("out",),
)
def rsqrt(input: torch.Tensor, out: torch.Tensor | None = None):
    """1 / sqrt(x) of each element; NaN where x < 0, infinite at 0, 0 at infinity. Written to `out`
    where given.
    """
    return torch.rsqrt(input, out=out)


@mathematics(
    "log",
    inputs=mostly_positive,
    cases=elementwise_cases(*WITH_OUT),
    check=Close(),
    flops=per_element(20),
    mutates=("out",),
)
def log(input: torch.Tensor, out: torch.Tensor | None = None):
    """Natural logarithm of each element; NaN where x < 0, -inf at 0. Near 1 the result is small and
    must still be right in its own digits. Written to `out` where given.
    """
    return torch.log(input, out=out)


@mathematics(
    "log1p",
    inputs=mostly_positive,
    cases=(
        small("one", "normal", n=1),
        small("odd", "tiny", rows=37, columns=53),
        with_options(small("prime", "heavy_tail", n=1009), out=True),
        small("special", "special", a=3, b=5, c=67),
        with_options(small("transposed", "scaled", layout="transposed", rows=33, columns=48)),
        small("half", "normal", "float16", rows=31, columns=65),
        with_options(small("tiles", "mixed", rows=64, columns=128), out=True),
        small("negative", "ties", layout="strided", rows=9, columns=129),
        timed("large", "mixed", rows=8192, columns=8192),
        timed("half", "mixed", "float16", rows=8192, columns=8192),
        with_options(timed("tiny", "tiny", rows=4099, columns=8191), out=True),
    ),
    check=Close(),
    flops=per_element(20),
    mutates=("out",),
)
def log1p(input: torch.Tensor, out: torch.Tensor | None = None):
    """log(1 + x) of each element, right in its own digits for small x too; NaN where x < -1, -inf
    at -1. Written to `out` where given.
    """
    return torch.log1p(input, out=out)


@mathematics(
    "cos",
    inputs=one_tensor,
    cases=(
        *elementwise_cases()[:7],
        small("strided", "large", layout="strided", rows=9, columns=129),
        *elementwise_cases()[8:],
    ),
    check=Close(magnitude=one),
    flops=per_element(20),
)
def cos(input_tensor: torch.Tensor):
    """Cosine of each element, in radians, for arguments up to some hundreds; NaN at infinities."""
    return torch.cos(input_tensor)


@mathematics(
    "asin",
    inputs=signed_unit,
    cases=(
        small("one", "unit", n=1),
        small("odd", "unit", rows=37, columns=53),
        small("outside", "normal", n=1009),
        small("special", "special", a=3, b=5, c=67),
        small("transposed", "unit", layout="transposed", rows=33, columns=48),
        small("half", "unit", "float16", rows=31, columns=65),
        small("tiny", "tiny", rows=64, columns=128),
        small("ends", "ties", layout="strided", rows=9, columns=129),
        timed("large", "unit", rows=8192, columns=8192),
        timed("half", "unit", "float16", rows=8192, columns=8192),
        timed("odd", "unit", rows=4099, columns=8191),
    ),
    check=Close(),
    flops=per_element(20),
)
def asin(input_tensor: torch.Tensor):
    """Arc sine of each element, from -pi/2 to pi/2; NaN outside [-1, 1]. Anything but a tensor
    raises ValueError.
    """
    if not isinstance(input_tensor, torch.Tensor):
        raise ValueError("asin takes a tensor")
    return torch.asin(input_tensor)


@mathematics(
    "erf",
    inputs=one_tensor,
    cases=(
        *elementwise_cases()[:6],
        small("tiny", "tiny", rows=64, columns=128),
        *elementwise_cases()[7:],
    ),
    check=Close(),
    flops=per_element(20),
)
def erf(input_tensor: torch.Tensor):
    """Error function 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x, right in its own
    digits near 0.
    """
    return torch.erf(input_tensor)


def open_unit(make: Maker) -> Arguments:
    """Uniform on [0, 1) for the family `unit`; the other families stay, with NaN answers unless
    clamped.
    """
    return with_output(make, make.tensor(*make.case.shape))


# Powers of two: 1 - eps is then a number of the dtype. At the published 1e-6 it isn't, and the
# logit of clamped elements would hang on how 1 - eps is rounded (3 % of 1e-6 in float32).
EPS, HALF_EPS = 2.0**-20, 2.0**-8


@mathematics(
    "logit",
    inputs=open_unit,
    cases=(
        small("one", "unit", n=1),
        small("odd", "unit", rows=37, columns=53),
        with_options(small("clamped", "normal", n=1009), eps=EPS, out=True),
        small("special", "special", a=3, b=5, c=67),
        with_options(
            small("transposed", "unit", layout="transposed", rows=33, columns=48), eps=EPS
        ),
        with_options(small("half", "unit", "float16", rows=31, columns=65), eps=HALF_EPS),
        with_options(small("tiles", "unit", rows=64, columns=128), out=True),
        with_options(small("ends", "ties", layout="strided", rows=9, columns=129), eps=0.125),
        timed("large", "unit", rows=8192, columns=8192),
        with_options(timed("half", "unit", "float16", rows=8192, columns=8192), eps=HALF_EPS),
        with_options(timed("odd", "unit", rows=4099, columns=8191), eps=EPS, out=True),
    ),
    check=Close(magnitude=one, narrow_intermediates=True),
    flops=per_element(24),
    mutates=("out",),
    differences=(
        "`eps` is a power of two near the published 1e-6, so that 1 - eps is a number of the "
        "dtype: else the clamped answers hang on its rounding",
    ),
)
def logit(input: torch.Tensor, eps: float | None = None, out: torch.Tensor | None = None):
    """log(x / (1 - x)) of each element, x first clamped to [eps, 1 - eps] where `eps` is given.
    Without it: NaN outside [0, 1], -inf at 0, inf at 1. Written to `out` where given.
    """
    return torch.logit(input, eps=eps, out=out)
