"""Gathered, selected, repeated elements and what is done to them."""

import functools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import distinct, per_element
from benchmark.suite.fusion.common import log_softmax_size, through, written
from benchmark.suite.fusion.reduction import converted
from benchmark.suite.inputs import Maker, dtype_named, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

fusion = category("Fusion")


def whole_option(make: Maker, name: str, default: int = 0) -> int:
    """An option of the case that is a whole number."""
    return int(str(make.case.options.get(name, default)))


def resized(shape, dim: int, size: int) -> list[int]:
    """The shape with another size in one dimension."""
    return [size if d == dim % len(shape) else old for d, old in enumerate(shape)]


@dataclass(frozen=True)
class PerTaken:
    """So many operations for each element taken: the last size is the number taken along dim."""

    operations: float

    def __call__(self, case: Case) -> float:
        *shape, taken = case.shape
        return self.operations * math.prod(resized(shape, int(str(case.options["dim"])), taken))


def gathered_bytes(case: Case) -> float:
    """Read: the elements that indices name where the mask (true in 0.3) leaves them, indices and
    mask. Written: the result.
    """
    *shape, taken = case.shape
    dim, width = int(str(case.options["dim"])), dtype_named(case.dtype).itemsize
    result = math.prod(resized(shape, dim, taken))
    read = 0.7 * distinct(shape[dim], taken) / taken
    return result * (width * (read + 1) + 8 + 1)


def compared_bytes(case: Case) -> float:
    """Read: the slices that indices name, the indices, and what is compared with (a row at least).
    Written: a bool each.
    """
    *shape, taken = case.shape
    dim, width = int(str(case.options["dim"])), dtype_named(case.dtype).itemsize
    result = math.prod(resized(shape, dim, taken))
    compared = 0 if "other" in case.options else result
    return width * (result * distinct(shape[dim], taken) / taken + compared) + result + 8 * taken


def masked_bytes(case: Case) -> float:
    """Values and mask are read, the share that is true is written."""
    width, share = dtype_named(case.dtype).itemsize, float(str(case.options.get("share", 0.5)))
    return per_element(width * (1 + share) + 1)(case)


def gather_arguments(make: Maker) -> Arguments:
    """Values, dimension, indices with `taken` places along it, mask and value."""
    shape, dim = make.case.shape, whole_option(make, "dim")
    shape = shape[:-1]
    result = resized(shape, dim, make.size("taken"))
    keywords = make.options("dim", "out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(*result)
    index = make.laid_out(functools.partial(make.indices, shape[dim]), *result)
    value = keywords.pop("value", -1.5)
    return Arguments(
        (make.tensor(*shape), dim, index, make.mask(*result, share=0.3), value), keywords
    )


@fusion(
    "fused_gather_masked_fill",
    inputs=gather_arguments,
    cases=(
        with_options(small("one", "normal", n=1, taken=5), dim=0),
        with_options(small("rows", "normal", rows=64, columns=128, taken=32), dim=1),
        with_options(small("columns", "special", rows=37, columns=53, taken=71), dim=0),
        with_options(
            small("middle", "mixed", a=5, b=17, c=31, taken=11), dim=1, value=2.5, sparse_grad=True
        ),
        with_options(small("last", "normal", a=7, b=9, c=13, taken=29), dim=-1, value=0.0),
        with_options(
            small("integers", "integers", "int64", rows=31, columns=40, taken=25), dim=1, value=99
        ),
        with_options(small("half", "normal", "float16", rows=33, columns=65, taken=48), dim=0),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48, taken=40), dim=1
        ),
        with_options(small("out", "normal", rows=20, columns=60, taken=60), dim=0, out=True),
        with_options(timed("rows", "mixed", rows=8192, columns=4096, taken=2048), dim=1),
        with_options(timed("columns", "mixed", rows=8192, columns=4096, taken=4096), dim=0),
        with_options(timed("half", "mixed", "float16", rows=4096, columns=8192, taken=4096), dim=0),
    ),
    check=Exact(),
    flops=PerTaken(1),
    bytes=gathered_bytes,
    mutates=("out",),
    differences=("the value is a whole number where the input is of integers",),
)
def fused_gather_masked_fill(input, dim, index, mask, value, *, sparse_grad=False, out=None):
    """input[..., index, ...] along `dim`, element by element of the index, and `value` where the
    mask (which broadcasts) is true. `sparse_grad` is about gradients; `out` is written and
    returned.
    """
    gathered = torch.gather(input, dim, index, sparse_grad=sparse_grad)
    return written(gathered.masked_fill(mask, value), out)


def index_select_arguments(make: Maker) -> Arguments:
    """Values, dimension, indices and what to compare with: the right values in about half of the
    places, a row of them, or a number.
    """
    *shape, taken = make.case.shape
    dim, options = whole_option(make, "dim"), make.case.options
    values, index = make.tensor(*shape), make.indices(shape[dim], taken)
    keywords = make.options("dim", "out", "other")
    result = resized(shape, dim, taken)
    if options.get("out"):
        keywords["out"] = make.out(*result, dtype=torch.bool)
    other = options.get("other")
    if other is None:
        found = values.index_select(dim, index)
        near = make.case.family == "normal"  # the next number is another number
        wrong = torch.nextafter(found, torch.zeros_like(found)) if near else make.tensor(*result)
        other = torch.where(make.mask(*result), found, wrong)
    elif other == "row":
        other = make.tensor(*result[1:])
    return Arguments((values, dim, index, other), keywords)


@fusion(
    "fused_index_select_eq",
    inputs=index_select_arguments,
    cases=(
        with_options(small("one", "ties", n=1, taken=7), dim=0),
        with_options(small("rows", "normal", rows=128, columns=64, taken=32), dim=0),
        with_options(small("columns", "special", rows=37, columns=53, taken=71), dim=1),
        with_options(small("middle", "ties", a=5, b=17, c=31, taken=11), dim=1, other="row"),
        with_options(small("number", "integers", rows=31, columns=40, taken=50), dim=-1, other=2.0),
        with_options(small("integers", "integers", "int64", rows=33, columns=48, taken=60), dim=0),
        with_options(small("half", "wide", "float16", rows=33, columns=65, taken=48), dim=1),
        with_options(
            small("transposed", "ties", layout="transposed", rows=33, columns=48, taken=40), dim=1
        ),
        with_options(small("out", "ties", rows=20, columns=60, taken=45), dim=0, out=True),
        with_options(timed("rows", "normal", rows=1 << 19, columns=128, taken=1 << 18), dim=0),
        with_options(timed("columns", "ties", rows=8192, columns=8192, taken=4096), dim=1),
        with_options(
            timed("integers", "integers", "int64", rows=1 << 18, columns=128, taken=1 << 17), dim=0
        ),
    ),
    check=Exact(),
    flops=PerTaken(1),
    bytes=compared_bytes,
    mutates=("out",),
)
def fused_index_select_eq(input, dim, index, other, *, out=None):
    """Whether the slices of the input that the (n,) index names along `dim` equal `other`, a tensor
    that broadcasts or a number: booleans. NaN equals nothing; `out` is written and returned.
    """
    return torch.eq(torch.index_select(input, dim, index), other, out=out)


def repeats_arguments(make: Maker) -> Arguments:
    """Values and repeats: the case's number, or with `counts=True` a tensor of them, whose sum is
    `output_size`: a shuffled series of 0 to 4, so that it is known beforehand.
    """
    options, keywords = make.case.options, make.options("counts", "repeats", "out")
    shape, dim = make.case.shape, options.get("dim")
    repeats = options.get("repeats", 2)
    if options.get("counts"):
        size = shape[whole_option(make, "dim")]
        series = torch.arange(size, device=make.device) % 5
        repeats = series[make.permutation(size)]
        keywords["output_size"] = sum(i % 5 for i in range(size))
    if options.get("out"):
        total = int(str(repeats)) * (make.case.shape[whole_option(make, "dim")])
        keywords["out"] = make.out(*resized(shape, whole_option(make, "dim"), total))
    assert dim is not None or not options.get("out")
    return Arguments((make.tensor(*shape), repeats), keywords)


def repeat_interleave_log_softmax_size(
    input, repeats, dim=None, *, output_size=None, dtype=None, out=None
):
    """Errors of the logarithms."""
    values = torch.repeat_interleave(converted(input, dtype), repeats, dim, output_size=output_size)
    return log_softmax_size(values, torch.zeros_like(values), 0 if dim is None else dim)


@fusion(
    "fused_repeat_interleave_log_softmax",
    inputs=repeats_arguments,
    cases=(
        small("flat", "normal", rows=7, columns=61),
        with_options(small("one", "normal", n=1), dim=0, repeats=3),
        with_options(small("rows", "scaled", rows=33, columns=65), dim=1),
        with_options(small("columns", "shifted", rows=37, columns=29), dim=0, repeats=5),
        with_options(small("middle", "heavy_tail", a=5, b=19, c=31), dim=1, repeats=3),
        with_options(small("counts", "normal", rows=23, columns=64), dim=1, counts=True),
        with_options(
            small("counts-first", "wide", rows=41, columns=16), dim=0, counts=True, dtype="float64"
        ),
        with_options(
            small("half", "normal", "float16", rows=31, columns=40), dim=-1, dtype="float32"
        ),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48), dim=1
        ),
        with_options(small("out", "normal", rows=20, columns=30), dim=0, out=True),
        with_options(timed("rows", "normal", rows=16384, columns=1024), dim=1),
        with_options(timed("columns", "scaled", rows=4096, columns=4096), dim=0, repeats=3),
        with_options(timed("counts", "normal", rows=4096, columns=8192), dim=1, counts=True),
    ),
    check=Close(magnitude=repeat_interleave_log_softmax_size),
    flops=per_element(8),
    mutates=("out",),
    differences=(
        "without `dim` the flat result is normalized as a whole, as its single dimension says: the "
        "published reference relies on a default that PyTorch deprecates",
        "`out` is written and returned",
    ),
)
def fused_repeat_interleave_log_softmax(
    input, repeats, dim=None, *, output_size=None, dtype=None, out=None
):
    """log_softmax along `dim` of the input with each slice along it repeated, `repeats` times or as
    often as a tensor says for each; `dim` None flattens first. `output_size` is the sum of the
    repeats; with `dtype` the values are converted first; `out` is written and returned.
    """
    values = torch.repeat_interleave(converted(input, dtype), repeats, dim, output_size=output_size)
    return written(F.log_softmax(values, 0 if dim is None else dim), out)


def tile_arguments(make: Maker) -> Arguments:
    """Values, repetitions for each dimension, and `out` on request."""
    keywords = make.options("dims", "out")
    shape, dims = make.case.shape, make.options()["dims"]
    if make.case.options.get("out"):
        keywords["out"] = make.out(*torch.empty(shape, device="meta").tile(dims).shape)
    return Arguments((make.tensor(*shape), dims), keywords)


def tile_exp_size(input, dims, *, out=None):
    """exp(x) |x|: an exponential loses as many digits as its argument has."""
    return torch.tile(torch.exp(input) * input.abs(), dims)


@fusion(
    "fused_tile_exp",
    inputs=tile_arguments,
    cases=(
        with_options(small("one", "normal", n=1), dims=[3]),
        with_options(small("flat", "wide", n=509), dims=[3]),
        with_options(small("both", "normal", rows=17, columns=29), dims=[2, 3]),
        with_options(small("last", "scaled", rows=31, columns=37), dims=[4]),
        with_options(small("leading", "normal", rows=13, columns=23), dims=[3, 1, 2]),
        with_options(small("half", "normal", "float16", rows=15, columns=65), dims=[2, 2]),
        with_options(
            small("transposed", "wide", layout="transposed", rows=33, columns=48), dims=[2, 1]
        ),
        with_options(small("out", "normal", n=700), dims=[2], out=True),
        with_options(timed("flat", "wide", n=1 << 24), dims=[4]),
        with_options(timed("rows", "normal", rows=4096, columns=4096), dims=[4, 1]),
        with_options(timed("both", "normal", rows=4099, columns=2047), dims=[2, 3]),
    ),
    check=Close(magnitude=tile_exp_size),
    flops=per_element(2),
    mutates=("out",),
    differences=(
        "`dims` are repetitions of the dimensions there are, counted from the last, as torch.tile "
        "takes them and the description says: the published reference puts new dimensions in front",
    ),
)
def fused_tile_exp(input, dims, *, out=None):
    """exp of the input repeated dims[i] times along dimension i: fewer repetitions than dimensions
    are for the last ones, more add dimensions in front. `out` is written and returned.
    """
    return torch.exp(torch.tile(input, dims), out=out)


def masked_arguments(make: Maker) -> Arguments:
    """Values, a mask and the summand, a number."""
    share = float(str(make.case.options.get("share", 0.5)))
    other = float(str(make.case.options.get("other", 0.75)))
    shape = make.case.shape
    return Arguments(
        (make.tensor(*shape), make.mask(*shape, share=share), other), make.options("share", "other")
    )


def selected(input, mask):
    """The elements where the mask is true; all of them where only shapes are known."""
    return input.reshape(-1) if input.is_meta else torch.masked_select(input, mask)


def masked_select_add_gelu_size(input, mask, other, *, alpha=1, approximate="none", out=None):
    """|x| + |alpha other| through GELU, and |x| behind its small results."""
    values = selected(input, mask)
    size = values.abs() + abs(alpha * other)
    curve = functools.partial(F.gelu, approximate=approximate)
    return through(curve, values + alpha * other, size) + size


@fusion(
    "fused_masked_select_add_gelu",
    inputs=masked_arguments,
    cases=(
        with_options(small("one", "normal", n=1), share=1.0),
        small("odd", "wide", rows=37, columns=53),
        with_options(small("prime", "wide", n=1009), alpha=0.5, approximate="tanh"),
        with_options(small("few", "normal", a=3, b=25, c=67), share=0.02, other=-0.3),
        with_options(small("most", "shifted", rows=40, columns=65), share=0.95, alpha=-2),
        with_options(small("none", "normal", rows=5, columns=9), share=0.0),
        with_options(
            small("transposed", "wide", layout="transposed", rows=33, columns=48), alpha=0.3
        ),
        small("half", "normal", "float16", rows=31, columns=65),
        timed("large", "normal", n=1 << 25),
        with_options(timed("few", "normal", rows=8192, columns=8192), share=0.05),
        with_options(timed("tanh", "wide", n=(1 << 25) - 39), approximate="tanh", alpha=0.5),
    ),
    check=Close(magnitude=masked_select_add_gelu_size, narrow_intermediates=True),
    flops=per_element(1),
    bytes=masked_bytes,
    differences=("`out` stays None: the number of selected elements is not known before the call",),
)
def fused_masked_select_add_gelu(input, mask, other, *, alpha=1, approximate="none", out=None):
    """GELU(x + alpha * other), exact (`none`) or by its `tanh` approximation, of the elements x
    where the mask is true, in their order: one dimension. `other` is a number.
    """
    values = torch.add(selected(input, mask), other, alpha=alpha)
    return written(F.gelu(values, approximate=approximate), out)
