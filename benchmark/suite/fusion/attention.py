"""Attention."""

from dataclasses import dataclass

import torch

from benchmark.suite.checks import Close
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

fusion = category("Fusion")


def queries_keys_values(make: Maker) -> Arguments:
    """Three tensors (batch, heads, length, width), and `out` on request."""
    shape, keywords = make.case.shape, make.options("out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(*shape)
    values = make.tensor(*shape)
    normal = [make.tensor(*shape, family="normal") for _ in range(2)]
    return Arguments((*normal, values), keywords)


def scores(q, k, causal, softmax_scale):
    """Scaled products, -inf where a key comes after its query."""
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else softmax_scale
    products = q @ k.transpose(-1, -2) * scale
    if causal:
        later = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).triu(1)
        products = products.masked_fill_(later, float("-inf"))
    return products


def attention_size(q, k, v, causal=False, softmax_scale=None, *, out=None):
    """Errors of the scores, of the size of their terms' root mean square and of their own, shared
    out by the softmax: sum p |v| of them.
    """
    share = torch.softmax(scores(q, k, causal, softmax_scale), -1)
    scale = q.shape[-1] ** -0.5 if softmax_scale is None else abs(softmax_scale)
    size = (q.square() @ k.square().transpose(-1, -2)).sqrt_().mul_(2 * scale)
    mean = (share * size).sum(-1, keepdim=True)
    return (size.add_(mean + 1).mul_(share)) @ v.abs()


@dataclass(frozen=True)
class AttentionFlops:
    """Two products of queries and keys, half of them where the attention is causal."""

    def __call__(self, case: Case) -> float:
        sizes = case.sizes
        pairs = sizes["batch"] * sizes["heads"] * sizes["length"] ** 2
        return pairs * sizes["width"] * (2.0 if case.options.get("causal") else 4.0)


def shape(batch: int, heads: int, length: int, width: int) -> dict:
    """The sizes by name."""
    return {"batch": batch, "heads": heads, "length": length, "width": width}


@fusion(
    "attention",
    inputs=queries_keys_values,
    cases=(
        small("one", "normal", **shape(1, 1, 1, 16)),
        small("tiles", "normal", **shape(1, 2, 64, 32)),
        with_options(small("causal", "shifted", **shape(2, 1, 61, 32)), causal=True),
        with_options(small("scale", "normal", **shape(1, 2, 47, 64)), softmax_scale=0.3),
        with_options(small("out", "mixed", **shape(1, 2, 33, 16)), out=True, causal=True),
        with_options(small("half", "normal", "float16", **shape(1, 2, 63, 64)), causal=True),
        small("half-plain", "normal", "float16", **shape(2, 1, 70, 32)),
        small("transposed", "normal", layout="transposed", **shape(1, 2, 40, 32)),
        with_options(timed("causal", "normal", **shape(8, 16, 1024, 64)), causal=True),
        with_options(timed("half", "normal", "float16", **shape(16, 16, 1024, 64)), causal=True),
        timed("plain", "normal", **shape(16, 32, 512, 64)),
    ),
    check=Close(magnitude=attention_size, narrow_intermediates=True),
    flops=AttentionFlops(),
    mutates=("out",),
)
def attention(q, k, v, causal: bool = False, softmax_scale=None, *, out=None):
    """softmax(q k^T scale) v for (batch, heads, length, width) tensors, computed in float32 and
    rounded to the dtype of q. `softmax_scale` is width^-1/2 unless given; `causal` leaves out keys
    that come after their query; `out` is written and returned.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    share = torch.softmax(scores(q.to(wide), k.to(wide), causal, softmax_scale), -1)
    result = (share @ v.to(wide)).to(q.dtype)
    return result if out is None else out.copy_(result)
