"""Reductions of what elementwise operators compute."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.fusion.checks import Located
from benchmark.suite.fusion.common import written
from benchmark.suite.fusion.elementwise import operand
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def reduced_shape(shape, dim, keepdim):
    """Shape of what a reduction over a dimension, several or all (None) leaves."""
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % len(shape) for d in dims}
    kept = [1 if d in gone else size for d, size in enumerate(shape)]
    return kept if keepdim else [size for d, size in enumerate(shape) if d not in gone]


def out_of_reduction(make: Maker, shape=None) -> dict:
    """The `out=` argument of a reduction, where the case asks for one."""
    options = make.options()
    if not options.get("out"):
        return {}
    left = reduced_shape(make.case.shape, options.get("dim"), options.get("keepdim", False))
    return {"out": make.out(*(left if shape is None else shape))}


def one_operand(make: Maker) -> Arguments:
    """One tensor and the options."""
    return Arguments((make.tensor(*make.case.shape),), make.options("out") | out_of_reduction(make))


def two_operands(make: Maker) -> Arguments:
    """A tensor and a summand: a tensor, broadcast on request, or a number."""
    tensors = (make.tensor(*make.case.shape), operand(make, "other"))
    keywords = make.options("out", "other", "broadcast") | out_of_reduction(make)
    return Arguments(tensors, keywords)


def converted(value, dtype):
    """The tensor in the dtype asked for; numbers stay."""
    return value.to(dtype) if dtype is not None and isinstance(value, torch.Tensor) else value


def deviation_size(values, size, dim, correction):
    """Errors of `size` in the values after a standard deviation: each counts by its share."""
    dims = tuple(range(values.dim())) if dim is None else dim
    gap = (values - values.mean(dims, keepdim=True)).abs()
    error = (gap * (size + size.mean(dims, keepdim=True))).sum(dims, keepdim=True)
    squares = gap.square().sum(dims, keepdim=True)
    count = gap.sum(dims, keepdim=True).numel()
    left = max(gap.numel() / max(count, 1) - correction, 1)
    return error / torch.sqrt(squares * left).clamp(min=1e-300)


def add_mean_size(input, other, dim=None, alpha=1, keepdim=False, dtype=None, out=None):
    """Mean of |input| + |alpha other|."""
    size = converted(input, dtype).abs() + abs(alpha * converted(other, dtype))
    return torch.mean(size, dim, keepdim=keepdim)


@fusion(
    "fused_add_mean",
    inputs=two_operands,
    cases=(
        small("all", "heavy_tail", rows=37, columns=53),
        with_options(small("one", "normal", n=1), alpha=0.3),
        with_options(small("rows", "normal", rows=17, columns=781), dim=1, alpha=0.5),
        with_options(small("columns", "mixed", rows=211, columns=7), dim=0, keepdim=True, alpha=-2),
        with_options(small("two", "normal", a=5, b=31, c=37), dim=[0, 2], broadcast="other"),
        with_options(small("number", "wide", rows=15, columns=257), dim=-1, other=0.5, alpha=3),
        with_options(small("half", "shifted", "float16", rows=31, columns=65), dim=1),
        with_options(
            small("converted", "normal", "float16", rows=9, columns=300), dim=0, dtype="float32"
        ),
        with_options(small("out", "ties", rows=33, columns=48), dim=1, keepdim=True, out=True),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=130), dim=0
        ),
        timed("all", "shifted", n=1 << 25),
        with_options(timed("rows", "mixed", rows=16384, columns=4096), dim=1, alpha=0.5),
        with_options(timed("columns", "mixed", rows=16384, columns=4096), dim=0),
    ),
    check=Close(magnitude=add_mean_size, narrow_intermediates=True),
    flops=per_element(3),
    mutates=("out",),
    differences=("`out` is written and returned; the published reference ignores it",),
)
def fused_add_mean(input, other, dim=None, alpha=1, keepdim=False, dtype=None, out=None):
    """Mean of input + alpha * other over a dimension, several, or all (None), kept as size 1 on
    request. `other` is a tensor that broadcasts, or a number; with `dtype` the operands are
    converted first; `out` is written and returned.
    """
    total = torch.add(converted(input, dtype), converted(other, dtype), alpha=alpha)
    return written(torch.mean(total, dim, keepdim=keepdim), out)


def exp_mean_size(input, dim=None, keepdim=False, dtype=None, out=None):
    """Mean of exp(x) (1 + |x|): an exponential loses as many digits as its argument has."""
    values = converted(input, dtype)
    return torch.mean(torch.exp(values) * (1 + values.abs()), dim, keepdim=keepdim)


@fusion(
    "fused_exp_mean",
    inputs=one_operand,
    cases=(
        small("one", "normal", n=1),
        small("all", "wide", rows=37, columns=53),
        with_options(small("rows", "normal", rows=17, columns=781), dim=1),
        with_options(small("columns", "wide", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two", "normal", a=5, b=31, c=37), dim=[0, 2]),
        with_options(small("half", "normal", "float16", rows=31, columns=65), dim=-1),
        with_options(
            small("converted", "wide", "float16", rows=9, columns=300), dim=0, dtype="float32"
        ),
        with_options(small("out", "ties", rows=33, columns=48), dim=1, keepdim=True, out=True),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=130), dim=0
        ),
        timed("all", "wide", n=1 << 26),
        with_options(timed("rows", "normal", rows=16384, columns=4096), dim=1),
        with_options(timed("columns", "wide", rows=16384, columns=4096), dim=0),
    ),
    check=Close(magnitude=exp_mean_size, narrow_intermediates=True),
    flops=per_element(6),
    mutates=("out",),
    differences=("`dtype` and `out` count, as described: the published reference ignores both",),
)
def fused_exp_mean(input, dim=None, keepdim=False, dtype=None, out=None):
    """Mean of exp(x) over a dimension, several, or all (None), kept as size 1 on request. With
    `dtype` x is converted first; `out` is written and returned.
    """
    return written(torch.mean(torch.exp(converted(input, dtype)), dim, keepdim=keepdim), out)


def gelu_std_size(input, dim=None, keepdim=False, correction=1, approximate="none", out=None):
    """|x| behind each GELU, by its share in the deviation."""
    values = F.gelu(input, approximate=approximate)
    size = deviation_size(values, 1.13 * input.abs(), dim, correction)
    return size.reshape(reduced_shape(input.shape, dim, keepdim))


@fusion(
    "fused_gelu_std",
    inputs=one_operand,
    cases=(
        small("two", "normal", n=2),
        small("all", "wide", rows=37, columns=53),
        with_options(small("rows", "normal", rows=17, columns=781), dim=1, approximate="tanh"),
        with_options(small("columns", "scaled", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two-dims", "normal", a=5, b=31, c=37), dim=[0, 2], correction=0),
        with_options(small("few", "shifted", rows=257, columns=4), dim=-1, correction=2),
        with_options(small("half", "wide", "float16", rows=31, columns=65), dim=1),
        with_options(small("out", "mixed", rows=33, columns=48), dim=1, keepdim=True, out=True),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=130), dim=0
        ),
        with_options(timed("all", "wide", n=1 << 26), approximate="tanh"),
        with_options(timed("rows", "normal", rows=16384, columns=4096), dim=1),
        with_options(timed("columns", "shifted", rows=16384, columns=4096), dim=0),
    ),
    check=Close(magnitude=gelu_std_size, narrow_intermediates=True),
    flops=per_element(14),
    mutates=("out",),
    differences=("`out` is written and returned; the published reference ignores it",),
)
def fused_gelu_std(input, dim=None, keepdim=False, correction=1, approximate="none", out=None):
    """Standard deviation of GELU(x) over a dimension, several, or all (None), kept as size 1 on
    request: the squared deviations divide by their number minus `correction`. `out` is written and
    returned.
    """
    values = F.gelu(input, approximate=approximate)
    return written(torch.std(values, dim, correction=correction, keepdim=keepdim), out)


def gelu_there(indices, input, approximate="none", dim=None, keepdim=False, out=None):
    """GELU of the elements that the indices name."""
    places = indices if keepdim else indices.unsqueeze(dim)
    found = F.gelu(input, approximate=approximate).gather(dim, places)
    return found if keepdim else found.squeeze(dim)


def gelu_length(input, approximate="none", dim=None, keepdim=False, out=None):
    """How many elements a minimum is of."""
    return input.shape[dim]


def gelu_min_size(input, approximate="none", dim=None, keepdim=False, out=None):
    """1: every GELU around its minimum is a difference of terms of this size."""
    shape = [] if dim is None else reduced_shape(input.shape, dim, keepdim)
    size = torch.ones(shape, dtype=input.dtype, device=input.device)
    size = torch.maximum(size, input.amin() if dim is None else input.amin(dim, keepdim))
    return size if dim is None else (size, size)


@fusion(
    "fused_gelu_min",
    inputs=one_operand,
    cases=(
        small("one", "normal", n=1),
        small("all", "shifted", rows=37, columns=53),
        with_options(small("tanh", "wide", n=1009), approximate="tanh"),
        with_options(small("rows", "shifted", rows=67, columns=81), dim=1),
        with_options(small("columns", "shifted", rows=15, columns=257), dim=0, keepdim=True),
        with_options(small("middle", "scaled", a=5, b=31, c=37), dim=1, approximate="tanh"),
        with_options(small("ties", "ties", rows=33, columns=48), dim=-1),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=130), dim=0
        ),
        with_options(timed("all", "shifted", n=1 << 26), approximate="tanh"),
        with_options(timed("rows", "shifted", rows=65536, columns=1024), dim=1),
        with_options(timed("columns", "shifted", rows=4096, columns=16384), dim=0),
    ),
    check=Located(gelu_there, gelu_length, Close(magnitude=gelu_min_size)),
    flops=per_element(10),
    differences=(
        "the exact form is x (1 + erf(x / sqrt 2)) / 2, as described: the published reference lost "
        "the 1 +",
        "`out` stays None: a call with `dim` has two results",
    ),
)
def fused_gelu_min(input, approximate="none", dim=None, keepdim=False, out=None):
    """Smallest GELU(x): of all elements (`dim` None), or along a dimension as a pair of the values
    and of the places, int64, where they are, kept as size 1 on request.
    """
    values = F.gelu(input, approximate=approximate)
    return torch.min(values) if dim is None else tuple(torch.min(values, dim, keepdim=keepdim))


def scalar_out(make: Maker) -> Arguments:
    """One tensor and the options; `out` is a scalar."""
    keywords = make.options("out") | out_of_reduction(make, ())
    return Arguments((make.tensor(*make.case.shape),), keywords)


def sum_std_size(input, dim=None, keepdim=False, dtype=None, correction=1, out=None):
    """sum |x| behind each sum, by its share in the deviation."""
    values = converted(input, dtype)
    sums, sizes = torch.sum(values, dim), torch.sum(values.abs(), dim)
    return deviation_size(sums.reshape(-1), sizes.reshape(-1), 0, correction).reshape(())


@fusion(
    "fused_sum_std",
    inputs=scalar_out,
    cases=(
        with_options(small("all", "normal", rows=37, columns=53), keepdim=True, correction=0),
        with_options(small("rows", "heavy_tail", rows=17, columns=781), dim=1),
        with_options(small("columns", "shifted", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two", "normal", a=5, b=31, c=37), dim=[0, 2], correction=0),
        with_options(small("middle", "mixed", a=9, b=31, c=37), dim=-2, correction=2),
        with_options(
            small("converted", "normal", "float16", rows=31, columns=65), dim=1, dtype="float32"
        ),
        with_options(small("out", "ties", rows=33, columns=48), dim=1, out=True),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=130), dim=0
        ),
        with_options(timed("rows", "normal", rows=16384, columns=4096), dim=1),
        with_options(timed("columns", "normal", rows=16384, columns=4096), dim=0),
        with_options(timed("middle", "shifted", a=64, b=1024, c=1024), dim=1),
    ),
    check=Close(magnitude=sum_std_size),
    flops=per_element(1),
    mutates=("out",),
    differences=(
        "the 0 of a single sum lives on the input's device: the published reference returns it on "
        "the CPU, and times nothing else",
        "a single sum is asked for with correction 0 alone: with 1 the published description "
        "divides by 0 and the published reference returns 0, so that neither can be held against "
        "a candidate",
        "`out` is written and returned; the published reference ignores it",
    ),
)
def fused_sum_std(input, dim=None, keepdim=False, dtype=None, correction=1, out=None):
    """Standard deviation, a scalar, of the sums of x over a dimension or several: the squared
    deviations divide by the number of sums minus `correction`. 0 where there is one sum (`dim`
    None). With `dtype` x is converted first; `keepdim` does not change a scalar; `out` is written
    and returned.
    """
    sums = torch.sum(converted(input, dtype), dim)
    if sums.numel() == 1:
        return written(torch.zeros((), dtype=sums.dtype, device=sums.device), out)
    return written(torch.std(sums, correction=correction), out)
