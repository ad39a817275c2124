"""Convolutions and the elementwise operators, poolings and shuffles that follow them."""

import functools
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, RoundedBetween
from benchmark.suite.fusion.common import (
    ConvFlops,
    conv_arguments,
    conv_cases,
    conv_rounded,
    conv_shape,
    conv_size,
    conv_tensors,
    through,
    weights,
    written,
)
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def surely_negative(values, size):
    """Where a sum of terms of this size stays below 0 though float16, whose eps is 0.98e-3, rounds
    them.
    """
    return values < -1e-3 * size


def relu_conv2d_size(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, inplace=False
):
    """Rounding errors of the convolution: max(x, 0) doesn't enlarge them."""
    return conv_size(input, weight, bias, stride, padding, dilation, groups)


def relu_conv2d_rounded(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, inplace=False
):
    """|x * w| before the bias; nothing of it is left where the sum is surely negative."""
    layout = stride, padding, dilation, groups
    values, size = F.conv2d(input, weight, bias, *layout), conv_size(input, weight, bias, *layout)
    rounded = conv_rounded(input, weight, bias, *layout)
    return torch.where(surely_negative(values, size), 0.0, rounded)


@fusion(
    "fused_relu_conv2d",
    inputs=conv_arguments,
    cases=conv_cases({}, {"inplace": True}),
    check=RoundedBetween(magnitude=relu_conv2d_size, rounded=relu_conv2d_rounded),
    flops=ConvFlops(),
)
def fused_relu_conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, inplace=False
):
    """max(x, 0) of the convolution x of images (N, C, H, W) with filters (O, C / groups, h, w),
    plus biases (O,). `inplace` is about the intermediate: the arguments stay as they are.
    """
    return F.relu(F.conv2d(input, weight, bias, stride, padding, dilation, groups), inplace)


def leaky_relu_conv2d_size(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    negative_slope=0.01,
    inplace=False,
):
    """Rounding errors of the convolution, smaller by the slope where it is surely negative."""
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    values = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return torch.where(surely_negative(values, size), abs(negative_slope) * size, size)


def leaky_relu_conv2d_rounded(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    negative_slope=0.01,
    inplace=False,
):
    """|x * w| before the bias. Where the sum is surely negative that is smaller by the slope, and
    the sum is rounded before it is multiplied.
    """
    layout = stride, padding, dilation, groups
    values, size = F.conv2d(input, weight, bias, *layout), conv_size(input, weight, bias, *layout)
    rounded = conv_rounded(input, weight, bias, *layout)
    slope = abs(negative_slope)
    return torch.where(surely_negative(values, size), slope * (rounded + values.abs()), rounded)


@fusion(
    "fused_leaky_relu_conv2d",
    inputs=conv_arguments,
    cases=conv_cases({"negative_slope": 0.3}, {}, {"negative_slope": 0.1, "inplace": True}),
    check=RoundedBetween(magnitude=leaky_relu_conv2d_size, rounded=leaky_relu_conv2d_rounded),
    flops=ConvFlops(),
)
def fused_leaky_relu_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    negative_slope: float = 0.01,
    inplace: bool = False,
):
    """x where positive, else negative_slope x, of the convolution x of images (N, C, H, W) with
    filters (O, C / groups, h, w), plus biases (O,). `inplace` is about the intermediate.
    """
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.leaky_relu(convolved, negative_slope, inplace)


def gelu_conv2d_arguments(make: Maker) -> Arguments:
    """Those of a convolution; `out` on request, for a convolution that keeps the size."""
    arguments = conv_arguments(make)
    if make.case.options.get("out"):
        arguments.kwargs["out"] = make.out(*conv_shape(make))
    return arguments


def gelu_conv2d_size(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    approximate="none",
    out=None,
):
    """Rounding errors of the convolution through GELU, and |x|: GELU of a negative x is a small
    difference.
    """
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    values = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return through(functools.partial(F.gelu, approximate=approximate), values, size) + values.abs()


PAIRS: dict[str, Any] = {
    "batch": 2,
    "channels": 3,
    "height": 12,
    "width": 15,
    "filters": 6,
    "kernel": 3,
}


def gelu_conv2d_rounded(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    approximate="none",
    out=None,
):
    """|x * w| before the bias and the sum before GELU, through it: half of each, for a rounding is
    off by half of an eps and both are seldom as far off as that in one place.
    """
    rounded = conv_rounded(input, weight, bias, stride, padding, dilation, groups)
    values = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    both = (rounded + values.abs()) / 2
    return through(functools.partial(F.gelu, approximate=approximate), values, both)


@fusion(
    "fused_gelu_conv2d",
    inputs=gelu_conv2d_arguments,
    cases=(
        with_options(small("pairs", "normal", **PAIRS), stride=[2, 1], padding=[0, 2]),
        with_options(small("same", "normal", **PAIRS), padding="same", dilation=[2, 1]),
        *conv_cases({"approximate": "tanh"}, {}, {"approximate": "tanh"}, {"out": True})[1:],
    ),
    check=RoundedBetween(magnitude=gelu_conv2d_size, rounded=gelu_conv2d_rounded),
    flops=ConvFlops(),
    mutates=("out",),
)
def fused_gelu_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] | str = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    approximate: str = "none",
    out: torch.Tensor | None = None,
):
    """GELU, exact (`none`) or by its `tanh` approximation, of the convolution of images
    (N, C, H, W) with filters (O, C / groups, h, w), plus biases (O,). Stride and dilation are
    numbers or pairs, so is the padding, or "same" or "valid"; `out` is written and returned.
    """
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return written(F.gelu(convolved, approximate=approximate), out)


def conv2d_add_arguments(make: Maker) -> Arguments:
    """Those of a convolution and a summand: a number, or a tensor of the result's shape (with
    `other` "row": of its last dimension; "none": absent).
    """
    image, weight, bias = conv_tensors(make)
    keywords = make.options("bias", "other", "out")
    given, shape = make.case.options.get("other", "full"), conv_shape(make)
    if isinstance(given, float):
        keywords["other"] = given
    elif given != "none":
        keywords["other"] = make.tensor(*(shape if given == "full" else shape[-1:]))
    if make.case.options.get("out"):
        keywords["out"] = make.out(*shape)
    return Arguments((image, weight, bias), keywords)


def conv2d_add_size(
    input,
    weight,
    bias=None,
    other=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    alpha=1,
    out=None,
):
    """sum |x||w| + |b| + |alpha other|."""
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    return size if other is None else size + abs(alpha * other)


@fusion(
    "fused_conv2d_add",
    inputs=conv2d_add_arguments,
    cases=conv_cases(
        {"alpha": 0.5},
        {"other": 2.5, "alpha": -1.5},
        {"other": "row", "alpha": 2, "out": True},
        {"other": "none"},
        half=False,
    ),
    check=Close(magnitude=conv2d_add_size),
    flops=ConvFlops(),
    mutates=("out",),
    differences=("`out` is written and returned; the published reference ignores it",),
)
def fused_conv2d_add(
    input,
    weight,
    bias=None,
    other=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    alpha=1,
    out=None,
):
    """x + alpha other of the convolution x of images (N, C, H, W) with filters (O, C / groups, h,
    w), plus biases (O,). `other` is a tensor that broadcasts with x, a number or None (nothing is
    added); `out` is written and returned.
    """
    result = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    if other is not None:
        result = result + alpha * other
    return written(result, out)


def pixel_shuffle_arguments(make: Maker) -> Arguments:
    """Those of a convolution with a multiple of upscale_factor^2 filters: so many to the square."""
    sizes = make.case.sizes
    options: Any = make.case.options
    factor, groups = options.get("upscale_factor", 2), options.get("groups", 1)
    kernel, depth = sizes["kernel"], sizes["channels"] // groups
    image = make.tensor(*(sizes[name] for name in ("batch", "channels", "height", "width")))
    filters = sizes["filters"] * factor**2
    weight = weights(make, filters, depth, kernel, kernel, fan=depth * kernel**2)
    keywords = make.options("bias")
    if make.case.options.get("bias", True):
        keywords["bias"] = make.tensor(filters, family="normal")
    return Arguments((image, weight), keywords)


def pixel_shuffle_conv2d_size(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, upscale_factor=2
):
    """Rounding errors of the convolution, shuffled as it is."""
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    return F.pixel_shuffle(size, upscale_factor)


def shuffled(name, family, sizes, dtype="float32", **options):
    """A small case; sizes are batch, channels, height, width, filters per place and kernel."""
    names = ("batch", "channels", "height", "width", "filters", "kernel")
    case = small(name, family, dtype, **dict(zip(names, sizes, strict=True)))
    return with_options(case, **options)


def pixel_shuffle_conv2d_rounded(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, upscale_factor=2
):
    """|x * w| before the bias, shuffled as it is."""
    rounded = conv_rounded(input, weight, bias, stride, padding, dilation, groups)
    return F.pixel_shuffle(rounded, upscale_factor)


@fusion(
    "fused_pixel_shuffle_conv2d",
    inputs=pixel_shuffle_arguments,
    cases=(
        shuffled("one", "normal", (1, 1, 1, 1, 1, 1)),
        shuffled("odd", "normal", (2, 3, 11, 7, 3, 3)),
        shuffled("strided", "shifted", (1, 4, 15, 13, 2, 3), stride=2, padding=1),
        shuffled("grouped", "normal", (2, 6, 9, 8, 3, 3), groups=2, dilation=2, upscale_factor=4),
        shuffled("three", "heavy_tail", (1, 5, 10, 9, 2, 5), padding=2, upscale_factor=3),
        shuffled("no-bias", "integers", (1, 3, 12, 8, 2, 3), bias=False),
        shuffled("same-size", "normal", (1, 4, 8, 9, 7, 3), upscale_factor=1),
        shuffled("half", "normal", (2, 16, 7, 9, 5, 3), "float16", padding=1),
        with_options(
            timed(
                "large", "normal", batch=24, channels=64, height=96, width=96, filters=32, kernel=3
            ),
            padding=1,
        ),
        timed("image", "normal", batch=16, channels=3, height=512, width=512, filters=3, kernel=3),
        with_options(
            timed(
                "four", "normal", batch=16, channels=32, height=128, width=128, filters=8, kernel=3
            ),
            padding=1,
            upscale_factor=4,
        ),
    ),
    check=RoundedBetween(magnitude=pixel_shuffle_conv2d_size, rounded=pixel_shuffle_conv2d_rounded),
    flops=ConvFlops(upscale=2),
    differences=(
        "the size `filters` of a case counts channels of the result: the convolution has "
        "upscale_factor^2 times as many",
    ),
)
def fused_pixel_shuffle_conv2d(
    input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, upscale_factor=2
):
    """The convolution of images (N, C, H, W) with filters (O r^2, C / groups, h, w) and biases
    (O r^2,), its channels laid out as squares of side r = upscale_factor: (N, O, r h', r w').
    """
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.pixel_shuffle(convolved, upscale_factor)


def max_pool2d_conv2d_size(
    input,
    weight,
    bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    pool_kernel_size=2,
    pool_stride=None,
    pool_padding=0,
    pool_dilation=1,
    pool_ceil_mode=False,
    inplace=False,
):
    """The largest rounding error of the convolution in each window."""
    size = conv_size(input, weight, bias, conv_stride, conv_padding, conv_dilation, conv_groups)
    window = pool_kernel_size, pool_stride, pool_padding, pool_dilation
    return F.max_pool2d(size, *window, ceil_mode=pool_ceil_mode)


def max_pool2d_conv2d_rounded(
    input,
    weight,
    bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    pool_kernel_size=2,
    pool_stride=None,
    pool_padding=0,
    pool_dilation=1,
    pool_ceil_mode=False,
    inplace=False,
):
    """|x * w| before the bias where the window's largest is: a channel has one bias, and rounding
    keeps the order, so the others' roundings are of no consequence.
    """
    layout = conv_stride, conv_padding, conv_dilation, conv_groups
    window = pool_kernel_size, pool_stride, pool_padding, pool_dilation
    pooled = functools.partial(F.max_pool2d, ceil_mode=pool_ceil_mode)
    largest = pooled(F.conv2d(input, weight, bias, *layout), *window)
    if bias is None:
        return torch.zeros_like(largest)
    rounded = pooled(F.conv2d(input, weight, None, *layout), *window).abs()
    size = pooled(conv_size(input, weight, bias, *layout), *window)
    return torch.where(surely_negative(largest, size), 0.0, rounded)


@fusion(
    "fused_relu_max_pool2d_conv2d",
    inputs=conv_arguments,
    cases=conv_cases(
        {"pool_kernel_size": 3, "pool_stride": 2, "pool_padding": 1},
        {"pool_stride": 1, "pool_dilation": 2},
        {"pool_kernel_size": 3, "pool_stride": 2, "pool_ceil_mode": True},
        {"inplace": True},
        prefix="conv_",
        batch=2,
    ),
    check=RoundedBetween(magnitude=max_pool2d_conv2d_size, rounded=max_pool2d_conv2d_rounded),
    flops=ConvFlops(),
)
def fused_relu_max_pool2d_conv2d(
    input,
    weight,
    bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    pool_kernel_size=2,
    pool_stride=None,
    pool_padding=0,
    pool_dilation=1,
    pool_ceil_mode=False,
    inplace=False,
):
    """max(x, 0) of the largest elements x in windows of a convolution: images (N, C, H, W),
    filters (O, C / groups, h, w), biases (O,). The pool's stride is its kernel unless given;
    padding never wins; `inplace` is about the intermediate.
    """
    convolved = F.conv2d(input, weight, bias, conv_stride, conv_padding, conv_dilation, conv_groups)
    window = pool_kernel_size, pool_stride, pool_padding, pool_dilation
    return F.relu(F.max_pool2d(convolved, *window, ceil_mode=pool_ceil_mode), inplace)
