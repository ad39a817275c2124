"""Arithmetic of two operands: tensors that broadcast, or a tensor and a number."""

import torch

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, dtype_named, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

mathematics = category("Math")
SHAPING = ("out", "other", "shared", "fewer", "other_dtype")


def second_shape(make: Maker) -> list[int]:
    """The case's shape without the first `fewer` dimensions, of size 1 in those `shared`."""
    options = make.case.options
    shared = options.get("shared", ())
    shape = [1 if d in shared else size for d, size in enumerate(make.case.shape)]
    return shape[options.get("fewer", 0) :]


def second_operand(make: Maker) -> torch.Tensor | float:
    """The number of the option `other`, or a tensor, of `other_dtype` where that is given."""
    options = make.case.options
    if "other" in options:
        return options["other"]
    dtype = dtype_named(options.get("other_dtype", make.case.dtype))
    return make.tensor(*second_shape(make), dtype=dtype)


def operation(make: Maker, *args: object) -> Arguments:
    """The operands and the options that are arguments; `out` where asked for."""
    keywords = make.options(*SHAPING)
    if make.case.options.get("out"):
        keywords["out"] = make.out(*make.case.shape)
    return Arguments(args, keywords)


def two_operands(make: Maker) -> Arguments:
    """A tensor of the case's shape and the second operand."""
    return operation(make, make.tensor(*make.case.shape), second_operand(make))


def sum_magnitude(input, other, alpha=1, out=None):
    """|a| + |alpha b| behind each element."""
    return input.abs() + (torch.as_tensor(other, device=input.device) * alpha).abs()


SUM_CASES = (
    small("one", "normal", n=1),
    with_options(small("odd", "heavy_tail", rows=37, columns=53), alpha=0.5),
    with_options(small("number", "wide", n=1009), other=2.0, alpha=0.5),
    small("special", "special", a=3, b=5, c=67),
    with_options(small("transposed", "scaled", layout="transposed", rows=33, columns=48), alpha=-3),
    with_options(small("half", "normal", "float16", rows=31, columns=65), alpha=2),
    with_options(small("rows", "mixed", rows=64, columns=128), shared=[0], out=True, alpha=1.75),
    with_options(small("columns", "mixed", a=5, b=19, c=33), shared=[2], fewer=1),
    with_options(small("integers", "integers", "int32", rows=19, columns=45), alpha=3),
    small("strided", "shifted", layout="strided", rows=9, columns=129),
    timed("large", "mixed", rows=8192, columns=8192),
    with_options(timed("half", "mixed", "float16", rows=8192, columns=8192), alpha=0.5),
    with_options(timed("rows", "mixed", rows=8191, columns=8192), shared=[0], alpha=2.5, out=True),
)


@mathematics(
    "add",
    inputs=two_operands,
    cases=SUM_CASES,
    check=Close(magnitude=sum_magnitude),
    flops=per_element(2),
    mutates=("out",),
)
def add(input, other, alpha=1, out=None):
    """input + alpha * other; `other` is a tensor that broadcasts with `input` or a number. Output:
    the dtype of the operands (float32, float16, int32); written to `out` where given.
    """
    return torch.add(input, other, alpha=alpha, out=out)


@mathematics(
    "sub",
    inputs=two_operands,
    cases=SUM_CASES,
    check=Close(magnitude=sum_magnitude),
    flops=per_element(2),
    mutates=("out",),
)
def sub(
    input: torch.Tensor,
    other: torch.Tensor,
    *,
    alpha: float = 1,
    out: torch.Tensor | None = None,
):
    """input - alpha * other; `other` is a tensor that broadcasts with `input` or a number. Output:
    the dtype of the operands (float32, float16, int32); written to `out` where given.
    """
    return torch.sub(input, other, alpha=alpha, out=out)


def product_magnitude(input, other, out=None):
    """|a||b|: parts of a complex product are small differences of products of this size."""
    return input.abs() * torch.as_tensor(other, device=input.device).abs()


@mathematics(
    "mul",
    inputs=two_operands,
    cases=(
        small("one", "normal", n=1),
        small("odd", "heavy_tail", rows=37, columns=53),
        with_options(small("number", "wide", n=1009), other=2.5),
        small("special", "special", a=3, b=5, c=67),
        with_options(small("rows", "mixed", rows=64, columns=128), shared=[0], out=True),
        small("half", "normal", "float16", layout="transposed", rows=31, columns=65),
        with_options(small("integers", "integers", "int64", a=7, b=19, c=45), shared=[1], fewer=1),
        with_options(small("promoted", "mixed", "int64", n=777), other_dtype="float32"),
        small("complex", "normal", "complex64", rows=19, columns=45),
        small("strided", "shifted", layout="strided", rows=9, columns=129),
        timed("large", "mixed", rows=8192, columns=8192),
        timed("half", "mixed", "float16", rows=8192, columns=8192),
        with_options(timed("rows", "mixed", "float16", rows=16384, columns=8191), shared=[0]),
    ),
    check=Close(magnitude=product_magnitude),
    flops=per_element(1),
    mutates=("out",),
    differences=(
        "complex products have a tolerance as real ones: the published test compared them with "
        "none, though the order of a complex product's four is free",
    ),
)
def mul(input, other, out=None):
    """input * other; `other` is a tensor that broadcasts with `input` or a number. Output: the
    common dtype: int64 times float32 is float32, complex64 stays complex64. Written to `out` where
    given.
    """
    return torch.mul(input, other, out=out)


def quotient_operands(make: Maker) -> Arguments:
    """Two operands; with a rounding mode whole numbers, the divisor one of +-1 to 8.

    So that no quotient is a rounding away from the next whole number: its floor would hang on it.
    """
    if not make.case.options.get("rounding_mode"):
        return two_operands(make)
    whole = make.tensor(*make.case.shape, family="integers").mul_(125)
    whole.add_(make.tensor(*make.case.shape, family="integers"))
    divisor = make.tensor(*second_shape(make), family="integers")
    return operation(make, whole, divisor.masked_fill_(divisor == 0, 7))


@mathematics(
    "div",
    inputs=quotient_operands,
    cases=(
        small("one", "normal", n=1),
        small("odd", "heavy_tail", rows=37, columns=53),
        with_options(small("number", "wide", n=1009), other=3.0),
        small("special", "special", a=3, b=5, c=67),
        with_options(small("floor", "integers", rows=33, columns=48), rounding_mode="floor"),
        with_options(
            small("trunc", "integers", layout="transposed", rows=33, columns=48),
            rounding_mode="trunc",
        ),
        small("half", "normal", "float16", layout="strided", rows=31, columns=65),
        with_options(small("rows", "mixed", rows=64, columns=128), shared=[0], out=True),
        with_options(
            small("columns", "integers", a=5, b=19, c=33),
            shared=[2],
            fewer=1,
            rounding_mode="floor",
            out=True,
        ),
        timed("large", "mixed", rows=8192, columns=8192),
        timed("half", "mixed", "float16", rows=8192, columns=8192),
        with_options(timed("floor", "integers", rows=8191, columns=8192), rounding_mode="floor"),
    ),
    check=Close(),
    flops=per_element(1),
    mutates=("out",),
    differences=(
        "the rounding modes, never asked for in the published test, are, on whole numbers: "
        "elsewhere a quotient's floor may hang on a rounding",
    ),
)
def div(input, other, rounding_mode=None, out=None):
    """input / other, rounded towards zero (`trunc`) or down (`floor`) on request; `other` is a
    tensor that broadcasts with `input` or a number. x / 0 is infinite, 0 / 0 NaN. Output: the dtype
    of the operands; written to `out` where given.
    """
    return torch.div(input, other, rounding_mode=rounding_mode, out=out)


def power_operands(make: Maker) -> Arguments:
    """A base and an exponent, a number or a tensor; bases are positive but for whole exponents and
    the families `special` and `ties`.
    """
    base = make.tensor(*make.case.shape)
    exponent = make.case.options.get("other")
    whole = exponent is not None and exponent == int(exponent)
    if not whole and make.case.family not in ("special", "ties", "integers"):
        base.abs_()
    return operation(make, base, second_operand(make))


def power_magnitude(input_tensor, exponent, out=None):
    """|y e log x|: what a rounding of e log x does to y = exp(e log x)."""
    power = torch.pow(input_tensor.abs(), exponent)
    logarithm = exponent * input_tensor.abs().log()
    return (power * logarithm.abs()).nan_to_num(0, 0, 0)


@mathematics(
    "pow",
    inputs=power_operands,
    cases=(
        with_options(small("one", "normal", n=1), other=3.0),
        with_options(small("square", "wide", rows=37, columns=53), other=2.0),
        with_options(small("cube", "scaled", n=1009), other=3.0, out=True),
        with_options(small("root", "special", a=3, b=5, c=67), other=0.5),
        with_options(
            small("inverse", "mixed", layout="transposed", rows=33, columns=48), other=-0.5
        ),
        with_options(small("half", "normal", "float16", rows=31, columns=65), other=2),
        small("tensor", "normal", rows=64, columns=128),
        small("whole", "integers", rows=19, columns=45),
        with_options(small("rows", "ties", a=5, b=19, c=33), shared=[2], fewer=1, out=True),
        with_options(small("minus", "shifted", layout="strided", rows=9, columns=129), other=-3.0),
        with_options(timed("square", "mixed", rows=8192, columns=8192), other=2),
        with_options(timed("half", "mixed", "float16", rows=8192, columns=8192), other=1.5),
        timed("tensor", "normal", rows=8191, columns=8192),
    ),
    check=Close(magnitude=power_magnitude),
    flops=per_element(20),
    mutates=("out",),
)
def pow(input_tensor, exponent, out=None):
    """Each element to the power of `exponent`, a number or a tensor that broadcasts. x^0 is 1, a
    negative base has NaN but for whole exponents, 0 has infinity for negative ones. Output: the
    dtype of the base; written to `out` where given.
    """
    return torch.pow(input_tensor, exponent, out=out)


def integer_operands(make: Maker) -> Arguments:
    """Two tensors of integers from -100 to 99, or of booleans; the second broadcasts."""
    return operation(make, make.tensor(*make.case.shape), second_operand(make))


@mathematics(
    "bitwise_and",
    inputs=integer_operands,
    cases=(
        small("one", "integers", "int32", n=1),
        small("odd", "integers", "int32", rows=37, columns=53),
        small("booleans", "integers", "bool", n=1009),
        with_options(small("scalar", "integers", "int32", n=511), fewer=1),
        small("transposed", "integers", "int32", layout="transposed", rows=33, columns=48),
        small("wide", "integers", "int64", rows=31, columns=65),
        with_options(small("rows", "integers", "int32", rows=64, columns=128), fewer=1, out=True),
        with_options(small("bytes", "integers", "int8", a=5, b=19, c=33), shared=[0, 2]),
        timed("large", "integers", "int32", rows=8192, columns=8192),
        timed("booleans", "integers", "bool", rows=16384, columns=8192),
        with_options(timed("rows", "integers", "int32", rows=8191, columns=8192), shared=[0]),
    ),
    check=Exact(),
    flops=per_element(1),
    mutates=("out",),
)
def bitwise_and(input, other, out=None):
    """input & other, bit by bit, logical for booleans; `other` is a tensor that broadcasts, perhaps
    0-dimensional. Output: the dtype of the operands (integers or bool); written to `out` where
    given.
    """
    return torch.bitwise_and(input, other, out=out)
