"""Losses, elementwise or by class, reduced on request."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element, product
from benchmark.suite.inputs import Maker, small, timed, two_tensors, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

loss = category("Loss")


def reduced(terms, reduction):
    """The terms themselves, their mean, or their sum."""
    if reduction == "none":
        return terms
    return terms.mean() if reduction == "mean" else terms.sum()


def probabilities(make: Maker) -> Arguments:
    """Predicted and wanted probabilities; a weight each on request. The family `ties` gives
    quarters: 0 and 1 are among them.
    """
    shape = make.case.shape
    pair = [make.unit(*shape), make.unit(*shape)]
    if make.case.family == "ties":
        pair = [(values * 4).round() / 4 for values in pair]
    keywords = make.options("weight")
    if make.case.options.get("weight"):
        keywords["weight"] = make.positive(*shape)
    return Arguments(tuple(pair), keywords)


def cross_entropy_terms(input, target, weight=None, reduction="mean"):
    """w (t |log x| + (1 - t) (|log(1 - x)| + 1)): the 1 is for the rounding of 1 - x."""
    one = input.log().clamp(min=-100).abs()
    other = (1 - input).log().clamp(min=-100).abs()
    terms = target * one + (1 - target) * (other + 1)
    return reduced(terms if weight is None else terms * weight, reduction)


@loss(
    "binary_cross_entropy",
    inputs=probabilities,
    cases=(
        with_options(small("one", "unit", n=1), weight=True),
        small("odd", "unit", rows=37, columns=53),
        with_options(small("none", "unit", rows=31, columns=65), reduction="none", weight=True),
        with_options(small("edges", "ties", n=1009), reduction="none"),
        with_options(small("sum", "ties", a=3, b=5, c=67), reduction="sum", weight=True),
        with_options(
            small("transposed", "unit", layout="transposed", rows=33, columns=48), reduction="none"
        ),
        with_options(small("half", "unit", "float16", rows=17, columns=129), reduction="none"),
        timed("mean", "unit", rows=8192, columns=8192),
        with_options(timed("none", "unit", rows=8192, columns=4096), reduction="none", weight=True),
        with_options(timed("sum", "unit", rows=4099, columns=8191), reduction="sum"),
    ),
    check=Close(magnitude=cross_entropy_terms, narrow_intermediates=True),
    flops=per_element(7),
)
def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    """-w (t log(x) + (1 - t) log(1 - x)) for probabilities x and t of the same shape, logarithms
    clamped at -100; their mean, sum or all of them (`none`). The mean divides by the number of
    elements, whatever the weights.
    """
    return F.binary_cross_entropy(input, target, weight=weight, reduction=reduction)


def classes(make: Maker) -> torch.Tensor:
    """Class indices (rows, ...) below `classes`, or for one in five the case's `ignore_index`."""
    places = [size for name, size in make.case.sizes.items() if name != "classes"]
    chosen = make.indices(make.size("classes"), *places)
    ignored = make.case.options.get("ignore_index")
    if not isinstance(ignored, int):
        return chosen
    return torch.where(make.mask(*places, share=0.2), ignored, chosen)


def class_keywords(make: Maker) -> dict:
    """The options; `weight` is a positive number for each class."""
    keywords = make.options("weight")
    if make.case.options.get("weight"):
        keywords["weight"] = make.positive(make.size("classes"))
    return keywords


def scores_and_classes(make: Maker) -> Arguments:
    """Scores (rows, classes, ...) and a class for each place."""
    return Arguments((make.tensor(*make.case.shape), classes(make)), class_keywords(make))


def log_probabilities_and_classes(make: Maker) -> Arguments:
    """Log-probabilities (rows, classes, ...) and a class for each place."""
    scores = torch.log_softmax(make.tensor(*make.case.shape), 1)
    return Arguments((scores, classes(make)), class_keywords(make))


def of_classes(terms, target, weight, ignore_index, reduction):
    """Terms (rows, classes, ...) at the target's class, weighted and reduced as a loss is."""
    return F.nll_loss(-terms, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy_magnitude(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """The score and the largest one, whose difference is the loss: w (|x_t| + max |x|)."""
    size = input.abs() + input.abs().amax(1, keepdim=True)
    return of_classes(size, target, weight, ignore_index, reduction)


def class_cases(*timed_cases):
    """Small cases of a loss by class, then the timed ones given."""
    return (
        small("one", "normal", rows=1, classes=3),
        with_options(small("odd", "heavy_tail", rows=37, classes=53), reduction="none"),
        with_options(small("weights", "scaled", rows=65, classes=31), weight=True),
        with_options(small("ignored", "normal", rows=101, classes=7), ignore_index=2, weight=True),
        with_options(
            small("none-ignored", "mixed", rows=67, classes=17), ignore_index=-1, reduction="none"
        ),
        with_options(
            small("image", "shifted", rows=2, classes=10, height=9, width=13), reduction="sum"
        ),
        with_options(
            small("image-weights", "normal", rows=3, classes=5, height=17, width=11),
            reduction="none",
            weight=True,
        ),
        with_options(
            small("transposed", "normal", layout="transposed", rows=33, classes=48),
            reduction="none",
        ),
        with_options(small("half", "normal", "float16", rows=15, classes=257), reduction="none"),
        *timed_cases,
    )


@loss(
    "cross_entropy",
    inputs=scores_and_classes,
    cases=class_cases(
        timed("large", "mixed", rows=131072, classes=1000),
        with_options(
            timed("half", "mixed", "float16", rows=8192, classes=32000),
            reduction="none",
            ignore_index=0,
        ),
        with_options(
            timed("image", "mixed", rows=16, classes=19, height=512, width=512), weight=True
        ),
    ),
    check=Close(magnitude=cross_entropy_magnitude, narrow_intermediates=True),
    flops=per_element(5),
)
def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """-w[t] log(softmax(x)[t]) of scores x (N, C, ...) and class indices t (N, ...). Places whose
    target is `ignore_index` count nothing and cost nothing; `mean` divides by the sum of the
    weights of the others, `none` gives (N, ...).
    """
    return F.cross_entropy(
        input, target, weight=weight, ignore_index=ignore_index, reduction=reduction
    )


def chosen_magnitude(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """w |x_t|."""
    return of_classes(input.abs(), target, weight, ignore_index, reduction)


@loss(
    "nll_loss",
    inputs=log_probabilities_and_classes,
    cases=class_cases(
        timed("image", "mixed", rows=48, classes=12, height=512, width=512),
        with_options(
            timed("weights", "mixed", rows=64, classes=5, height=401, width=499),
            weight=True,
            reduction="sum",
        ),
        with_options(
            timed("none", "mixed", rows=12000007, classes=11), reduction="none", ignore_index=0
        ),
    ),
    check=Close(magnitude=chosen_magnitude, narrow_intermediates=True),
    flops=product(2, "rows", "height", "width"),
    bytes=product(12, "rows", "height", "width"),  # int64 and float32 of each place, no other class
)
def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """-w[t] x[t] of log-probabilities x (N, C, ...) and class indices t (N, ...). Places whose
    target is `ignore_index` count nothing and cost nothing; `mean` divides by the sum of the
    weights of the others, `none` gives (N, ...).
    """
    return F.nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def two_distributions(make: Maker) -> Arguments:
    """Log-probabilities, then probabilities or their logarithms. The family `ties` has zeros among
    the probabilities.
    """
    shape = make.case.shape
    given, wanted = (torch.log_softmax(make.tensor(*shape), -1) for _ in range(2))
    if not make.case.options.get("log_target"):
        wanted = wanted.exp()
        if make.case.family == "ties":
            wanted = torch.where(make.mask(*shape, share=0.3), 0.0, wanted)
    return Arguments((given, wanted), make.options())


def divergence_terms(input, target, reduction="batchmean", log_target=False):
    """p (|log p| + |x|), and |log p| |log p - x| p where p comes out of an exponential."""
    log = target if log_target else torch.where(target > 0, target, 1).log()
    probability = target.exp() if log_target else target
    terms = probability * (log.abs() + input.abs())
    if log_target:
        terms = terms + probability * log.abs() * (log - input).abs()
    return terms.sum() / len(terms) if reduction == "batchmean" else reduced(terms, reduction)


@loss(
    "kl_div",
    inputs=two_distributions,
    cases=(
        small("one", "normal", rows=1, columns=2),
        small("odd", "heavy_tail", rows=37, columns=53),
        with_options(small("log", "scaled", rows=31, columns=65), log_target=True),
        with_options(small("zeros", "ties", rows=33, columns=48), reduction="none"),
        with_options(small("log-none", "wide", a=3, b=5, c=67), reduction="none", log_target=True),
        with_options(small("sum", "mixed", rows=19, columns=257), reduction="sum"),
        with_options(small("mean", "ties", a=7, b=9, c=31), reduction="mean"),
        with_options(small("half", "normal", "float16", rows=17, columns=129), reduction="none"),
        timed("large", "normal", rows=65536, columns=1024),
        with_options(timed("log", "normal", rows=32768, columns=2048), log_target=True),
        with_options(timed("none", "normal", rows=4099, columns=8191), reduction="none"),
    ),
    check=Close(magnitude=divergence_terms, narrow_intermediates=True),
    flops=per_element(5),
)
def kl_div(input, target, reduction="batchmean", log_target=False):
    """Kullback-Leibler divergence p (log p - x) of log-probabilities x and probabilities p, or
    their logarithms (`log_target`); 0 where p is 0. `batchmean` divides the sum by the first size,
    `mean` by the number of elements.
    """
    if reduction == "mean":  # F.kl_div warns of it
        return F.kl_div(input, target, reduction="none", log_target=log_target).mean()
    return F.kl_div(input, target, reduction=reduction, log_target=log_target)


def pair_cases(*variants: dict[str, object], half: bool = True):
    """Cases of a loss of two tensors; the variants are dealt over its seven small ones."""
    checked = (
        small("one", "normal", n=1),
        small("odd", "heavy_tail", rows=37, columns=53),
        small("prime", "wide", n=1009),
        small("image", "shifted", a=2, b=3, c=8, d=11),
        small("transposed", "scaled", layout="transposed", rows=33, columns=48),
        small("ties", "ties", rows=64, columns=128),
        small("half", "normal", "float16", rows=31, columns=65),
    )
    return tuple(
        with_options(case, **variant) for case, variant in zip(checked, variants, strict=True)
    )


def difference_cases(*variants: dict[str, object]):
    """`pair_cases`, then the timed ones."""
    return (
        *pair_cases(*variants),
        timed("mean", "mixed", rows=8192, columns=8192),
        with_options(timed("none", "mixed", rows=8192, columns=4096), reduction="none"),
        with_options(timed("sum", "mixed", rows=4099, columns=8191), reduction="sum"),
    )


@loss(
    "mse_loss",
    inputs=two_tensors,
    cases=difference_cases(
        {},
        {},
        {"reduction": "sum"},
        {"reduction": "none"},
        {"reduction": "none"},
        {},
        {"reduction": "none"},
    ),
    check=Close(),
    flops=per_element(3),
)
def mse_loss(input, target, reduction="mean"):
    """(x - t)^2 of tensors of the same shape; their mean, sum or all of them (`none`)."""
    return F.mse_loss(input, target, reduction=reduction)


def smooth_magnitude(input, target, beta=1.0, reduction="mean"):
    """d^2 / (2 beta) inside, the terms |d| and beta / 2 of the difference outside."""
    distance = (input - target).abs()
    outside = distance + beta / 2
    inside = outside if beta == 0 else distance**2 / (2 * beta)
    return reduced(torch.where(distance < beta, inside, outside), reduction)


@loss(
    "smooth_l1_loss",
    inputs=two_tensors,
    cases=difference_cases(
        {"beta": 2.0},
        {},
        {"beta": 0.5, "reduction": "none"},
        {"beta": 0.1, "reduction": "sum"},
        {"beta": 5.0, "reduction": "none"},
        {"beta": 0.0},
        {"reduction": "none"},
    ),
    check=Close(magnitude=smooth_magnitude, narrow_intermediates=True),
    flops=per_element(6),
)
def smooth_l1_loss(input, target, beta=1.0, reduction="mean"):
    """d^2 / (2 beta) where d = |x - t| < beta, d - beta / 2 elsewhere; their mean, sum or all of
    them (`none`). beta = 0 is the absolute difference.
    """
    return F.smooth_l1_loss(input, target, beta=beta, reduction=reduction)
