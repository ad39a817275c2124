"""Distances and similarities of vectors, with poolings and normalizations."""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element, product
from benchmark.suite.inputs import Maker, small, timed, two_tensors, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def cosine_pool_size(x1, x2, kernel_size, stride=None, padding=0, eps=1e-08):
    """Averages of sum |a||b| over the norms, and of the cosine itself."""
    size = F.cosine_similarity(x1.abs(), x2.abs(), dim=1, eps=eps)
    size = size + F.cosine_similarity(x1, x2, dim=1, eps=eps).abs()
    return F.avg_pool2d(size.unsqueeze(1), kernel_size, stride, padding)


@fusion(
    "fused_avg_pool2d_cosine_similarity",
    inputs=two_tensors,
    cases=(
        with_options(small("one", "normal", batch=1, channels=1, h=1, w=1), kernel_size=1),
        with_options(small("odd", "normal", batch=3, channels=7, h=13, w=17), kernel_size=2),
        with_options(
            small("overlapping", "shifted", batch=2, channels=16, h=12, w=15),
            kernel_size=3,
            stride=1,
        ),
        with_options(
            small("padded", "heavy_tail", batch=2, channels=33, h=9, w=10),
            kernel_size=3,
            stride=2,
            padding=1,
        ),
        with_options(
            small("eps", "tiny", batch=1, channels=40, h=8, w=12), kernel_size=4, eps=6e-3
        ),
        with_options(
            small("transposed", "normal", layout="transposed", batch=2, channels=5, h=14, w=18),
            kernel_size=2,
            stride=3,
        ),
        with_options(timed("large", "normal", batch=16, channels=64, h=128, w=128), kernel_size=2),
        with_options(
            timed("deep", "shifted", batch=8, channels=512, h=64, w=64),
            kernel_size=3,
            stride=2,
            padding=1,
        ),
        with_options(timed("odd", "normal", batch=4, channels=31, h=509, w=511), kernel_size=5),
    ),
    check=Close(magnitude=cosine_pool_size),
    flops=per_element(3),
)
def fused_avg_pool2d_cosine_similarity(
    x1: torch.Tensor,
    x2: torch.Tensor,
    kernel_size: int,
    stride: int | None = None,
    padding: int = 0,
    eps: float = 1e-08,
):
    """Cosine similarity of the channels of (N, C, H, W) images at each place, averaged in windows
    `stride` (the kernel size unless given) apart; padding counts as zeros: (N, 1, h, w). Norms
    below `eps` count as `eps`.
    """
    similarity = F.cosine_similarity(x1, x2, dim=1, eps=eps)
    return F.avg_pool2d(similarity.unsqueeze(1), kernel_size, stride, padding)


def vectors_and_signs(make: Maker) -> Arguments:
    """Two sets of vectors that are more or less alike, and targets 1 or -1."""
    rows, columns = make.size("rows"), make.size("columns")
    first = make.tensor(rows, columns)
    second = make.tensor(rows, columns) + first
    return Arguments((first, second, make.mask(rows).to(torch.int64) * 2 - 1), make.options())


def cosine_loss_size(input1, input2, target, margin=0, reduction="mean"):
    """sum |a||b| over the norms, and 1 or the margin that it is subtracted from."""
    size = 2 * F.cosine_similarity(input1.abs(), input2.abs()) + 1 + abs(margin)
    if reduction == "none":
        return size
    return size.sum() if reduction == "sum" else size.mean()


@fusion(
    "fused_cosine_embedding_loss_with_normalization",
    inputs=vectors_and_signs,
    cases=(
        small("few", "normal", rows=3, columns=2),
        small("odd", "normal", rows=61, columns=53),
        with_options(small("margin", "shifted", rows=64, columns=128), margin=0.5),
        with_options(small("sum", "heavy_tail", rows=37, columns=131), reduction="sum", margin=0.2),
        with_options(small("each", "mixed", rows=90, columns=33), reduction="none"),
        with_options(small("below", "tiny", rows=50, columns=65), reduction="none", margin=-0.3),
        small("transposed", "normal", layout="transposed", rows=66, columns=40),
        timed("large", "normal", rows=131072, columns=256),
        with_options(timed("wide", "shifted", rows=8192, columns=4096), margin=0.5),
        with_options(timed("each", "mixed", rows=1 << 20, columns=64), reduction="none"),
    ),
    check=Close(magnitude=cosine_loss_size),
    flops=product(6, "rows", "columns"),
    differences=(
        "it is the cosine embedding loss, as its name and description say: the published reference "
        "takes max(1 - target c, margin - c) instead",
    ),
)
def fused_cosine_embedding_loss_with_normalization(
    input1: torch.Tensor,
    input2: torch.Tensor,
    target: torch.Tensor,
    margin: float = 0,
    reduction: str = "mean",
):
    """Cosine embedding loss of rows brought to length 1: 1 - c where the target is 1, max(c -
    margin, 0) where it is -1, with c the cosine of the two vectors; its `mean`, its `sum` or all
    (`none`).
    """
    first, second = F.normalize(input1, dim=1), F.normalize(input2, dim=1)
    return F.cosine_embedding_loss(first, second, target, margin=margin, reduction=reduction)


def two_sets(make: Maker) -> Arguments:
    """Two sets of vectors (rows, width) and (others, width)."""
    width = make.size("width")
    tensors = make.tensor(make.size("rows"), width), make.tensor(make.size("others"), width)
    return Arguments(tensors, make.options())


def pairwise_size(x1, x2, p_norm=2.0, eps_norm=1e-12, eps_distance=1e-06, keepdim=False):
    """2: each component of a difference is of normalized vectors, whose norms add up to 2."""
    shape = (len(x1), len(x2), 1) if keepdim else (len(x1), len(x2))
    return torch.full(shape, 2.0, dtype=x1.dtype, device=x1.device)


@fusion(
    "fused_pairwise_distance_normalize",
    inputs=two_sets,
    cases=(
        small("one", "normal", rows=1, others=1, width=3),
        small("odd", "normal", rows=37, others=53, width=29),
        with_options(small("one-norm", "shifted", rows=31, others=24, width=67), p_norm=1.0),
        with_options(
            small("three", "mixed", rows=19, others=33, width=20), p_norm=3.0, keepdim=True
        ),
        with_options(small("floor", "tiny", rows=23, others=17, width=9), eps_norm=0.01),
        with_options(
            small("least", "normal", rows=20, others=21, width=5), eps_distance=1.2, keepdim=True
        ),
        small("transposed", "shifted", layout="transposed", rows=40, others=22, width=48),
        timed("large", "normal", rows=8192, others=8192, width=128),
        with_options(timed("one-norm", "normal", rows=8192, others=6001, width=64), p_norm=1.0),
        timed("few", "shifted", rows=524288, others=128, width=64),
    ),
    check=Close(magnitude=pairwise_size),
    flops=product(3, "rows", "others", "width"),
)
def fused_pairwise_distance_normalize(
    x1: torch.Tensor,
    x2: torch.Tensor,
    p_norm: float = 2.0,
    eps_norm: float = 1e-12,
    eps_distance: float = 1e-06,
    keepdim: bool = False,
):
    """Distances of all pairs of rows of x1 (n, d) and x2 (m, d), in the norm of order `p_norm`,
    after each row was divided by its norm (at least `eps_norm`): (n, m), or (n, m, 1) with
    `keepdim`, no distance below `eps_distance`.
    """
    first = F.normalize(x1, p_norm, dim=1, eps=eps_norm)
    second = F.normalize(x2, p_norm, dim=1, eps=eps_norm)
    mode = "donot_use_mm_for_euclid_dist"
    distance = torch.cdist(first, second, p_norm, compute_mode=mode).clamp(min=eps_distance)
    return distance.unsqueeze(-1) if keepdim else distance


def pooled_distance_size(x1, x2, output_size, p=2.0, eps=1e-06, keepdim=False):
    """The norm of the averages of |x1| and |x2|, and eps."""
    size: Any = F.adaptive_avg_pool2d(x1.abs(), output_size)
    size = size + F.adaptive_avg_pool2d(x2.abs(), output_size)
    return torch.linalg.vector_norm(size, p, (1, 2, 3), keepdim=keepdim) + eps


@fusion(
    "fused_pairwise_distance_adaptive_avg_pool2d",
    inputs=two_tensors,
    cases=(
        with_options(small("one", "normal", batch=1, channels=1, h=1, w=1), output_size=1),
        with_options(small("square", "normal", batch=5, channels=3, h=16, w=16), output_size=4),
        with_options(small("odd", "shifted", batch=3, channels=4, h=17, w=23), output_size=[5, 7]),
        with_options(
            small("one-norm", "mixed", batch=2, channels=5, h=12, w=31),
            output_size=[3, 4],
            p=1.0,
            keepdim=True,
        ),
        with_options(
            small("eps", "tiny", batch=4, channels=2, h=9, w=14), output_size=3, eps=0.5, p=3.0
        ),
        with_options(
            small("transposed", "normal", layout="transposed", batch=2, channels=4, h=24, w=18),
            output_size=[5, 6],
        ),
        with_options(timed("large", "normal", batch=16, channels=64, h=128, w=128), output_size=8),
        with_options(
            timed("image", "shifted", batch=8, channels=3, h=1024, w=1024), output_size=64, p=1.0
        ),
        with_options(
            timed("odd", "normal", batch=64, channels=128, h=61, w=61), output_size=[13, 7]
        ),
    ),
    check=Close(magnitude=pooled_distance_size),
    flops=per_element(2),
)
def fused_pairwise_distance_adaptive_avg_pool2d(
    x1: torch.Tensor,
    x2: torch.Tensor,
    output_size: int | tuple[int, int],
    p: float = 2.0,
    eps: float = 1e-06,
    keepdim: bool = False,
):
    """Norm of order p, over channels and places, of the difference of two batches of images (N, C,
    H, W) after adaptive average pooling to `output_size`, plus `eps`: (N,), or (N, 1, 1, 1) with
    `keepdim`.
    """
    gap = F.adaptive_avg_pool2d(x1, output_size) - F.adaptive_avg_pool2d(x2, output_size)
    return torch.linalg.vector_norm(gap, p, (1, 2, 3), keepdim=keepdim) + eps
