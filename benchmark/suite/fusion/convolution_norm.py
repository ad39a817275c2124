"""Convolutions followed by normalizations."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Mixture, Sizes
from benchmark.suite.fusion.common import (
    ConvFlops,
    batch_norm_size,
    conv_arguments,
    conv_cases,
    conv_size,
    conv_tensors,
    layer_norm_size,
    through,
)
from benchmark.suite.inputs import Maker, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def batch_norm_arguments(make: Maker) -> Arguments:
    """Those of a convolution, statistics, and scale and shift, left out by `affine=False`."""
    image, weight, bias = conv_tensors(make)
    filters = make.size("filters")
    keywords = make.options("bias", "affine") | {"bias": bias}
    # Away from 0: the updated mean is then no small difference.
    keywords |= {"running_mean": make.positive(filters), "running_var": make.positive(filters)}
    if make.case.options.get("affine", True):
        keywords["bn_weight"] = make.positive(filters)
        keywords["bn_bias"] = make.tensor(filters, family="normal")
    return Arguments((image, weight), keywords)


def relu_batch_norm_conv2d_size(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    running_mean=None,
    running_var=None,
    bn_weight=None,
    bn_bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
    inplace=False,
):
    """Rounding errors of the convolution through the normalization, and into the statistics in
    training; max(x, 0) keeps them.
    """
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    values = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    statistics = running_mean, running_var, bn_weight, bn_bias, training, eps
    changed = {}
    if training:
        squares = values.square() + 2 * values.abs() * size
        changed = {
            "argument.running_mean": running_mean.abs() + momentum * size.mean((0, 2, 3)),
            "argument.running_var": running_var + momentum * squares.mean((0, 2, 3)),
        }
    return Sizes(batch_norm_size(values, size, *statistics), changed)


@fusion(
    "fused_relu_batch_norm_conv2d",
    inputs=batch_norm_arguments,
    cases=conv_cases(
        {"training": True},
        {"training": True, "momentum": 0.3, "eps": 0.01},
        {"affine": False, "eps": 0.1},
        {"training": True, "inplace": True, "affine": False},
        half=False,
    ),
    check=Close(magnitude=relu_batch_norm_conv2d_size),
    flops=ConvFlops(),
    mutates=("training",),
)
def fused_relu_batch_norm_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    running_mean=None,
    running_var=None,
    bn_weight=None,
    bn_bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
    inplace=False,
):
    """max(x, 0) of a batch-normalized convolution of images (N, C, H, W). In training the mean and
    the variance of each filter's results normalize, and move the running ones towards them by
    `momentum` (the variance with n - 1); otherwise the running ones do. Scale and shift are (O,)
    or None; `inplace` is about the intermediate.
    """
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    normalized = F.batch_norm(
        convolved, running_mean, running_var, bn_weight, bn_bias, training, momentum, eps
    )
    return F.relu(normalized, inplace)


def instance_norm_selu_conv2d_size(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    num_features=None,
    eps=1e-05,
    momentum=0.1,
    affine=False,
    track_running_stats=False,
):
    """Rounding errors of the convolution, through SELU's slope of 1.76 and the normalization."""
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    values = F.selu(F.conv2d(input, weight, bias, stride, padding, dilation, groups))
    return layer_norm_size(values, 1.76 * size + values.abs(), (2, 3), eps)


@fusion(
    "fused_instance_norm_selu_conv2d",
    inputs=conv_arguments,
    cases=conv_cases(
        {"eps": 0.1},
        {"affine": True, "track_running_stats": True},
        {"num_features": 10, "momentum": 0.5},
        {},
        half=False,
    ),
    check=Close(magnitude=instance_norm_selu_conv2d_size),
    flops=ConvFlops(),
    differences=(
        "`affine`, `track_running_stats`, `momentum` and `num_features` are without effect, as "
        "published: the call has no scale, no shift and no running statistics",
    ),
)
def fused_instance_norm_selu_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    num_features=None,
    eps=1e-05,
    momentum=0.1,
    affine=False,
    track_running_stats=False,
):
    """SELU of a convolution of images (N, C, H, W) with filters (O, C / groups, h, w) and biases
    (O,), each channel of each image normalized to mean 0 and variance 1, with `eps` added to the
    variance (taken with n).
    """
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return F.instance_norm(F.selu(convolved), eps=eps)


def silu_layer_norm_arguments(make: Maker) -> Arguments:
    """Image, None for the unused weight, filters and biases."""
    image, weight, bias = conv_tensors(make)
    return Arguments((image, None, weight), make.options("bias") | {"conv_bias": bias})


def silu_layer_norm_conv2d_size(
    x,
    weight,
    conv_weight,
    conv_bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    ln_eps=1e-05,
):
    """Rounding errors of the convolution through the normalization and SiLU."""
    layout = conv_stride, conv_padding, conv_dilation, conv_groups
    values = F.conv2d(x, conv_weight, conv_bias, *layout)
    size = conv_size(x, conv_weight, conv_bias, *layout) + values.abs()
    normalized = F.layer_norm(values, values.shape[1:], eps=ln_eps)
    size = layer_norm_size(values, size, (1, 2, 3), ln_eps)
    return through(F.silu, normalized, size + normalized.abs())


@fusion(
    "fused_silu_layer_norm_conv2d",
    inputs=silu_layer_norm_arguments,
    cases=conv_cases({"ln_eps": 0.1}, {}, prefix="conv_", half=False),
    check=Close(magnitude=silu_layer_norm_conv2d_size),
    flops=ConvFlops(),
    differences=(
        "`weight` is always None: the published reference never reads it, and its tests pass None",
    ),
)
def fused_silu_layer_norm_conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    conv_weight: torch.Tensor,
    conv_bias: torch.Tensor | None = None,
    conv_stride: int = 1,
    conv_padding: int = 0,
    conv_dilation: int = 1,
    conv_groups: int = 1,
    ln_eps: float = 1e-05,
):
    """SiLU, z sigmoid(z), of a convolution of images (N, C, H, W) whose result is normalized image
    by image, over channels and places, to mean 0 and variance 1 (`ln_eps` added to the variance).
    `weight` is unused.
    """
    layout = conv_stride, conv_padding, conv_dilation, conv_groups
    convolved = F.conv2d(x, conv_weight, conv_bias, *layout)
    return F.silu(F.layer_norm(convolved, convolved.shape[1:], eps=ln_eps))


def dropped_arguments(make: Maker) -> Arguments:
    """Image and filters; biases, which the normalization takes away again, with `bias=True`."""
    image, weight, bias = conv_tensors(make)
    keywords = make.options("bias")
    if make.case.options.get("bias"):
        keywords["bias"] = bias
    return Arguments((image, weight), keywords)


def dropped_batch_norm(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    p=0.5,
    training=True,
    inplace=False,
):
    """What chance may leave of each element, with its probability."""
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    kept = F.relu(F.batch_norm(convolved, None, None, training=True))
    if not training:
        return ((1.0, kept),)
    return ((p, torch.zeros_like(kept)), (1 - p, kept / (1 - p)))


def dropped_batch_norm_size(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    p=0.5,
    training=True,
    inplace=False,
):
    """Rounding errors of the convolution through the normalization, scaled as what is kept."""
    size = conv_size(input, weight, bias, stride, padding, dilation, groups)
    values = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    size = batch_norm_size(values, size, None, None, None, None, True, 1e-05)
    return size / (1 - p if training else 1)


@fusion(
    "fused_dropout_relu_batch_norm_conv2d",
    inputs=dropped_arguments,
    # Without padding a scaled or shifted image is of no consequence: the statistics undo it.
    cases=tuple(
        with_options(case, **{"padding": 1, **case.options})
        for case in conv_cases(
            {"training": False, "bias": True},
            {"p": 0.2, "inplace": True},
            {"p": 0.8, "bias": True},
            {},
            half=False,
        )
    ),
    check=Mixture(dropped_batch_norm, Close(magnitude=dropped_batch_norm_size)),
    flops=ConvFlops(),
    draws=3,
    differences=(
        "no stream of numbers is asked for: each element is kept with probability 1 - p, "
        "independently of the others and of the last call",
        "outside training nothing is dropped and the batch's own statistics normalize still: the "
        "published reference fails there, having no others",
    ),
)
def fused_dropout_relu_batch_norm_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
):
    """max(x, 0) of a convolution of images (N, C, H, W) whose channels are normalized by the
    batch's mean and variance (1e-5 added to it), and in training a dropout of it: 0 with
    probability p, else divided by 1 - p. The mean takes `bias` out again; `inplace` is about the
    intermediate.
    """
    convolved = F.conv2d(input, weight, bias, stride, padding, dilation, groups)
    kept = F.relu(F.batch_norm(convolved, None, None, training=True))
    return F.dropout(kept, p, training, inplace)
