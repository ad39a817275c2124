"""Chains of elementwise operators."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def operand(make: Maker, name: str):
    """The number that the case gives for this operand, or a tensor; `broadcast=name` drops the
    leading dimensions.
    """
    given = make.case.options.get(name)
    if given is not None:
        return given
    shape = make.case.shape
    return make.tensor(*(shape[-1:] if make.case.options.get("broadcast") == name else shape))


def out_of_shape(make: Maker) -> dict:
    """The `out=` argument of the case's shape, where the case asks for one."""
    return {"out": make.out(*make.case.shape)} if make.case.options.get("out") else {}


def product_and_subtrahend(make: Maker) -> Arguments:
    """A tensor, then factor and subtrahend: tensors or numbers."""
    operands = ("other_mul", "other_sub")
    tensors = [make.tensor(*make.case.shape), *(operand(make, name) for name in operands)]
    keywords = make.options("out", "broadcast", *operands) | out_of_shape(make)
    return Arguments(tuple(tensors), keywords)


def two_summands(make: Maker) -> Arguments:
    """A tensor and a summand, tensor or number."""
    tensors = (make.tensor(*make.case.shape), operand(make, "other"))
    return Arguments(tensors, make.options("out", "broadcast", "other") | out_of_shape(make))


def mul_sub_magnitude(input, other_mul, other_sub, alpha=1, out=None):
    """|input other_mul| + |alpha other_sub|."""
    return (input * other_mul).abs() + abs(alpha * other_sub)


@fusion(
    "fused_mul_sub",
    inputs=product_and_subtrahend,
    cases=(
        with_options(small("one", "normal", n=1), alpha=0.3),
        with_options(small("odd", "heavy_tail", rows=37, columns=53), alpha=-0.5),
        with_options(small("factor", "wide", n=1009), other_mul=2.5, alpha=3),
        with_options(small("subtrahend", "shifted", rows=31, columns=65), other_sub=0.7, alpha=2),
        with_options(small("row", "normal", a=3, b=5, c=67), broadcast="other_mul", alpha=0.1),
        with_options(small("out", "mixed", rows=64, columns=128), out=True, alpha=1.5),
        small("transposed", "scaled", layout="transposed", rows=33, columns=48),
        with_options(small("half", "normal", "float16", rows=31, columns=65), alpha=0.25),
        with_options(timed("large", "mixed", rows=8192, columns=4096), alpha=0.5),
        with_options(timed("row", "mixed", rows=16384, columns=4096), broadcast="other_sub"),
        timed("odd", "mixed", rows=4099, columns=8191),
    ),
    check=Close(magnitude=mul_sub_magnitude, narrow_intermediates=True),
    flops=per_element(3),
    mutates=("out",),
    differences=(
        "at least one operand is a tensor: a call with three numbers, which the published test "
        "makes, has nothing to do for a kernel",
    ),
)
def fused_mul_sub(input, other_mul, other_sub, alpha=1, out=None):
    """input * other_mul - alpha * other_sub. Factor and subtrahend are tensors that broadcast with
    the input, or numbers; `out` is written and returned.
    """
    return torch.sub(torch.mul(input, other_mul), other_sub, alpha=alpha, out=out)


def add_gelu_magnitude(input, other, alpha=1, approximate="none", out=None):
    """|input| + |alpha other|: the slope of GELU is at most 1.13."""
    return input.abs() + abs(alpha * other)


@fusion(
    "fused_add_gelu",
    inputs=two_summands,
    cases=(
        small("one", "normal", n=1),
        with_options(small("odd", "wide", rows=37, columns=53), approximate="tanh"),
        with_options(small("number", "wide", n=1009), other=0.5, alpha=-1.5),
        with_options(small("row", "normal", a=3, b=5, c=67), broadcast="other", alpha=2),
        with_options(small("out", "mixed", rows=64, columns=128), out=True, approximate="tanh"),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=48), alpha=-0.5
        ),
        with_options(small("half", "normal", "float16", rows=31, columns=65), alpha=0.25),
        with_options(
            small("half-tanh", "wide", "float16", rows=17, columns=129), approximate="tanh"
        ),
        timed("large", "mixed", rows=8192, columns=4096),
        with_options(timed("half", "mixed", "float16", rows=8192, columns=8192), alpha=0.5),
        with_options(timed("tanh", "mixed", rows=4099, columns=8191), approximate="tanh"),
    ),
    check=Close(magnitude=add_gelu_magnitude, narrow_intermediates=True),
    flops=per_element(10),
    mutates=("out",),
    differences=("`out` is written and returned; the published reference ignores it",),
)
def fused_add_gelu(input, other, alpha=1, approximate="none", out=None):
    """GELU(input + alpha * other), exact (`none`) or by its `tanh` approximation. `other` is a
    tensor that broadcasts with the input, or a number; `out` is written and returned.
    """
    result = F.gelu(torch.add(input, other, alpha=alpha), approximate=approximate)
    return result if out is None else out.copy_(result)
