"""Selecting, scattering and moving elements: nothing is rounded, so every answer is exact."""

import torch

from benchmark.suite.checks import Exact
from benchmark.suite.cost import distinct, per_element, product
from benchmark.suite.inputs import Maker, dtype_named, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

indexing = category("Index")


def expanded_choice(make: Maker) -> Arguments:
    """A tensor with size 1 where the option `expand` says so, the sizes to expand to, a condition
    with size 1 in the dimensions of the option `one_cond`, and the other tensor.
    """
    shape = make.case.shape
    narrow, shared = make.case.options["expand"], make.case.options.get("one_cond", ())
    given = [1 if d in narrow else size for d, size in enumerate(shape)]
    condition = [1 if d in shared else size for d, size in enumerate(shape)]
    kept = make.case.options.get("keep", ())
    sizes = tuple(-1 if d in kept else size for d, size in enumerate(shape))
    return Arguments((make.tensor(*given), sizes, make.mask(*condition), make.tensor(*shape)))


@indexing(
    "expand_where",
    inputs=expanded_choice,
    cases=(
        with_options(small("one", "normal", n=1), expand=[0]),
        with_options(small("rows", "normal", rows=37, columns=53), expand=[0], one_cond=[1]),
        with_options(small("columns", "special", rows=17, columns=131), expand=[1]),
        with_options(small("both", "scaled", a=5, b=31, c=37), expand=[0, 2], one_cond=[1]),
        with_options(small("kept", "mixed", a=7, b=16, c=33), expand=[0], keep=[1, 2]),
        with_options(small("half", "normal", "float16", rows=31, columns=65), expand=[0]),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48),
            expand=[0],
            one_cond=[0],
        ),
        with_options(small("integers", "integers", "int64", rows=19, columns=45), expand=[1]),
        with_options(timed("rows", "mixed", rows=8192, columns=8192), expand=[0], one_cond=[1]),
        with_options(timed("columns", "mixed", rows=8191, columns=8192), expand=[1]),
        with_options(timed("half", "mixed", "float16", rows=8192, columns=16384), expand=[0]),
    ),
    check=Exact(),
    flops=per_element(1),
)
def expand_where(input, target_sizes, cond, other):
    """Where `cond` holds the element of `input`, expanded to `target_sizes` (dimensions of size 1
    repeat, -1 keeps a size), elsewhere that of `other`. `cond` is bool and broadcasts to
    `target_sizes`; `other` has that shape and the dtype of `input`, as the output has.
    """
    return torch.where(cond, input.expand(target_sizes), other)


def tensor_and_indices(make: Maker) -> Arguments:
    """A tensor, the dimension, and `count` indices into it with repetitions."""
    options, shape = make.case.options, make.case.shape
    high = shape[options["dim"]]
    dtype = dtype_named(options.get("index_dtype", "int64"))
    index = make.indices(high, options["count"], dtype=dtype)
    return Arguments((make.tensor(*shape), options["dim"], index))


def selected_bytes(case: Case) -> float:
    """What is selected is read, once, and written; the indices are read."""
    high, count = case.shape[case.options["dim"]], case.options["count"]
    width = dtype_named(case.dtype).itemsize
    moved = (distinct(high, count) + count) / high
    return width * moved * per_element(1)(case) + 8 * count


@indexing(
    "index_select",
    inputs=tensor_and_indices,
    cases=(
        with_options(small("one", "normal", n=1), dim=0, count=1),
        with_options(small("rows", "heavy_tail", rows=37, columns=53), dim=0, count=37),
        with_options(small("columns", "special", rows=17, columns=131), dim=1, count=211),
        with_options(small("last", "scaled", a=5, b=31, c=37), dim=-1, count=16),
        with_options(
            small("middle", "mixed", a=7, b=16, c=33), dim=1, count=29, index_dtype="int32"
        ),
        with_options(small("half", "normal", "float16", rows=31, columns=65), dim=0, count=64),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48),
            dim=1,
            count=19,
        ),
        with_options(small("integers", "integers", "int64", rows=19, columns=45), dim=-2, count=40),
        with_options(timed("rows", "mixed", rows=262144, columns=256), dim=0, count=131072),
        with_options(timed("columns", "mixed", rows=8192, columns=8192), dim=1, count=4096),
        with_options(timed("half", "mixed", "float16", a=64, b=4096, c=512), dim=1, count=2048),
    ),
    check=Exact(),
    flops=per_element(1),
    bytes=selected_bytes,
)
def index_select(input: torch.Tensor, dim: int, index: torch.Tensor):
    """The slices of `input` along `dim` that `index` (1-D, int32 or int64, repetitions allowed)
    names, in its order. Output: the shape of `input` with `len(index)` in place of size `dim`.
    """
    return torch.index_select(input, dim, index)


def filled_in_place(make: Maker) -> Arguments:
    """The dimension, the tensor, indices with repetitions, and the number to fill in."""
    options, shape = make.case.options, make.case.shape
    index = make.indices(shape[options["dim"]], options["count"])
    return Arguments((options["dim"], make.tensor(*shape), index, options["value"]))


def filled_bytes(case: Case) -> float:
    """The slices that are filled are written, as if no index came twice; the indices are read."""
    share = case.options["count"] / case.shape[case.options["dim"]]
    width = dtype_named(case.dtype).itemsize
    return width * share * per_element(1)(case) + 8 * case.options["count"]


@indexing(
    "index_fill_",
    inputs=filled_in_place,
    cases=(
        with_options(small("one", "normal", n=1), dim=0, count=1, value=7),
        with_options(small("rows", "heavy_tail", rows=37, columns=53), dim=0, count=16, value=3.14),
        with_options(small("columns", "special", rows=17, columns=131), dim=1, count=50, value=-1),
        with_options(small("last", "scaled", a=5, b=31, c=37), dim=-1, count=16, value=0.5),
        with_options(small("middle", "mixed", a=7, b=16, c=33), dim=1, count=3, value=5),
        with_options(
            small("half", "normal", "float16", rows=31, columns=65), dim=0, count=9, value=2.5
        ),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48),
            dim=1,
            count=19,
            value=9,
        ),
        with_options(
            small("strided", "normal", layout="strided", rows=19, columns=45),
            dim=0,
            count=7,
            value=4,
        ),
        with_options(
            timed("rows", "mixed", rows=262144, columns=512), dim=0, count=131072, value=1.5
        ),
        with_options(
            timed("columns", "mixed", rows=16384, columns=8192), dim=1, count=4096, value=-2
        ),
        with_options(
            timed("half", "mixed", "float16", a=64, b=4096, c=1024), dim=1, count=2048, value=0.25
        ),
    ),
    check=Exact(),
    flops=per_element(1),
    bytes=filled_bytes,
    mutates=True,
)
def index_fill_(dim, x, index, value):
    """Fill the slices of `x` along `dim` that `index` (1-D, int64, repetitions allowed) names with
    the number `value`, in place; returns `x`.
    """
    return x.index_fill_(dim, index, value)


def masked_tensor(make: Maker) -> Arguments:
    """A tensor and a mask, of size 1 in the dimensions of the option `shared`, true with the
    probability `share`.
    """
    shape, options = make.case.shape, make.case.options
    mask = [1 if d in options.get("shared", ()) else size for d, size in enumerate(shape)]
    if options.get("fewer"):
        mask = mask[options["fewer"] :]
    return Arguments((make.tensor(*shape), make.mask(*mask, share=options.get("share", 0.5))))


def selection_bytes(case: Case) -> float:
    """Tensor and mask are read, the share that is true is written."""
    width = dtype_named(case.dtype).itemsize
    return per_element(width + 1 + case.options.get("share", 0.5) * width)(case)


@indexing(
    "masked_select",
    inputs=masked_tensor,
    cases=(
        with_options(small("one", "normal", n=1), share=1.0),
        small("odd", "heavy_tail", rows=37, columns=53),
        with_options(small("sparse", "special", n=4099), share=0.03),
        with_options(small("dense", "scaled", a=5, b=31, c=37), share=0.97),
        with_options(small("broadcast", "mixed", a=7, b=16, c=33), shared=[0, 2]),
        with_options(small("fewer", "mixed", a=5, b=19, c=33), fewer=1),
        small("half", "normal", "float16", rows=31, columns=65),
        small("transposed", "normal", layout="transposed", rows=33, columns=48),
        with_options(small("none", "normal", n=777), share=0.0),
        small("integers", "integers", "int64", rows=19, columns=45),
        timed("large", "mixed", n=1 << 26),
        with_options(timed("half", "mixed", "float16", rows=8192, columns=16384), share=0.1),
        with_options(timed("dense", "mixed", rows=8191, columns=4099), share=0.9),
    ),
    check=Exact(),
    flops=per_element(1),
    bytes=selection_bytes,
)
def masked_select(input: torch.Tensor, mask: torch.Tensor):
    """The elements of `input` at which `mask` (bool, broadcasts with `input`) is true, in row-major
    order. Output: 1-D, as long as the mask has true elements, perhaps empty.
    """
    return torch.masked_select(input, mask)


def tensor_and_order(make: Maker) -> Arguments:
    """A tensor and the order of its dimensions, a list as published."""
    return Arguments((make.tensor(*make.case.shape), list(make.case.options["dims"])))


@indexing(
    "permute_copy",
    inputs=tensor_and_order,
    cases=(
        with_options(small("one", "normal", n=1), dims=[0]),
        with_options(small("matrix", "heavy_tail", rows=37, columns=53), dims=[1, 0]),
        with_options(small("square", "normal", rows=48, columns=48), dims=[1, 0]),
        with_options(small("cycle", "special", a=5, b=31, c=37), dims=[2, 0, 1]),
        with_options(small("reverse", "mixed", a=3, b=7, c=11, d=13), dims=[3, 2, 1, 0]),
        with_options(small("negative", "scaled", a=4, b=8, c=16, d=17), dims=[-1, 0, -2, 1]),
        with_options(small("half", "normal", "float16", a=7, b=31, c=33), dims=[0, 2, 1]),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48), dims=[1, 0]
        ),
        with_options(small("integers", "integers", "int64", a=9, b=19, c=21), dims=[1, 0, 2]),
        with_options(timed("matrix", "mixed", rows=8192, columns=8192), dims=[1, 0]),
        with_options(timed("reverse", "mixed", a=64, b=96, c=80, d=128), dims=[3, 2, 1, 0]),
        with_options(timed("half", "mixed", "float16", a=64, b=2048, c=1024), dims=[0, 2, 1]),
    ),
    check=Exact(),
    flops=per_element(1),
    differences=(
        "strides are not compared: the published reference returns its copy with permuted strides, "
        "so that a copy of the memory without any reordering answered it",
    ),
)
def permute_copy(input: torch.Tensor, dims: list):
    """A copy of `input` with its dimensions in the order `dims` (negative ones count from the end),
    contiguous in the new order.
    """
    return input.permute(dims).contiguous()


def distinct_targets(make: Maker) -> Arguments:
    """A tensor, the dimension, indices that are distinct along it, and the values to scatter.

    Line by line the indices step through the dimension by a number coprime to its size from a
    start of their own: distinct, out of order, and drawn without sorting.
    """
    options, shape = make.case.options, list(make.case.shape)
    dim, size = options["dim"], shape[options["dim"]]
    lines = shape.copy()
    lines[dim] = options["count"]
    others = options.get("others", {})
    for other, count in others.items():
        lines[int(other)] = count
    starts = lines.copy()
    starts[dim] = 1
    steps = [1] * len(shape)
    steps[dim] = options["count"]
    step = torch.arange(options["count"], device=make.device).mul(STEP).view(steps)
    index = (make.indices(size, *starts) + step) % size
    return Arguments((make.tensor(*shape), dim, index, make.tensor(*lines)))


STEP = 7919  # prime, and no size of a case is a multiple of it


@indexing(
    "scatter",
    inputs=distinct_targets,
    cases=(
        with_options(small("one", "normal", n=1), dim=0, count=1),
        with_options(small("rows", "heavy_tail", rows=37, columns=53), dim=0, count=23),
        with_options(small("columns", "special", rows=17, columns=131), dim=1, count=97),
        with_options(small("last", "scaled", a=5, b=31, c=37), dim=-1, count=16),
        with_options(
            small("narrow", "mixed", a=7, b=16, c=33), dim=1, count=9, others={"0": 5, "2": 21}
        ),
        with_options(small("half", "normal", "float16", rows=31, columns=65), dim=0, count=30),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, columns=48),
            dim=1,
            count=19,
        ),
        with_options(small("integers", "integers", "int64", rows=19, columns=45), dim=0, count=7),
        with_options(timed("rows", "mixed", rows=16384, columns=2048), dim=0, count=8192),
        with_options(timed("columns", "mixed", rows=8192, columns=4096), dim=1, count=2048),
        with_options(timed("half", "mixed", "float16", rows=8192, columns=8192), dim=0, count=4096),
    ),
    check=Exact(),
    flops=product(1, "rows", "columns"),
    differences=(
        "indices are distinct along the dimension: with repetitions, as first published, any of "
        "the values may win",
    ),
)
def scatter(input, dim, index, src):
    """A copy of `input` in which, along `dim`, the element at `index[...]` is replaced by `src` at
    the same place: out[index[i][j]][j] = src[i][j] for dim=0. `index` is int64, shaped like `src`,
    nowhere larger than `input`, and distinct along `dim`.
    """
    return torch.scatter(input, dim, index, src)
