"""Normalizations and the elementwise operators around them."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Sizes
from benchmark.suite.cost import per_element
from benchmark.suite.fusion.common import (
    batch_norm_size,
    layer_norm_size,
    per_channel,
    running_statistics_sizes,
    through,
    written,
)
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def batch_norm_arguments(make: Maker) -> Arguments:
    """Values (batch, channels, ...), running statistics, and scale and shift, left out by
    `affine=False`.
    """
    channels = make.size("channels")
    # Away from 0, so that the old statistics show in the new ones.
    tensors = [make.tensor(*make.case.shape), make.positive(channels), make.positive(channels)]
    if make.case.options.get("affine", True):
        tensors += [make.positive(channels), make.tensor(channels, family="normal")]
    return Arguments(tuple(tensors), make.options("affine"))


TRAINED = {"training": True, "momentum": 0.3}


def with_statistics(size, values, running_mean, running_var, training, momentum):
    """Sizes behind the result, and in training behind the statistics, given by position."""
    if not training:
        return size
    mean, variance = running_statistics_sizes(values, running_mean, running_var, momentum)
    return Sizes(size, {"argument[1]": mean, "argument[2]": variance})


def hardsigmoid_batch_norm_size(
    x,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
    inplace=False,
):
    """A sixth of the errors of the normalization, and of the 1/2 that is added; in training those
    of the running statistics.
    """
    statistics = running_mean, running_var, weight, bias, training, eps
    size = batch_norm_size(x, torch.zeros_like(x), *statistics) / 6 + 0.5
    return with_statistics(size, x, running_mean, running_var, training, momentum)


@fusion(
    "fused_hardsigmoid_batch_norm",
    inputs=batch_norm_arguments,
    cases=(
        small("one", "normal", batch=1, channels=1),
        small("odd", "normal", batch=3, channels=7, height=9, width=11),
        with_options(
            small("training", "scaled", batch=5, channels=3, height=8, width=13), **TRAINED
        ),
        with_options(small("plain", "normal", batch=37, channels=29), affine=False, eps=0.1),
        with_options(small("flat", "wide", batch=67, channels=31), training=True),
        with_options(small("line", "shifted", batch=4, channels=6, length=61), training=True),
        with_options(
            small("transposed", "normal", "float32", "transposed", batch=2, channels=5, h=8, w=9),
            inplace=True,
        ),
        timed("large", "scaled", batch=32, channels=128, height=112, width=112),
        with_options(
            timed("training", "scaled", batch=32, channels=128, height=112, width=112),
            training=True,
        ),
        timed("wide", "scaled", batch=1024, channels=32768),
    ),
    check=Close(magnitude=hardsigmoid_batch_norm_size),
    flops=per_element(8),
    mutates=("training",),
)
def fused_hardsigmoid_batch_norm(
    x: torch.Tensor,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-05,
    inplace: bool = False,
):
    """min(max(z / 6 + 1/2, 0), 1) of batch-normalized values z, (N, C) or (N, C, ...). In training
    the mean and the variance of each channel normalize, and move the running ones towards them by
    `momentum` (the variance with n - 1); otherwise the running ones do. `inplace` is about the
    intermediate: x stays as it is.
    """
    normalized = F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    return F.hardsigmoid(normalized, inplace)


def sigmoid_batch_norm_size(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
):
    """Errors of the normalization through the sigmoid; in training those of the running
    statistics.
    """
    statistics = running_mean, running_var, weight, bias, training
    size = batch_norm_size(input, torch.zeros_like(input), *statistics, eps)
    own = running_mean.clone(), running_var.clone()
    normalized = F.batch_norm(input, *own, weight, bias, training, momentum, eps)
    size = through(torch.sigmoid, normalized, size + normalized.abs())
    return with_statistics(size, input, running_mean, running_var, training, momentum)


@fusion(
    "fused_sigmoid_batch_norm",
    inputs=batch_norm_arguments,
    cases=(
        small("one", "normal", batch=1, channels=1),
        small("odd", "shifted", batch=37, channels=53),
        with_options(small("training", "scaled", batch=61, channels=30), **TRAINED),
        with_options(small("plain", "normal", batch=10, channels=5), affine=False, eps=0.1),
        with_options(small("tall", "heavy_tail", batch=1031, channels=3), training=True),
        with_options(small("tiny", "tiny", batch=64, channels=64), training=True, eps=0.001),
        small("transposed", "normal", layout="transposed", batch=33, channels=48),
        small("image", "normal", batch=3, channels=5, height=7, width=11),
        timed("large", "normal", batch=16384, channels=4096),
        with_options(timed("training", "normal", batch=32768, channels=2048), training=True),
        timed("wide", "shifted", batch=32, channels=1 << 20),
    ),
    check=Close(magnitude=sigmoid_batch_norm_size),
    flops=per_element(10),
    mutates=("training",),
)
def fused_sigmoid_batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
):
    """1 / (1 + exp(-z)) of batch-normalized values z, (N, C) or (N, C, ...). In training the mean
    and the variance of each channel normalize, and move the running ones towards them by
    `momentum` (the variance with n - 1); otherwise the running ones do.
    """
    normalized = F.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
    return torch.sigmoid(normalized)


def group_norm_arguments(make: Maker) -> Arguments:
    """Values, a second operand of their shape (or of (1, channels, 1...): `broadcast`), scale and
    shift (None each: `affine=False`), and the groups.
    """
    shape, options = make.case.shape, make.case.options
    channels = make.size("channels")
    other = (1, channels, *[1] * (len(shape) - 2)) if options.get("broadcast") else shape
    scale = shift = None
    if options.get("affine", True):
        scale, shift = make.positive(channels), make.tensor(channels, family="normal")
    groups = make.case.sizes.get("groups") or options.get("groups", 2)
    keywords = make.options("affine", "broadcast", "groups", "out")
    if options.get("out"):
        keywords["out"] = make.out(*shape)
    return Arguments((make.tensor(*shape), make.tensor(*other), scale, shift, groups), keywords)


def group_norm_size(input1, input2, weight, bias, num_groups, eps=1e-05, *, out=None):
    """(|a| + |b|) |b| through the normalization of the groups, scaled and shifted."""
    values = (input1 + input2) * input2
    size = ((input1.abs() + input2.abs()) * input2.abs()).reshape(len(values), num_groups, -1)
    grouped = values.reshape(len(values), num_groups, -1)
    size = layer_norm_size(grouped, size, -1, eps).reshape(values.shape)
    if weight is not None:
        size = size * per_channel(weight, values).abs()
    return size if bias is None else size + per_channel(bias, values).abs()


@fusion(
    "fused_add_mul_groupnorm",
    inputs=group_norm_arguments,
    cases=(
        small("odd", "normal", batch=3, channels=6, height=9, width=11),
        with_options(small("three", "shifted", batch=2, channels=9, height=7, width=5), groups=3),
        with_options(
            small("broadcast", "normal", batch=2, channels=8, height=8, width=13),
            broadcast=True,
            groups=4,
        ),
        with_options(
            small("plain", "heavy_tail", batch=2, channels=4, length=157), affine=False, groups=1
        ),
        with_options(small("eps", "tiny", batch=3, channels=4, h=8, w=8), eps=0.01),
        with_options(small("out", "mixed", batch=4, channels=16, h=8, w=16), out=True, groups=4),
        with_options(
            small("transposed", "normal", layout="transposed", batch=2, channels=6, h=12, w=8),
            groups=6,
        ),
        with_options(timed("large", "normal", batch=32, channels=64, h=128, w=128), groups=8),
        with_options(timed("long", "shifted", batch=2, channels=32, h=512, w=512), groups=4),
        with_options(timed("many", "normal", batch=64, channels=512, h=28, w=28), groups=32),
    ),
    check=Close(magnitude=group_norm_size),
    flops=per_element(8),
    mutates=("out",),
)
def fused_add_mul_groupnorm(input1, input2, weight, bias, num_groups, eps=1e-05, *, out=None):
    """Group normalization of (input1 + input2) * input2, (N, C, ...): the channels of each image,
    in `num_groups` groups, get mean 0 and variance 1 (`eps` added to the variance), then each
    channel its scale and shift, (C,) or None. `input2` broadcasts; `out` is written and returned.
    """
    values = (input1 + input2) * input2
    return written(F.group_norm(values, num_groups, weight, bias, eps), out)
