"""Embeddings and what is done to their vectors."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import distinct, product
from benchmark.suite.fusion.common import through
from benchmark.suite.inputs import Maker, dtype_named, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

fusion = category("Fusion")


def embedding_arguments(make: Maker) -> Arguments:
    """Indices, a table of vectors (long ones, that `max_norm` shortens) and summands."""
    *shape, rows, width = make.case.shape
    keywords = make.options("out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(*shape, width)
    table = make.tensor(rows, width)
    other = make.tensor(*shape, width, family="normal")
    return Arguments((make.indices(rows, *shape), table, other), keywords)


def looked_up_bytes(case: Case) -> float:
    """Read: the vectors that indices name, the indices, the summands. Written: the result."""
    *shape, rows, size = case.shape
    count, width = math.prod(shape), dtype_named(case.dtype).itemsize
    return size * width * (distinct(rows, count) + 2 * count) + 8 * count


def renormed(input_indices, weight, max_norm, norm_type):
    """The table with the vectors that are used and longer than `max_norm` brought to it."""
    norms = torch.linalg.vector_norm(weight, norm_type, -1, keepdim=True)
    used = torch.zeros_like(weight[:, :1], dtype=torch.bool)
    used = used.index_fill(0, input_indices.reshape(-1), True)
    return torch.where(used & (norms > max_norm), weight * (max_norm / (norms + 1e-7)), weight)


def embedding_add_tanh_size(
    input_indices,
    weight,
    other,
    *,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
    out=None,
):
    """|w| + |other| through tanh."""
    if max_norm is not None:
        weight = renormed(input_indices, weight, max_norm, norm_type)
    vectors = F.embedding(input_indices, weight)
    return through(torch.tanh, vectors + other, vectors.abs() + other.abs())


@fusion(
    "fused_embedding_add_tanh",
    inputs=embedding_arguments,
    cases=(
        small("one", "normal", n=1, rows=1, width=1),
        small("odd", "normal", n=61, rows=37, width=53),
        small("batch", "shifted", a=4, b=17, rows=128, width=65),
        with_options(small("padding", "normal", n=50, rows=20, width=64), padding_idx=0),
        with_options(small("norm", "scaled", n=23, rows=64, width=33), max_norm=1.0),
        with_options(
            small("norm-one", "normal", n=40, rows=64, width=30), max_norm=24.0, norm_type=1.0
        ),
        with_options(
            small("gradients", "normal", n=31, rows=16, width=48),
            scale_grad_by_freq=True,
            sparse=True,
        ),
        with_options(small("out", "wide", a=5, b=9, rows=30, width=40), out=True),
        small("half", "normal", "float16", n=47, rows=29, width=70),
        timed("large", "normal", a=256, b=512, rows=32768, width=512),
        timed("half", "normal", "float16", a=256, b=512, rows=32768, width=1024),
        timed("narrow", "wide", n=1 << 20, rows=1 << 20, width=64),
    ),
    check=Close(magnitude=embedding_add_tanh_size),
    flops=product(12, "n", "a", "b", "width"),
    bytes=looked_up_bytes,
    mutates=("out", "max_norm"),
    differences=(
        "with `max_norm` the table after the call is part of the answer: the published test did "
        "not look at it",
    ),
)
def fused_embedding_add_tanh(
    input_indices,
    weight,
    other,
    *,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
    out=None,
):
    """tanh(weight[indices] + other), (*, width). With `max_norm` the vectors that are used and
    longer, in the norm of order `norm_type`, are first multiplied in place with max_norm / (norm +
    1e-7). `padding_idx`, `scale_grad_by_freq` and `sparse` are about gradients; `out` is written
    and returned.
    """
    vectors = F.embedding(
        input_indices, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
    )
    return torch.tanh(torch.add(vectors, other), out=out)
