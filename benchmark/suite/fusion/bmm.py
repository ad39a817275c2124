"""Products of batches of matrices and what is done to them."""

import functools

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Mixture
from benchmark.suite.cost import matmul
from benchmark.suite.fusion.checks import Recovered
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


def two_batches(make: Maker) -> Arguments:
    """(batch, m, k) and (batch, k, n) that keeps the deviation."""
    batch, m, k, n = (make.size(name) for name in ("batch", "m", "k", "n"))
    return Arguments((make.tensor(batch, m, k), weights(make, batch, k, n, fan=k)), make.options())


def bmm_cases(*variants: dict):
    """The usual cases of a batched product before a dropout; the variants are dealt over the last
    five small ones.
    """
    checked = (
        small("batch", "normal", batch=5, m=7, k=31, n=23),
        small("shifted", "shifted", batch=2, m=13, k=48, n=40),
        small("integers", "integers", batch=3, m=9, k=16, n=37),
        small("transposed", "normal", layout="transposed", batch=2, m=12, k=33, n=48),
        small("heavy", "heavy_tail", batch=1, m=16, k=64, n=70),
    )
    return (
        small("one", "normal", batch=1, m=1, k=1, n=1),
        small("odd", "normal", batch=2, m=21, k=53, n=29),
        *(with_options(case, **variants[i % len(variants)]) for i, case in enumerate(checked)),
        timed("large", "normal", batch=32, m=1024, k=1024, n=1024),
        timed("flat", "normal", batch=64, m=2048, k=128, n=512),
        with_options(timed("odd", "shifted", batch=13, m=1021, k=2039, n=1531), **variants[0]),
    )


def dropped_bmm_gelu(
    input1, input2, p=0.5, training=True, inplace=False, approximate="none", *, out=None
):
    """What chance may leave of each element, with its probability."""
    values = torch.bmm(input1, input2)
    if not training:
        return ((1.0, F.gelu(values, approximate=approximate)),)
    kept = F.gelu(values / (1 - p), approximate=approximate)
    return ((p, torch.zeros_like(kept)), (1 - p, kept))


def dropped_bmm_gelu_size(
    input1, input2, p=0.5, training=True, inplace=False, approximate="none", *, out=None
):
    """sum |a||b| through GELU, and |x| behind its small results."""
    scale = 1 - p if training else 1
    values = torch.bmm(input1, input2) / scale
    size = torch.bmm(input1.abs(), input2.abs()) / scale
    return through(functools.partial(F.gelu, approximate=approximate), values, size) + values.abs()


@fusion(
    "fused_bmm_dropout_gelu",
    inputs=two_batches,
    cases=bmm_cases(
        {"training": False, "p": 0.3},
        {"p": 0.2, "approximate": "tanh"},
        {"p": 0.7, "inplace": True},
    ),
    check=Mixture(dropped_bmm_gelu, Close(magnitude=dropped_bmm_gelu_size)),
    flops=matmul(),
    draws=3,
    differences=(FREE, NO_OUT),
)
def fused_bmm_dropout_gelu(
    input1, input2, p=0.5, training=True, inplace=False, approximate="none", *, out=None
):
    """GELU, exact (`none`) or by its `tanh` approximation, of the batched product (b, m, k) @
    (b, k, n), in training after a dropout: 0 with probability p, else divided by 1 - p. `inplace`
    is about the intermediate.
    """
    dropped = F.dropout(torch.bmm(input1, input2), p, training, inplace)
    return written(F.gelu(dropped, approximate=approximate), out)


def two_batches_and_shape(make: Maker) -> Arguments:
    """Those of a batched product and its width, in a tuple with `tuple=True`."""
    arguments, n = two_batches(make), make.size("n")
    keywords = {k: v for k, v in arguments.kwargs.items() if k != "tuple"}
    shape = (n,) if make.case.options.get("tuple") else n
    return Arguments((*arguments.args, shape), keywords)


def root_mean_square_norm(values, eps):
    """Rows divided by the root of their mean square."""
    return values * torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)


def norm_gelu(input1, input2, approximate, eps):
    """GELU of the normalized product."""
    values = root_mean_square_norm(torch.bmm(input1, input2), eps)
    return F.gelu(values, approximate=approximate)


def norm_gelu_size(input1, input2, approximate, eps):
    """sum |a||b| through the normalization and GELU, and |x| behind its small results."""
    values = torch.bmm(input1, input2)
    size = torch.bmm(input1.abs(), input2.abs()) + values.abs()
    scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    shown = (values * scale).abs()
    size = scale * (size + shown * (shown * size).mean(-1, keepdim=True))
    curve = functools.partial(F.gelu, approximate=approximate)
    return through(curve, values * scale, size) + shown


def dropped_norm(
    input1,
    input2,
    normalized_shape,
    dropout_p=0.1,
    eps=1e-05,
    training=True,
    approximate="none",
    *,
    out=None,
):
    """What chance may leave of each element, with its probability."""
    kept = norm_gelu(input1, input2, approximate, eps)
    if not training:
        return ((1.0, kept),)
    return ((dropout_p, torch.zeros_like(kept)), (1 - dropout_p, kept / (1 - dropout_p)))


def dropped_norm_size(
    input1,
    input2,
    normalized_shape,
    dropout_p=0.1,
    eps=1e-05,
    training=True,
    approximate="none",
    *,
    out=None,
):
    """The size of what is kept."""
    return norm_gelu_size(input1, input2, approximate, eps) / (1 - dropout_p if training else 1)


@fusion(
    "fused_bmm_rmsnorm_gelu_dropout",
    inputs=two_batches_and_shape,
    cases=bmm_cases(
        {"training": False, "approximate": "tanh"},
        {"dropout_p": 0.3, "eps": 0.1},
        {"dropout_p": 0.7, "tuple": True},
    ),
    check=Mixture(dropped_norm, Close(magnitude=dropped_norm_size)),
    flops=matmul(),
    draws=3,
    differences=(FREE, NO_OUT),
)
def fused_bmm_rmsnorm_gelu_dropout(
    input1,
    input2,
    normalized_shape,
    dropout_p=0.1,
    eps=1e-05,
    training=True,
    approximate="none",
    *,
    out=None,
):
    """The batched product (b, m, k) @ (b, k, n), each row divided by the root of its mean square
    plus `eps`, then GELU, then in training a dropout: 0 with probability dropout_p, else divided by
    1 - dropout_p. `normalized_shape` is n, as a number or a tuple.
    """
    values = root_mean_square_norm(torch.bmm(input1, input2), eps)
    return written(F.dropout(F.gelu(values, approximate=approximate), dropout_p, training), out)


def two_batches_other_and_shape(make: Maker) -> Arguments:
    """Those of a batched product, a subtrahend of its shape or its last dimension, its width."""
    arguments = two_batches_and_shape(make)
    left, right, shape = arguments.args
    row = arguments.kwargs.pop("row", False)
    sizes = (make.size("n"),) if row else tuple(make.size(name) for name in ("batch", "m", "n"))
    return Arguments((left, right, make.tensor(*sizes, family="normal"), shape), arguments.kwargs)


def dropped_norm_sub(
    input1,
    input2,
    other,
    normalized_shape,
    dropout_p=0.5,
    training=True,
    approximate="none",
    eps=1e-05,
    *,
    out=None,
):
    """What chance may leave of each element, with its probability."""
    kept = norm_gelu(input1, input2, approximate, eps)
    if not training:
        return ((1.0, kept - other),)
    left = torch.zeros_like(kept) - other
    return ((dropout_p, left), (1 - dropout_p, kept / (1 - dropout_p) - other))


def dropped_norm_sub_size(
    input1,
    input2,
    other,
    normalized_shape,
    dropout_p=0.5,
    training=True,
    approximate="none",
    eps=1e-05,
    *,
    out=None,
):
    """The size of what is kept, and |other|."""
    size = norm_gelu_size(input1, input2, approximate, eps)
    kept = norm_gelu(input1, input2, approximate, eps).abs()
    return (size + kept) / (1 - dropout_p if training else 1) + other.abs()


@fusion(
    "fused_bmm_rmsnorm_gelu_dropout_sub",
    inputs=two_batches_other_and_shape,
    cases=bmm_cases(
        {"training": False, "approximate": "tanh"},
        {"dropout_p": 0.2, "eps": 0.1},
        {"dropout_p": 0.7, "tuple": True, "row": True},
    ),
    check=Mixture(dropped_norm_sub, Close(magnitude=dropped_norm_sub_size)),
    flops=matmul(),
    draws=3,
    differences=(
        "`other` is subtracted, as described: the published reference forgets it",
        FREE,
        NO_OUT,
    ),
)
def fused_bmm_rmsnorm_gelu_dropout_sub(
    input1,
    input2,
    other,
    normalized_shape,
    dropout_p=0.5,
    training=True,
    approximate="none",
    eps=1e-05,
    *,
    out=None,
):
    """The batched product (b, m, k) @ (b, k, n), each row divided by the root of its mean square
    plus `eps`, then GELU, in training a dropout (0 with probability dropout_p, else divided by 1 -
    dropout_p), minus `other`, which broadcasts. `normalized_shape` is n, as a number or a tuple.
    """
    values = root_mean_square_norm(torch.bmm(input1, input2), eps)
    kept = F.dropout(F.gelu(values, approximate=approximate), dropout_p, training)
    return written(torch.sub(kept, other), out)


def logsoftmax_arguments(make: Maker) -> Arguments:
    """Factors and summand (batch, m, k) and a second matrix (batch, k, n): dense, in training
    orthogonal, so that its product can be undone.
    """
    batch, m, k, n = (make.size(name) for name in ("batch", "m", "k", "n"))
    first = [make.tensor(batch, m, k), make.tensor(batch, m, k, family="normal")]
    other = make.tensor(batch, m, k, family="normal")
    if make.case.options.get("training", True):
        assert k == n, "undoing needs a square matrix"
        axis = make.randn(batch, k, 1, dtype=torch.float64)
        mirror = torch.eye(k, dtype=torch.float64, device=make.device)
        mirror = mirror - axis @ (2 * axis / axis.square().sum(1, keepdim=True)).mT
        second = mirror.roll(1, -1).to(make.dtype)
    else:
        second = weights(make, batch, k, n, fan=k)
    return Arguments((*first, other, second), make.options())


def dropped_logs(
    input1, input2, other, mat2, p=0.5, training=True, inplace=False, dim=-1, *, out=None
):
    """What chance may leave of each element of the log_softmax; outside training the product."""
    logs = torch.log_softmax(input1 * input2 + other, dim)
    if not training:
        return ((1.0, torch.bmm(logs, mat2)),)
    return ((p, torch.zeros_like(logs)), (1 - p, logs / (1 - p)))


def dropped_logs_size(
    input1, input2, other, mat2, p=0.5, training=True, inplace=False, dim=-1, *, out=None
):
    """Errors of the logarithms through the product, and in training through its undoing."""
    values = input1 * input2 + other
    size = log_softmax_size(values, (input1 * input2).abs() + other.abs(), dim)
    size = size + torch.log_softmax(values, dim).abs()
    if not training:
        return torch.bmm(size, mat2.abs())
    return torch.bmm(torch.bmm(size / (1 - p), mat2.abs()), mat2.abs().mT)


def undone_product(
    output, input1, input2, other, mat2, p=0.5, training=True, inplace=False, dim=-1, *, out=None
):
    """The product with an orthogonal matrix, undone."""
    return torch.bmm(output, mat2.mT) if training else output


@fusion(
    "fused_mul_add_logsoftmax_dropout_bmm",
    inputs=logsoftmax_arguments,
    cases=(
        small("one", "normal", batch=1, m=1, k=2, n=2),
        small("odd", "normal", batch=2, m=17, k=29, n=29),
        with_options(small("eval", "normal", batch=3, m=7, k=33, n=24), training=False),
        with_options(small("first", "shifted", batch=1, m=23, k=40, n=40), dim=1, p=0.3),
        with_options(small("inplace", "scaled", batch=1, m=17, k=48, n=48), p=0.7, inplace=True),
        with_options(
            small("transposed", "normal", layout="transposed", batch=1, m=24, k=37, n=19),
            training=False,
            dim=1,
        ),
        timed("large", "normal", batch=16, m=1024, k=1024, n=1024),
        with_options(timed("odd", "shifted", batch=32, m=1021, k=499, n=499), p=0.1),
        with_options(timed("eval", "normal", batch=16, m=1024, k=1024, n=768), training=False),
    ),
    check=Recovered(dropped_logs, Close(magnitude=dropped_logs_size), recover=undone_product),
    flops=matmul(),
    draws=3,
    differences=(
        FREE,
        NO_OUT,
        "in training the second matrix is orthogonal, so that its product can be undone and the "
        "dropout's own result be judged",
    ),
)
def fused_mul_add_logsoftmax_dropout_bmm(
    input1, input2, other, mat2, p=0.5, training=True, inplace=False, dim=-1, *, out=None
):
    """The batched product of log_softmax(input1 * input2 + other) along `dim`, (b, m, k), with mat2
    (b, k, n); in training a dropout comes before the product: 0 with probability p, else divided
    by 1 - p. `inplace` is about the intermediate.
    """
    logs = F.log_softmax(input1 * input2 + other, dim)
    return written(torch.bmm(F.dropout(logs, p, training, inplace), mat2), out)
