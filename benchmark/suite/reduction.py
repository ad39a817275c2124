"""Reductions along dimensions."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Attains, Close, Exact
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, one_tensor, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

reduction = category("Reduce")


def sum_magnitude(input, dim, keepdim=False, dtype=None):
    """sum |x| behind each element."""
    return torch.sum(input.abs(), dim, keepdim=keepdim, dtype=dtype)


@reduction(
    "sum",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", n=1), dim=0),
        with_options(small("odd", "heavy_tail", rows=17, columns=781), dim=1),
        with_options(small("first", "shifted", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two-dims", "mixed", a=5, b=31, c=37), dim=[0, 2]),
        with_options(small("negative", "normal", a=3, b=64, c=33), dim=-2, keepdim=True),
        with_options(small("half", "normal", "float16", rows=15, columns=257), dim=1),
        with_options(small("wide", "scaled", rows=9, columns=129), dim=-1, dtype="float64"),
        with_options(small("integers", "integers", "int64", rows=19, columns=45), dim=[0, 1]),
        with_options(small("transposed", "ties", layout="transposed", rows=33, columns=48), dim=1),
        with_options(timed("rows", "mixed", rows=16384, columns=4096), dim=1),
        with_options(timed("columns", "mixed", rows=16384, columns=4096), dim=0),
        with_options(timed("half", "mixed", "float16", rows=65536, columns=2048), dim=-1),
    ),
    check=Close(magnitude=sum_magnitude),
    flops=per_element(1),
)
def sum(input, dim, keepdim=False, dtype=None):
    """Sum over one dimension or several, kept as size 1 on request; `dtype` is that of the sum and
    the result.
    """
    return torch.sum(input, dim, keepdim=keepdim, dtype=dtype)


def one_tensor_or_close_numbers(make: Maker) -> Arguments:
    """As `one_tensor`; with the option `close`, 1 + k / 2^22 with k below 4096, which are equal in
    any dtype narrower than float32.
    """
    if not make.case.options.get("close"):
        return one_tensor(make)
    numbers = 1 + make.randint(0, 4096, *make.case.shape).to(make.dtype) / (1 << 22)
    return Arguments((numbers,), make.options("close"))


@reduction(
    "argmax",
    inputs=one_tensor_or_close_numbers,
    cases=(
        with_options(small("one", "normal", n=1), dim=0),
        with_options(small("odd", "wide", rows=17, columns=781), dim=1),
        with_options(small("first", "heavy_tail", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("middle", "ties", a=8, b=31, c=33), dim=1, keepdim=True),
        with_options(small("special", "special", rows=41, columns=9), dim=-1),
        with_options(small("half", "wide", "float16", rows=15, columns=257), dim=1),
        with_options(small("integers", "integers", "int64", a=2, b=19, c=45), dim=2),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=48), dim=1
        ),
        with_options(small("equal", "integers", rows=65, columns=64), dim=0),
        with_options(small("close", "unit", rows=23, columns=301), dim=1, close=True),
        with_options(timed("half", "mixed", "float16", n=1 << 28), dim=0),
        with_options(timed("rows", "mixed", rows=65536, columns=2048), dim=1),
        with_options(timed("columns", "mixed", rows=16384, columns=4096), dim=0),
    ),
    check=Exact(),
    flops=per_element(1),
)
def argmax(input_tensor, dim, keepdim=False):
    """Index (int64) of the largest element along one dimension, kept as size 1 on request: the
    first one where several are equal. NaN counts as larger than any number.
    """
    return torch.argmax(input_tensor, dim, keepdim=keepdim)


@reduction(
    "min",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", n=1), dim=0),
        with_options(small("odd", "wide", rows=17, columns=781), dim=1),
        with_options(small("first", "heavy_tail", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("middle", "ties", a=8, b=31, c=33), dim=1, keepdim=True),
        with_options(small("special", "special", rows=41, columns=9), dim=-1),
        with_options(small("half", "wide", "float16", rows=15, columns=257), dim=1),
        with_options(small("integers", "integers", "int64", a=2, b=19, c=45), dim=2),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=48), dim=1
        ),
        with_options(small("equal", "integers", rows=65, columns=64), dim=0),
        with_options(timed("rows", "mixed", rows=65536, columns=2048), dim=1),
        with_options(timed("columns", "mixed", rows=65536, columns=1024), dim=0),
        with_options(timed("half", "mixed", "float16", rows=65536, columns=2048), dim=-1),
    ),
    check=Exact(),
    flops=per_element(1),
)
def min(input_tensor, dim, keepdim=False):
    """Smallest elements along one dimension and their indices (int64), kept as size 1 on request:
    the first index where several are equal. NaN counts as smaller than any number.
    """
    return torch.min(input_tensor, dim, keepdim=keepdim)


def reduced_shape(shape: tuple[int, ...], dim, keepdim: bool) -> list[int]:
    """The shape that is left of a reduction over `dim`: a number, several, or None for all."""
    dims = range(len(shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = {d % len(shape) for d in dims}
    kept = [1 if d in gone else size for d, size in enumerate(shape)]
    return kept if keepdim else [size for d, size in enumerate(kept) if d not in gone]


def with_reduced_out(make: Maker) -> Arguments:
    """One tensor and the options; `out` has the shape of the result."""
    keywords = make.options("out")
    if make.case.options.get("out"):
        shape = reduced_shape(make.case.shape, keywords.get("dim"), keywords.get("keepdim", False))
        keywords["out"] = make.out(*shape, dtype=keywords.get("dtype"))
    return Arguments((make.tensor(*make.case.shape),), keywords)


def mean_magnitude(input_tensor, dim, keepdim=False, dtype=None, out=None):
    """mean |x| behind each element."""
    return torch.mean(input_tensor.abs(), dim, keepdim=keepdim, dtype=dtype)


@reduction(
    "mean",
    inputs=with_reduced_out,
    cases=(
        with_options(small("one", "normal", n=1), dim=0),
        with_options(small("odd", "heavy_tail", rows=17, columns=781), dim=1),
        with_options(small("first", "shifted", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two-dims", "mixed", a=5, b=31, c=37), dim=[0, 2]),
        with_options(small("negative", "normal", a=3, b=64, c=33), dim=-2, keepdim=True),
        with_options(small("half", "normal", "float16", rows=15, columns=257), dim=1),
        with_options(small("wide", "scaled", rows=9, columns=129), dim=-1, dtype="float64"),
        with_options(
            small("integers", "integers", "int32", rows=19, columns=45), dim=0, dtype="float32"
        ),
        with_options(small("transposed", "ties", layout="transposed", rows=33, columns=48), dim=1),
        with_options(small("out", "normal", a=7, b=9, c=65), dim=[1, 2], out=True),
        with_options(timed("rows", "mixed", rows=16384, columns=4096), dim=1),
        with_options(timed("columns", "mixed", rows=16384, columns=4096), dim=0),
        with_options(timed("all", "mixed", rows=16384, columns=8192), dim=[0, 1]),
    ),
    check=Close(magnitude=mean_magnitude),
    flops=per_element(1),
    mutates=("out",),
)
def mean(input_tensor, dim, keepdim=False, dtype=None, out=None):
    """Mean over one dimension or several, kept as size 1 on request; `dtype` is that of the sum
    and the result, `out` is written and returned.
    """
    return torch.mean(input_tensor, dim, keepdim=keepdim, dtype=dtype, out=out)


@reduction(
    "std",
    inputs=with_reduced_out,
    cases=(
        with_options(small("one", "normal", n=1), correction=0),
        small("all", "normal", a=5, b=29, c=41),
        with_options(small("odd", "heavy_tail", rows=17, columns=781), dim=1),
        with_options(small("first", "shifted", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two-dims", "mixed", a=5, b=31, c=37), dim=[0, 2], correction=0),
        with_options(small("corrected", "scaled", rows=37, columns=11), dim=-1, correction=3),
        with_options(small("half", "shifted", "float16", rows=15, columns=257), dim=1),
        with_options(small("transposed", "ties", layout="transposed", rows=33, columns=48), dim=1),
        with_options(small("out", "shifted", a=7, b=9, c=65), dim=[1, 2], out=True, keepdim=True),
        with_options(timed("rows", "shifted", rows=32768, columns=4096), dim=1),
        with_options(timed("columns", "shifted", rows=16384, columns=4096), dim=0),
        timed("all", "mixed", rows=16384, columns=4096),
    ),
    check=Close(),
    flops=per_element(4),
    mutates=("out",),
)
def std(input: torch.Tensor, dim=None, correction=1, keepdim=False, out=None):
    """Standard deviation, sqrt(sum (x - mean)^2 / max(0, n - correction)), over one dimension,
    several, or all (None), kept as size 1 on request; `out` is written and returned.
    """
    return torch.std(input, dim=dim, correction=correction, keepdim=keepdim, out=out)


def gelu_scores(input, dim=None, keepdim=False, approximate="none", out=None):
    """GELU of each element, the reduced dimension last."""
    scores = F.gelu(input, approximate=approximate)
    return scores.flatten() if dim is None else scores.movedim(dim, -1)


def gelu_size(input, dim=None, keepdim=False, approximate="none", out=None):
    """1, as the minimum of GELU is near -0.17 where |x| = 0.75; a larger |x| gives 0 or x."""
    smallest = input.amin() if dim is None else input.amin(dim, keepdim=keepdim)
    size = smallest.clamp(min=1)
    return size if dim is None else (size, torch.zeros_like(size))


@reduction(
    "min_gelu",
    inputs=with_reduced_out,
    cases=(
        small("one", "normal", n=1),
        with_options(small("odd", "wide", rows=17, columns=781), dim=1),
        with_options(small("positive", "unit", rows=211, columns=7), dim=0, keepdim=True),
        with_options(
            small("middle", "mixed", a=8, b=31, c=33), dim=1, keepdim=True, approximate="tanh"
        ),
        with_options(small("all", "heavy_tail", a=3, b=5, c=67), approximate="tanh"),
        with_options(small("half", "shifted", "float16", rows=15, columns=257), dim=-1),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=48), dim=1
        ),
        with_options(small("few", "scaled", rows=31, columns=3), dim=1, approximate="tanh"),
        with_options(small("out", "shifted", n=37), out=True),
        with_options(timed("rows", "shifted", rows=32768, columns=4096), dim=1),
        timed("all", "mixed", n=1 << 26),
        with_options(
            timed("columns", "shifted", rows=4096, columns=16384), dim=0, approximate="tanh"
        ),
    ),
    check=Attains(magnitude=gelu_size, scores=gelu_scores),
    flops=per_element(9),
    mutates=("out",),
    differences=(
        "GELU is x (1 + erf(x / sqrt 2)) / 2; the published reference leaves the 1 out",
        "any index at which the minimum is attained within its tolerance is right: far from 0 GELU "
        "is flat, and rounding decides between neighbours",
        "`out` is asked for without `dim` only, where the result is one tensor",
    ),
)
def min_gelu(input, dim=None, keepdim=False, approximate="none", out=None):
    """Smallest GELU(x) of all elements, or along `dim` (kept as size 1 on request) together with
    its index (int64); GELU exact (`none`) or by its `tanh` approximation. Without `dim` the result
    is a tensor without dimensions, `keepdim` or not; `out` is written and returned.
    """
    scores = F.gelu(input, approximate=approximate)
    if dim is not None:
        return torch.min(scores, dim, keepdim=keepdim)
    smallest = scores.min()
    return smallest if out is None else out.copy_(smallest)
