"""Products of a matrix with a vector and what is done to them."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Mixture
from benchmark.suite.cost import matmul
from benchmark.suite.fusion.common import (
    FREE,
    NO_OUT,
    log_softmax_size,
    through,
    weights,
    written,
)
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def matrix_vector_other(make: Maker) -> Arguments:
    """A matrix, a vector that keeps its deviation, and a subtrahend: (m,) or a number."""
    m, k = make.size("m"), make.size("k")
    other = make.case.options.get("other")
    if other is None:
        other = make.tensor(m, family="normal")
    keywords = make.options("other", "out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(m)
    return Arguments((make.tensor(m, k), weights(make, k, fan=k), other), keywords)


def mv_sigmoid_sub_size(input, vec, other, alpha=1, *, out=None):
    """sum |a||v| through the sigmoid, and both terms of the difference."""
    values, size = torch.mv(input, vec), torch.mv(input.abs(), vec.abs())
    return through(torch.sigmoid, values, size) + torch.sigmoid(values) + abs(alpha * other)


@fusion(
    "fused_mv_sigmoid_sub",
    inputs=matrix_vector_other,
    cases=(
        small("one", "normal", m=1, k=1),
        small("odd", "normal", m=128, k=97),
        with_options(small("number", "shifted", m=61, k=131), other=0.5, alpha=2),
        with_options(small("wide", "heavy_tail", m=7, k=1009), alpha=-0.5),
        with_options(small("tall", "scaled", m=517, k=9), alpha=0.3),
        with_options(small("out", "normal", m=64, k=128), out=True, alpha=1.5),
        small("transposed", "normal", layout="transposed", m=90, k=77),
        small("half", "normal", "float16", m=65, k=120),
        timed("large", "normal", m=16384, k=8192),
        with_options(timed("wide", "normal", m=2048, k=65536), other=0.5, alpha=2),
        timed("half", "normal", "float16", m=16384, k=16384),
    ),
    check=Close(magnitude=mv_sigmoid_sub_size, narrow_intermediates=True),
    flops=matmul("m", "k"),
    mutates=("out",),
)
def fused_mv_sigmoid_sub(input, vec, other, alpha=1, *, out=None):
    """sigmoid(input vec) - alpha * other for a matrix (m, k) and a vector (k,); `other` is (m,) or
    a number; `out` is written and returned.
    """
    return torch.sub(torch.sigmoid(torch.mv(input, vec)), other, alpha=alpha, out=out)


def matrix_vector(make: Maker) -> Arguments:
    """A matrix and a vector that keeps its deviation."""
    m, k = make.size("m"), make.size("k")
    return Arguments((make.tensor(m, k), weights(make, k, fan=k)), make.options())


def dropped_logsoftmax(input, vec, p=0.5, training=True, inplace=False, dim=0, *, out=None):
    """What chance may leave of each element, with its probability."""
    kept = torch.log_softmax(torch.mv(input, vec), dim)
    if not training:
        return ((1.0, kept),)
    return ((p, torch.zeros_like(kept)), (1 - p, kept / (1 - p)))


def dropped_logsoftmax_size(input, vec, p=0.5, training=True, inplace=False, dim=0, *, out=None):
    """Errors of the product and of log_softmax, scaled as what is kept."""
    values, size = torch.mv(input, vec), torch.mv(input.abs(), vec.abs())
    return log_softmax_size(values, size, dim) / (1 - p if training else 1)


@fusion(
    "fused_mv_logsoftmax_dropout",
    inputs=matrix_vector,
    cases=(
        small("one", "normal", m=1, k=1),
        small("odd", "normal", m=1021, k=13),
        with_options(small("eval", "shifted", m=61, k=131), training=False),
        with_options(small("wide", "heavy_tail", m=83, k=109), p=0.2, inplace=True),
        with_options(small("tall", "scaled", m=1500, k=9), p=0.7, dim=-1),
        small("transposed", "normal", layout="transposed", m=190, k=77),
        small("half", "normal", "float16", m=320, k=48),
        timed("large", "normal", m=16384, k=8192),
        with_options(timed("tall", "normal", m=262144, k=256), p=0.1),
        timed("half", "normal", "float16", m=16384, k=16384),
    ),
    check=Mixture(dropped_logsoftmax, Close(magnitude=dropped_logsoftmax_size)),
    flops=matmul("m", "k"),
    draws=3,
    differences=(FREE, NO_OUT),
)
def fused_mv_logsoftmax_dropout(
    input, vec, p=0.5, training=True, inplace=False, dim=0, *, out=None
):
    """log_softmax(input vec) for a matrix (m, k) and a vector (k,), and in training a dropout of
    it: 0 with probability p, else divided by 1 - p. `dim` is 0 or -1, the only one; `inplace` is
    about the intermediate.
    """
    logs = F.log_softmax(torch.mv(input, vec), dim)
    return written(F.dropout(logs, p, training, inplace), out)
