"""The transformer block: attention-like softmax with a dropout inside, then a normalization."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import product, total
from benchmark.suite.fusion.checks import Recovered
from benchmark.suite.fusion.common import FREE, NO_OUT, layer_norm_size, weights, written
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def block_arguments(make: Maker) -> Arguments:
    """Inputs (batch, length, width), weights (width, inner) and (inner, outer), a residual of the
    result's shape, or of its last dimension with `row=True`.
    """
    sizes = make.case.sizes
    width, inner, outer = sizes["width"], sizes["inner"], sizes["outer"]
    leading = sizes["batch"], sizes["length"]
    residual = (outer,) if make.case.options.get("row") else (*leading, outer)
    tensors = (
        make.tensor(*leading, width),
        weights(make, width, inner, fan=width),
        make.tensor(inner, outer, family="normal"),
        make.tensor(*residual, family="normal"),
    )
    return Arguments(tensors, make.options("row"))


def shares(input, weight1):
    """The softmax and the size of its errors."""
    values, size = torch.matmul(input, weight1), torch.matmul(input.abs(), weight1.abs())
    share = torch.softmax(values, -1)
    size = size + values.abs() + values.abs().amax(-1, keepdim=True)
    return share, share * (1 + size + (share * size).sum(-1, keepdim=True))


def dropped_shares(input, weight1, weight2, residual, dropout_p=0.1, eps=1e-05, *, out=None):
    """What chance may leave of each share; without dropout the block's result."""
    share, _ = shares(input, weight1)
    if dropout_p == 0:
        values = torch.matmul(share, weight2) + residual
        return ((1.0, F.layer_norm(values, values.shape[-1:], eps=eps)),)
    return ((dropout_p, torch.zeros_like(share)), (1 - dropout_p, share / (1 - dropout_p)))


def dropped_shares_size(input, weight1, weight2, residual, dropout_p=0.1, eps=1e-05, *, out=None):
    """Errors of the shares through product and normalization, and back where they are undone."""
    share, size = shares(input, weight1)
    size = torch.matmul(size / (1 - dropout_p), weight2.abs()) + residual.abs()
    values = torch.matmul(share, weight2) + residual
    if dropout_p == 0:
        return layer_norm_size(values, size, -1, eps)
    # The row's own scale and mean are found with errors of the size of its elements.
    size = size + values.abs() + values.square().mean(-1, keepdim=True).sqrt()
    return torch.matmul(2 * size, torch.linalg.pinv(weight2).abs())


def undone_block(output, input, weight1, weight2, residual, dropout_p=0.1, eps=1e-05, *, out=None):
    """The dropped shares, from a result y = (shares W + residual - mean) / deviation.

    The inner width is less than the outer, so rows orthogonal to those of W exist. Along them the
    shares say nothing, and deviation and mean follow from two equations; the shares from the rest.
    """
    if dropout_p == 0:
        return output
    basis, triangle = torch.linalg.qr(weight2.mT)

    def outside(rows):
        return rows - torch.matmul(torch.matmul(rows, basis), basis.mT)

    residual = residual.expand(output.shape)
    one, shown, wanted = outside(torch.ones_like(output)), outside(output), outside(residual)
    aa, ab, bb = (shown * shown).sum(-1), (shown * one).sum(-1), (one * one).sum(-1)
    ac, bc = (shown * wanted).sum(-1), (one * wanted).sum(-1)
    determinant = aa * bb - ab * ab
    deviation = ((ac * bb - bc * ab) / determinant).unsqueeze(-1)
    mean = ((bc * aa - ac * ab) / determinant).unsqueeze(-1)
    values = torch.matmul(deviation * output + mean - residual, basis)
    flat = values.reshape(-1, values.shape[-1])
    return torch.linalg.solve_triangular(triangle, flat.mT, upper=True).mT.reshape(values.shape)


def block(batch: int, length: int, width: int, inner: int, outer: int) -> dict:
    """The sizes by name."""
    names = ("batch", "length", "width", "inner", "outer")
    return dict(zip(names, (batch, length, width, inner, outer), strict=True))


@fusion(
    "fused_transformer_block",
    inputs=block_arguments,
    cases=(
        small("odd", "normal", **block(2, 13, 29, 19, 47)),
        with_options(small("plain", "shifted", **block(2, 11, 24, 60, 37)), dropout_p=0.0),
        with_options(small("half-kept", "normal", **block(3, 9, 33, 24, 64)), dropout_p=0.5),
        with_options(
            small("row", "scaled", **block(1, 17, 16, 40, 32)), dropout_p=0.0, eps=0.1, row=True
        ),
        with_options(small("wide", "normal", **block(1, 15, 16, 31, 70)), dropout_p=0.3, eps=0.01),
        with_options(
            small("transposed", "normal", layout="transposed", **block(2, 12, 20, 33, 21)),
            dropout_p=0.0,
        ),
        timed("large", "normal", **block(16, 1024, 1024, 256, 1024)),
        with_options(timed("half-kept", "normal", **block(8, 2039, 511, 257, 1031)), dropout_p=0.5),
        with_options(timed("plain", "normal", **block(16, 1024, 1024, 2048, 1024)), dropout_p=0.0),
    ),
    check=Recovered(dropped_shares, Close(magnitude=dropped_shares_size), recover=undone_block),
    flops=total(
        product(2, "batch", "length", "width", "inner"),
        product(2, "batch", "length", "inner", "outer"),
    ),
    draws=3,
    differences=(
        FREE,
        NO_OUT,
        "with a dropout the inner width is less than the outer, so that normalization and product "
        "can be undone and the dropout's own result be judged",
    ),
)
def fused_transformer_block(
    input, weight1, weight2, residual, dropout_p=0.1, eps=1e-05, *, out=None
):
    """LayerNorm(dropout(softmax(input weight1)) weight2 + residual) for inputs (*, n, d), weights
    (d, k) and (k, e): softmax over k, the dropout (0 with probability dropout_p, else divided by 1
    - dropout_p) on every call, rows of e normalized to mean 0 and variance 1 with `eps` added to
    it. The residual broadcasts.
    """
    share = F.softmax(torch.matmul(input, weight1), -1)
    values = torch.matmul(F.dropout(share, dropout_p, training=True), weight2) + residual
    return written(F.layer_norm(values, values.shape[-1:], eps=eps), out)
