"""Softmax, log_softmax and cross entropy with their neighbours."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.fusion.common import layer_norm_size, log_softmax_size, written
from benchmark.suite.fusion.reduction import converted
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def positive_values(make: Maker) -> Arguments:
    """exp of a tensor of the case's family: positive, over many magnitudes."""
    return Arguments((make.tensor(*make.case.shape).exp_(),), make.options())


def softmax_log_size(input, dim=-1, dtype=None):
    """The result times the logarithms it is made of: an exponential loses so many digits."""
    logs = torch.log(converted(input, dtype))
    total = torch.logsumexp(logs, dim, keepdim=True).abs() + logs.abs().amax(dim, keepdim=True)
    return torch.softmax(logs, dim) * (logs.abs() + total + 1)


@fusion(
    "fused_softmax_log",
    inputs=positive_values,
    cases=(
        small("one", "normal", n=1),
        small("odd", "wide", rows=17, columns=781),
        with_options(small("first", "normal", rows=211, columns=7), dim=0),
        with_options(small("middle", "wide", a=5, b=31, c=37), dim=1),
        small("half", "normal", "float16", rows=15, columns=257),
        with_options(small("wider", "normal", rows=19, columns=130), dtype="float64"),
        with_options(small("transposed", "wide", layout="transposed", rows=33, columns=130), dim=1),
        small("strided", "ties", layout="strided", rows=9, columns=129),
        timed("large", "normal", rows=65536, columns=1024),
        with_options(timed("first", "wide", rows=4096, columns=16384), dim=0),
        timed("long", "normal", rows=128, columns=524288),
    ),
    check=Close(magnitude=softmax_log_size),
    flops=per_element(6),
)
def fused_softmax_log(input, dim=-1, dtype=None):
    """softmax of log(x) along a dimension for positive x: x divided by its sum. With `dtype` x is
    converted first.
    """
    return F.softmax(torch.log(converted(input, dtype)), dim)


def logits_and_targets(make: Maker) -> Arguments:
    """Logits (rows, classes, ...), classes (rows, ...) of which `ignored` in a hundred are the
    ignored one, and class weights on request.
    """
    shape, options = make.case.shape, make.case.options
    rows, classes, *places = shape
    targets = make.indices(classes, rows, *places)
    ignored = make.rand(rows, *places) * 100 < float(str(options.get("ignored", 0)))
    targets = torch.where(ignored, int(str(options.get("ignore_index", -100))), targets)
    keywords = make.options("ignored", "weight", "out", "normalized_shape")
    if options.get("weight"):
        keywords["weight"] = make.positive(classes)
    return Arguments((make.tensor(*shape), targets), keywords)


def cross_entropy_size(
    size, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    """A cross entropy whose log probabilities are `size`: weights, smoothing and reduction count
    as they do there, and nothing cancels.
    """
    classes = size.shape[1]
    if weight is None:
        weight = torch.ones(classes, dtype=size.dtype, device=size.device)
    kept = target != ignore_index
    places = torch.where(kept, target, 0)
    chosen = size.gather(1, places.unsqueeze(1)).squeeze(1) * weight[places]
    spread = torch.tensordot(size, weight, ([1], [0])) / classes
    each = torch.where(kept, (1 - label_smoothing) * chosen + label_smoothing * spread, 0.0)
    if reduction == "none":
        return each
    return each.sum() / (torch.where(kept, weight[places], 0.0).sum() if reduction == "mean" else 1)


def cross_entropy_log_softmax_size(
    input,
    target,
    dim=1,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
):
    """Errors of both logarithms through the cross entropy."""
    logs = torch.log_softmax(input, dim)
    size = log_softmax_size(input, torch.zeros_like(input), dim)
    size = log_softmax_size(logs, size, 1)
    return cross_entropy_size(size, target, weight, ignore_index, reduction, label_smoothing)


@fusion(
    "fused_cross_entropy_log_softmax",
    inputs=logits_and_targets,
    cases=(
        small("one", "normal", rows=1, classes=1),
        small("odd", "heavy_tail", rows=23, classes=131),
        with_options(small("sum", "shifted", rows=31, classes=17), reduction="sum", weight=True),
        with_options(small("each", "scaled", rows=21, classes=48), reduction="none"),
        with_options(
            small("smooth", "normal", rows=32, classes=100), label_smoothing=0.2, weight=True
        ),
        with_options(
            small("ignored", "normal", rows=40, classes=30), ignore_index=3, ignored=30, weight=True
        ),
        with_options(
            small("places", "normal", rows=2, classes=7, height=5, width=9),
            reduction="none",
            ignored=20,
            label_smoothing=0.1,
        ),
        with_options(small("batch", "normal", rows=17, classes=23), dim=0, reduction="sum"),
        with_options(
            small("transposed", "normal", layout="transposed", rows=19, classes=40), dim=-1
        ),
        timed("large", "normal", rows=1 << 19, classes=128),
        with_options(timed("vocabulary", "scaled", rows=2048, classes=32000), reduction="none"),
        with_options(
            timed("smooth", "normal", rows=65536, classes=1000), label_smoothing=0.1, weight=True
        ),
    ),
    check=Close(magnitude=cross_entropy_log_softmax_size),
    flops=per_element(8),
)
def fused_cross_entropy_log_softmax(
    input: torch.Tensor,
    target: torch.Tensor,
    dim: int = 1,
    weight: torch.Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
):
    """Cross entropy, over the classes in dimension 1, of log_softmax(input) along `dim`, for
    targets (N, ...) in [0, C) or `ignore_index`. Each class has its weight; `label_smoothing`
    spreads its share over all classes; `mean` divides by the weights of the targets.
    """
    logs = F.log_softmax(input, dim)
    return F.cross_entropy(
        logs,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def logits_targets_and_shape(make: Maker) -> Arguments:
    """Logits, targets, the number of classes (in a tuple: `tuple=True`), `out` on request."""
    arguments = logits_and_targets(make)
    classes = make.size("classes")
    keywords = {k: v for k, v in arguments.kwargs.items() if k != "tuple"}
    if make.case.options.get("out"):
        keywords["out"] = make.out(*make.case.shape)
    shape = (classes,) if make.case.options.get("tuple") else classes
    return Arguments((*arguments.args, shape), keywords)


def cross_entropy_softmax_layernorm_size(
    logits,
    targets,
    normalized_shape,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
    eps=1e-05,
    *,
    out=None,
):
    """Errors of the logarithm through the cross entropy, of the softmax through the
    normalization.
    """
    size = log_softmax_size(logits, torch.zeros_like(logits), 1)
    loss = cross_entropy_size(size, targets, weight, ignore_index, reduction, label_smoothing)
    share = torch.softmax(logits, -1)
    return loss, layer_norm_size(share, share * (1 + size), -1, eps)


@fusion(
    "fused_cross_entropy_softmax_layernorm",
    inputs=logits_targets_and_shape,
    cases=(
        small("few", "normal", rows=5, classes=3),
        small("odd", "normal", rows=23, classes=131),
        with_options(small("sum", "shifted", rows=31, classes=17), reduction="sum", weight=True),
        with_options(small("each", "scaled", rows=21, classes=48), reduction="none", tuple=True),
        with_options(
            small("smooth", "normal", rows=32, classes=100), label_smoothing=0.2, weight=True
        ),
        with_options(
            small("ignored", "normal", rows=40, classes=30), ignore_index=3, ignored=30, eps=1e-8
        ),
        with_options(small("out", "heavy_tail", rows=16, classes=128), out=True),
        with_options(
            small("transposed", "scaled", layout="transposed", rows=19, classes=40), eps=0.01
        ),
        timed("large", "scaled", rows=32768, classes=1024),
        with_options(timed("vocabulary", "scaled", rows=2048, classes=32000), reduction="none"),
        with_options(
            timed("smooth", "normal", rows=32768, classes=1000), label_smoothing=0.1, weight=True
        ),
    ),
    check=Close(magnitude=cross_entropy_softmax_layernorm_size),
    flops=per_element(16),
    mutates=("out",),
)
def fused_cross_entropy_softmax_layernorm(
    logits,
    targets,
    normalized_shape,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
    eps=1e-05,
    *,
    out=None,
):
    """The pair of the cross entropy of logits (N, C) with targets (N,), and of softmax(logits)
    with each row normalized to mean 0 and variance 1 (`eps` added to the variance).
    `normalized_shape` is C, as a number or a tuple; `out` takes the second result.
    """
    loss = F.cross_entropy(
        logits,
        targets,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    shape = normalized_shape if isinstance(normalized_shape, tuple) else (normalized_shape,)
    return loss, written(F.layer_norm(F.softmax(logits, -1), shape, eps=eps), out)
