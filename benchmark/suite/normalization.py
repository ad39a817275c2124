"""Normalizations, and norms of matrices and distances."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Sizes
from benchmark.suite.cost import per_element, product
from benchmark.suite.inputs import Maker, small, timed, two_tensors, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

normalization = category("Normalization")


def images_and_statistics(make: Maker) -> Arguments:
    """Input (n, c, ...), running mean and variance in float32, and on request weight and bias."""
    channels = make.size("c")
    mean = make.randn(channels)
    variance = make.rand(channels) * 3 + 0.1
    keywords = make.options("affine")
    if make.case.options.get("affine"):
        keywords["weight"] = make.rand(channels) * 3 - 1
        keywords["bias"] = make.randn(channels)
    return Arguments((make.tensor(*make.case.shape), mean, variance), keywords)


def channel_shape(input):
    """(1, c, 1, ...): what broadcasts with the input."""
    return (1, -1) + (1,) * (input.dim() - 2)


def batch_norm_magnitude(
    input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-5
):
    """(|x| + |mean|) / deviation |w| + |b|; of running statistics the terms of both sums."""
    dims, shape = [d for d in range(input.dim()) if d != 1], channel_shape(input)
    mean, variance, changed = running_mean, running_var, {}
    if training:
        mean = input.abs().mean(dims)
        squares, count = input.square().mean(dims), input.numel() / len(mean)
        variance = input.var(dims, correction=0)
        changed = {
            "argument[1]": running_mean.abs() + momentum * mean,
            "argument[2]": running_var + momentum * squares * count / max(count - 1, 1),
        }
    size = (input.abs() + mean.abs().view(shape)) / (variance + eps).sqrt().view(shape)
    if weight is not None:
        size = size * weight.abs().view(shape) + bias.abs().view(shape)
    return Sizes(size, changed)


@normalization(
    "batch_norm",
    inputs=images_and_statistics,
    cases=(
        with_options(small("pair", "normal", n=2, c=1), training=True, eps=0.1),
        with_options(small("odd", "heavy_tail", n=5, c=3, h=13, w=17), affine=True),
        with_options(small("training", "shifted", n=7, c=5, h=9, w=11), training=True, affine=True),
        with_options(
            small("momentum", "mixed", n=33, c=48), training=True, momentum=0.4, affine=True
        ),
        with_options(small("sequence", "scaled", n=3, c=17, length=65), eps=0.5),
        with_options(
            small("strided", "shifted", layout="strided", n=2, c=6, h=16, w=19),
            training=True,
            momentum=0.9,
            eps=0.01,
        ),
        with_options(small("half", "normal", "float16", n=4, c=8, h=12, w=15), affine=True),
        with_options(
            small("half-training", "shifted", "float16", n=4, c=8, h=12, w=15),
            affine=True,
            training=True,
        ),
        with_options(
            timed("training", "mixed", n=64, c=64, h=112, w=112), training=True, affine=True
        ),
        with_options(timed("half", "mixed", "float16", n=32, c=32, h=640, w=128), affine=True),
        with_options(timed("odd", "mixed", n=31, c=96, h=93, w=91), affine=True),
    ),
    check=Close(magnitude=batch_norm_magnitude),
    flops=per_element(4),
    mutates=("training",),
    differences=("running statistics after training are judged too, and float16 input is checked",),
)
def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-05,
):
    """(x - mean) / sqrt(var + eps) * weight + bias for each channel of (N, C, ...). Mean and
    variance are the running ones (C), or in `training` those of the batch (variance divided by n);
    then running statistics become (1 - momentum) running + momentum batch in place, with the
    variance divided by n - 1. Statistics, weight and bias are float32, the result has the input's
    dtype.
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def distance_magnitude(
    x1,
    x2,
    p_distance=2.0,
    eps_distance=1e-6,
    keepdim=False,
    p_norm=2,
    dim_norm=1,
    eps_norm=1e-12,
):
    """Powers but 1 and 2 come out of logarithms: 8 roundings of the result."""
    exact = p_distance in (1, 2) and p_norm in (1, 2)
    settings = (p_distance, eps_distance, keepdim, p_norm, dim_norm, eps_norm)
    return (1 if exact else 8) * normalize_pairwise_distance(x1, x2, *settings)


@normalization(
    "normalize_pairwise_distance",
    inputs=two_tensors,
    cases=(
        with_options(small("one", "normal", a=1, b=1, c=1), keepdim=True),
        small("odd", "heavy_tail", a=3, b=37, c=53),
        with_options(small("matrix", "shifted", rows=65, columns=31), dim_norm=0, p_distance=1.0),
        with_options(small("kept", "mixed", rows=33, columns=48), dim_norm=0, keepdim=True),
        with_options(small("sum", "scaled", a=5, b=17, c=67), p_norm=1, dim_norm=-2, keepdim=True),
        with_options(small("cubes", "wide", a=4, b=29, c=41), p_distance=3.0, p_norm=3),
        with_options(small("shift", "tiny", a=2, b=19, c=129), eps_distance=0.05, p_distance=1.0),
        with_options(small("floor", "tiny", a=2, b=31, c=64), eps_norm=0.5),
        with_options(
            small("transposed", "normal", layout="transposed", a=3, b=21, c=44), dim_norm=0
        ),
        timed("large", "mixed", a=16, b=32768, c=128),
        with_options(timed("sum", "mixed", a=64, b=1021, c=1021), p_distance=1.0, p_norm=1),
        with_options(timed("matrix", "mixed", rows=65536, columns=512), dim_norm=0),
    ),
    check=Close(magnitude=distance_magnitude),
    flops=per_element(4),
    differences=(
        "2-D inputs come with `dim_norm` 0: with the published default of 1 the reference fails, "
        "as their distances have one dimension",
    ),
)
def normalize_pairwise_distance(
    x1,
    x2,
    p_distance=2.0,
    eps_distance=1e-06,
    keepdim=False,
    p_norm=2,
    dim_norm=1,
    eps_norm=1e-12,
):
    """d = (sum |x1 - x2 + eps_distance|^p)^(1/p) with p = p_distance over the last dimension (kept
    as size 1 on request), divided by max(||d||, eps_norm) with the `p_norm` norm over dimension
    `dim_norm` of d.
    """
    distance = F.pairwise_distance(x1, x2, p=p_distance, eps=eps_distance, keepdim=keepdim)
    return F.normalize(distance, p=p_norm, dim=dim_norm, eps=eps_norm)


def cosine_magnitude(x1, x2, dim=1, eps_similarity=1e-8, p_norm=2.0, eps_norm=1e-12):
    """The same of |x1| and |x2|: the terms of the dot product; 8 roundings for other powers."""
    factor = 1 if p_norm in (1, 2) else 8
    settings = (dim, eps_similarity, p_norm, eps_norm)
    return factor * normalized_cosine_similarity(x1.abs(), x2.abs(), *settings)


@normalization(
    "normalized_cosine_similarity",
    inputs=two_tensors,
    cases=(
        small("one", "normal", rows=1, columns=1),
        small("odd", "heavy_tail", rows=37, columns=53),
        with_options(
            small("first", "mixed", rows=211, columns=7), dim=0, p_norm=1, eps_similarity=0.5
        ),
        with_options(
            small("middle", "shifted", a=3, b=31, c=17), dim=1, p_norm=3, eps_similarity=1.5
        ),
        with_options(small("floor", "normal", rows=33, columns=48), eps_similarity=1.5),
        with_options(
            small("tiny", "tiny", rows=19, columns=257), eps_norm=0.05, eps_similarity=0.5
        ),
        with_options(
            small("transposed", "normal", layout="transposed", rows=21, columns=130), dim=-1
        ),
        with_options(small("strided", "scaled", layout="strided", a=2, b=9, c=65), dim=2, p_norm=1),
        timed("large", "mixed", rows=32768, columns=2048),
        with_options(timed("first", "mixed", rows=2048, columns=16384), dim=0),
        with_options(timed("odd", "mixed", rows=40009, columns=1021), p_norm=1),
    ),
    check=Close(magnitude=cosine_magnitude),
    flops=per_element(10),
)
def normalized_cosine_similarity(
    x1: torch.Tensor,
    x2: torch.Tensor,
    dim: int = 1,
    eps_similarity: float = 1e-08,
    p_norm: float = 2,
    eps_norm: float = 1e-12,
):
    """With n = x / max(||x||, eps_norm), `p_norm` norm along `dim`, of both tensors: the sum of
    n1 n2 along `dim`, divided by max(||n1||, eps_similarity) and max(||n2||, eps_similarity) with
    Euclidean norms.
    """
    n1 = F.normalize(x1, p=p_norm, dim=dim, eps=eps_norm)
    n2 = F.normalize(x2, p=p_norm, dim=dim, eps=eps_norm)
    return F.cosine_similarity(n1, n2, dim=dim, eps=eps_similarity)


def square_matrices(make: Maker) -> Arguments:
    """General matrices (batch, n, n) or (n, n); `out` on request."""
    n = make.size("n")
    batch = [size for name, size in make.case.sizes.items() if name != "n"]
    keywords = {"out": make.out(*batch)} if make.case.options.get("out") else {}
    return Arguments((make.tensor(*batch, n, n),), keywords)


@normalization(
    "spectral_norm_eig",
    inputs=square_matrices,
    cases=(
        small("one", "normal", n=1),
        small("two", "normal", batch=3, n=2),
        small("odd", "heavy_tail", n=37),
        small("tiles", "normal", batch=2, n=64),
        with_options(small("out", "shifted", batch=5, n=17), out=True),
        small("transposed", "mixed", layout="transposed", n=48),
        small("ties", "ties", n=29),
        small("batches", "scaled", a=2, b=3, n=13),
        timed("large", "normal", batch=32768, n=32),
        timed("small", "mixed", batch=131072, n=16),
        timed("odd", "normal", batch=65537, n=23),
    ),
    check=Close(),
    flops=product(8, "batch", "n", "n", "n"),
    mutates=("out",),
    differences=(
        "the largest singular value, as the published description says; the published reference "
        "computes the largest |eigenvalue|, which is smaller unless the matrix is normal",
    ),
)
def spectral_norm_eig(A, *, out=None):
    """Spectral norm of matrices (..., n, n): the largest singular value, the square root of the
    largest eigenvalue of A^T A. `out` is written and returned.
    """
    return torch.linalg.matrix_norm(A, 2, out=out)


def symmetric_and_vector(make: Maker) -> Arguments:
    """A symmetric matrix (n, n), a vector (n) and the options."""
    n = make.size("n")
    half = make.tensor(n, n)
    return Arguments(((half + half.mT) / 2, make.tensor(n)), make.options())


def product_size(A, x, alpha, beta, p=2.0):
    """The norm of sum |A||x|; 8 times that for powers by logarithms."""
    terms = (1 + beta) * alpha * (A.abs() @ x.abs())
    return (1 if p in (1, 2) else 8) * torch.linalg.vector_norm(terms, p)


@normalization(
    "symmetric_matrix_vector_norm",
    inputs=symmetric_and_vector,
    cases=(
        with_options(small("one", "normal", n=1), alpha=0.7, beta=0.2),
        with_options(small("odd", "heavy_tail", n=37), alpha=2.5, beta=0.5),
        with_options(small("sum", "mixed", n=101), alpha=-1.5, beta=1.0, p=1.0),
        with_options(small("cubes", "normal", n=64), alpha=1.0, beta=-0.3, p=3.0),
        with_options(small("shifted", "shifted", n=67), alpha=0.3, beta=-2.0),
        with_options(small("strided", "normal", layout="strided", n=96), alpha=1.2, beta=0.0),
        with_options(timed("large", "normal", n=12288), alpha=1.5, beta=0.5),
        with_options(timed("sum", "normal", n=8192), alpha=1.0, beta=1.0, p=1.0),
        with_options(timed("odd", "normal", n=9973), alpha=-0.7, beta=0.25),
    ),
    check=Close(magnitude=product_size),
    flops=product(2, "n", "n"),
)
def symmetric_matrix_vector_norm(
    A: torch.Tensor, x: torch.Tensor, alpha: float, beta: float, p: float = 2.0
):
    """The p-norm of (1 + beta) alpha A x for a symmetric matrix A (n, n) and a vector x (n)."""
    return torch.linalg.vector_norm((1 + beta) * alpha * (A @ x), p)
