"""Linear layers and what follows them."""

import functools

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Mixture
from benchmark.suite.cost import matmul
from benchmark.suite.fusion.common import (
    layer_norm_size,
    linear_arguments,
    linear_cases,
    linear_size,
    log_softmax_size,
    through,
)
from benchmark.suite.inputs import small, timed, with_options
from benchmark.suite.registry import category

fusion = category("Fusion")


def tanh_linear_size(input, weight, bias=None):
    """Rounding errors of the product through tanh."""
    return through(torch.tanh, F.linear(input, weight, bias), linear_size(input, weight, bias))


@fusion(
    "fused_tanh_linear",
    inputs=linear_arguments,
    cases=linear_cases({}),
    check=Close(magnitude=tanh_linear_size),
    flops=matmul(),
)
def fused_tanh_linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None):
    """tanh(input weight^T + bias) for inputs (*, in), weights (out, in) and biases (out,)."""
    return torch.tanh(F.linear(input, weight, bias))


def elu_linear_size(input, weight, bias=None, alpha=1.0, inplace=False):
    """Rounding errors of the product through ELU; 1 behind exp(x) - 1."""
    values, size = F.linear(input, weight, bias), linear_size(input, weight, bias)
    own = torch.where(values < 0, abs(alpha) * torch.exp(values.clamp(max=0)), 0.0)
    return max(1.0, abs(alpha)) * torch.where(values < 0, own * size, size) + own


@fusion(
    "fused_elu_linear",
    inputs=linear_arguments,
    cases=linear_cases({"alpha": 0.5}, {"alpha": 1.7, "inplace": True}),
    check=Close(magnitude=elu_linear_size),
    flops=matmul(),
)
def fused_elu_linear(input, weight, bias=None, alpha=1.0, inplace=False):
    """ELU(x) of x = input weight^T + bias: x where positive, else alpha (exp(x) - 1). `inplace` is
    about the intermediate: the arguments stay as they are.
    """
    return F.elu(F.linear(input, weight, bias), alpha, inplace)


def softplus_linear_size(input, weight, bias=None, beta=1, threshold=20):
    """Rounding errors of the product through softplus."""
    curve = functools.partial(F.softplus, beta=beta, threshold=threshold)
    values, size = F.linear(input, weight, bias), linear_size(input, weight, bias)
    return through(curve, values, size + values.abs())


@fusion(
    "fused_softplus_linear",
    inputs=linear_arguments,
    cases=linear_cases({"beta": 2}, {"beta": 0.5}, {"beta": 2, "threshold": 4}),
    check=Close(magnitude=softplus_linear_size),
    flops=matmul(),
    differences=(
        "the threshold is compared with beta x, as the description and PyTorch say: the published "
        "reference compares x and overflows where beta is large",
    ),
)
def fused_softplus_linear(input, weight, bias=None, beta=1, threshold=20):
    """log(1 + exp(beta x)) / beta of x = input weight^T + bias; x itself where beta x is above the
    threshold. Small results keep their digits.
    """
    return F.softplus(F.linear(input, weight, bias), beta, threshold)


def log_softmax_linear_size(input, weight, bias=None, dim=-1, dtype=None):
    """Rounding errors of the product and of log_softmax."""
    values, size = F.linear(input, weight, bias), linear_size(input, weight, bias)
    return log_softmax_size(values, size, dim)


@fusion(
    "fused_log_softmax_linear",
    inputs=linear_arguments,
    cases=(
        small("one", "normal", m=1, k=1, n=1),
        small("odd", "scaled", m=37, k=53, n=29),
        small("transposed", "normal", layout="transposed", m=33, k=65, n=56),
        with_options(small("first", "shifted", m=41, k=31, n=24), dim=0),
        with_options(small("middle", "normal", batch=3, m=17, k=33, n=24), dim=1),
        with_options(small("no-bias", "heavy_tail", m=17, k=64, n=129), bias=False),
        small("half", "normal", "float16", m=32, k=65, n=48),
        with_options(small("narrow", "normal", "float64", m=19, k=23, n=37), dtype="float32"),
        timed("large", "normal", m=8192, k=4096, n=4096),
        with_options(timed("first", "normal", m=4096, k=8192, n=2048), dim=0),
        timed("half", "normal", "float16", m=8192, k=4096, n=8192),
    ),
    check=Close(magnitude=log_softmax_linear_size),
    flops=matmul(),
    differences=(
        "`dtype` is asked for where it narrows the result: a float64 result of a float32 product "
        "has no digits to compare",
    ),
)
def fused_log_softmax_linear(input, weight, bias=None, dim=-1, dtype=None):
    """log_softmax(input weight^T + bias) along `dim`; `dtype` converts the product first and is
    that of the result.
    """
    return F.log_softmax(F.linear(input, weight, bias), dim, dtype=dtype)


def layer_norm_relu_linear_size(
    input, weight, bias=None, normalized_shape=None, eps=1e-05, elementwise_affine=True
):
    """Rounding errors of the product through max(x, 0) and the normalization."""
    values = torch.relu(F.linear(input, weight, bias))
    return layer_norm_size(values, linear_size(input, weight, bias), -1, eps)


@fusion(
    "fused_layer_norm_relu_linear",
    inputs=linear_arguments,
    cases=(
        small("odd", "normal", m=37, k=53, n=29),
        small("transposed", "normal", layout="transposed", m=33, k=65, n=56),
        with_options(small("shape", "shifted", batch=3, m=11, k=33, n=24), normalized_shape=24),
        with_options(small("list", "normal", m=17, k=33, n=70), normalized_shape=[70]),
        with_options(small("eps", "tiny", m=21, k=47, n=38), eps=0.1),
        with_options(small("no-bias", "heavy_tail", m=17, k=64, n=112), bias=False),
        with_options(small("plain", "normal", m=9, k=5, n=3), elementwise_affine=False),
        timed("large", "normal", m=8192, k=4096, n=4096),
        timed("deep", "normal", m=2048, k=16384, n=2048),
        timed("odd", "shifted", m=8191, k=3001, n=2053),
    ),
    check=Close(magnitude=layer_norm_relu_linear_size),
    flops=matmul(),
    differences=(
        "`normalized_shape` None, at which the published reference fails, means the features of "
        "the layer",
        "`elementwise_affine` is without effect, as published: the call has no scale and no shift",
    ),
)
def fused_layer_norm_relu_linear(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    normalized_shape: torch.Size | None = None,
    eps: float = 1e-05,
    elementwise_affine: bool = True,
):
    """Layer normalization of max(input weight^T + bias, 0) over its features: mean 0, variance 1,
    with `eps` added to the variance. `normalized_shape` is the number of features, as a number or
    a tuple of one.
    """
    values = F.relu(F.linear(input, weight, bias))
    return F.layer_norm(values, (weight.shape[0],), eps=eps)


def dropped_sigmoid(input, weight, bias=None, p=0.5, training=True, inplace=False):
    """What chance may leave of each element, with its probability."""
    kept = torch.sigmoid(F.linear(input, weight, bias))
    if not training:
        return ((1.0, kept),)
    return ((p, torch.zeros_like(kept)), (1 - p, kept / (1 - p)))


def dropped_sigmoid_size(input, weight, bias=None, p=0.5, training=True, inplace=False):
    """Rounding errors of the product through the scaled sigmoid."""
    values, size = F.linear(input, weight, bias), linear_size(input, weight, bias)
    return through(torch.sigmoid, values, size + values.abs()) / (1 - p if training else 1)


@fusion(
    "fused_dropout_sigmoid_linear",
    inputs=linear_arguments,
    cases=linear_cases({"p": 0.2}, {"training": False}, {"p": 0.7, "inplace": True}, half=False),
    check=Mixture(dropped_sigmoid, Close(magnitude=dropped_sigmoid_size)),
    flops=matmul(),
    draws=3,
    differences=(
        "no stream of numbers is asked for: each element is kept with probability 1 - p, "
        "independently of the others and of the last call",
    ),
)
def fused_dropout_sigmoid_linear(
    input: torch.Tensor, weight: torch.Tensor, bias=None, p=0.5, training=True, inplace=False
):
    """sigmoid(input weight^T + bias), and in training a dropout of it: 0 with probability p, else
    divided by 1 - p. `inplace` is about the intermediate: the arguments stay as they are.
    """
    return F.dropout(torch.sigmoid(F.linear(input, weight, bias)), p, training, inplace)
