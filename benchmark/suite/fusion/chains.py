"""More chains of elementwise operators: comparisons, roots, dropout, joined tensors."""

import functools
import math

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Mixture
from benchmark.suite.cost import per_element
from benchmark.suite.fusion.common import through, written
from benchmark.suite.fusion.elementwise import out_of_shape, two_summands
from benchmark.suite.inputs import Maker, elementwise_cases, one_tensor, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

fusion = category("Fusion")


def away_from_zeros_of_cos(make: Maker) -> Arguments:
    """One tensor whose cosines are at least 0.001 in size: their signs are then beyond doubt."""
    angles = make.tensor(*make.case.shape)
    doubtful = torch.cos(angles.double()).abs() < 1e-3
    return Arguments((angles.add_(doubtful.to(angles.dtype), alpha=0.25),), make.options())


def cos_signbit_size(input):
    """1 behind each cosine, nothing behind its sign."""
    return torch.ones_like(input), torch.zeros_like(input)


@fusion(
    "fused_cos_signbit",
    inputs=away_from_zeros_of_cos,
    cases=elementwise_cases(half=False, special=False),
    check=Close(magnitude=cos_signbit_size),
    flops=per_element(16),
)
def fused_cos_signbit(input: torch.Tensor):
    """The pair of cos(x) and whether its sign bit is set: true where the cosine is negative."""
    cosine = torch.cos(input)
    return cosine, torch.signbit(cosine)


def positive_and_out(make: Maker) -> Arguments:
    """exp of a tensor of the case's family, and `out` on request."""
    return Arguments((make.tensor(*make.case.shape).exp_(),), out_of_shape(make))


def log_tanh(values):
    """tanh(log x)."""
    return torch.tanh(torch.log(values))


def log_tanh_size(input, out=None):
    """Errors of |log x| and of the 1 that x^2 - 1 subtracts, through tanh."""
    size = torch.log(input).abs() + 1
    return size * (1 - log_tanh(input).square())


@fusion(
    "fused_log_tanh",
    inputs=positive_and_out,
    cases=(
        small("one", "normal", n=1),
        small("odd", "wide", rows=37, columns=53),
        small("prime", "tiny", n=1009),
        with_options(small("out", "normal", a=3, b=5, c=67), out=True),
        small("transposed", "normal", layout="transposed", rows=33, columns=48),
        small("half", "normal", "float16", rows=31, columns=65),
        small("strided", "ties", layout="strided", rows=9, columns=129),
        timed("large", "normal", rows=8192, columns=8192),
        timed("half", "normal", "float16", rows=8192, columns=8192),
        timed("odd", "wide", rows=4099, columns=8191),
    ),
    check=Close(magnitude=log_tanh_size),
    flops=per_element(12),
    mutates=("out",),
    differences=(
        "all inputs are positive: the published function raises ValueError at others, which makes "
        "every call wait for the device, and its test compares the text of the message",
    ),
)
def fused_log_tanh(input, out=None):
    """tanh(log(x)) for positive x; `out` is written and returned."""
    return written(torch.tanh(torch.log(input)), out)


@fusion(
    "fused_relu_sqrt",
    inputs=one_tensor,
    cases=(
        small("one", "unit", n=1),
        small("odd", "wide", rows=37, columns=53),
        with_options(small("inplace", "heavy_tail", n=1009), inplace=True),
        small("special", "special", a=3, b=5, c=67),
        with_options(small("out", "normal", rows=64, columns=128), out=True),
        small("transposed", "scaled", layout="transposed", rows=33, columns=48),
        small("integers", "integers", "int64", rows=31, columns=65),
        with_options(
            small("strided", "large", layout="strided", rows=9, columns=129), inplace=True
        ),
        timed("large", "mixed", rows=8192, columns=8192),
        with_options(timed("inplace", "mixed", rows=8192, columns=8192), inplace=True),
        timed("odd", "mixed", rows=4099, columns=8191),
    ),
    check=Close(),
    flops=per_element(2),
    mutates=("inplace", "out"),
)
def fused_relu_sqrt(input: torch.Tensor, inplace: bool = False, out: torch.Tensor | None = None):
    """sqrt(max(x, 0)), NaN stays NaN; integers become float32. `inplace=True` overwrites and
    returns the input, `out` is written and returned.
    """
    values = input if input.is_floating_point() else input.to(torch.float32)
    if inplace:
        return values.relu_().sqrt_()
    return torch.sqrt(torch.relu(values), out=out)


def sub_gelu_size(input, other, alpha=1, approximate="none", out=None):
    """|input| + |alpha other| through GELU, and |x| behind its small results."""
    size = input.abs() + abs(alpha * other)
    values = input - alpha * other
    return through(functools.partial(F.gelu, approximate=approximate), values, size) + values.abs()


@fusion(
    "fused_sub_gelu",
    inputs=two_summands,
    cases=(
        small("one", "normal", n=1),
        with_options(small("odd", "wide", rows=37, columns=53), approximate="tanh"),
        with_options(small("number", "wide", n=1009), other=0.5, alpha=-1.5),
        with_options(small("row", "normal", a=3, b=5, c=67), broadcast="other", alpha=2),
        with_options(small("out", "mixed", rows=64, columns=128), out=True, approximate="tanh"),
        with_options(
            small("transposed", "shifted", layout="transposed", rows=33, columns=48), alpha=-0.5
        ),
        with_options(small("half", "normal", "float16", rows=31, columns=65), alpha=0.25),
        timed("large", "normal", rows=8192, columns=4096),
        with_options(timed("half", "normal", "float16", rows=8192, columns=8192), alpha=0.5),
        with_options(timed("tanh", "wide", rows=4099, columns=8191), approximate="tanh"),
    ),
    check=Close(magnitude=sub_gelu_size, narrow_intermediates=True),
    flops=per_element(10),
    mutates=("out",),
    differences=(
        "the exact form is d (1 + erf(d / sqrt 2)) / 2, as described: the published reference lost "
        "the 1 +",
        "`out` is written and returned; the published reference ignores it",
    ),
)
def fused_sub_gelu(input, other, alpha=1, approximate="none", out=None):
    """GELU(input - alpha * other), exact (`none`) or by its `tanh` approximation. `other` is a
    tensor that broadcasts with the input, or a number; `out` is written and returned.
    """
    difference = torch.sub(input, other, alpha=alpha)
    return written(F.gelu(difference, approximate=approximate), out)


def beside_the_threshold(make: Maker) -> Arguments:
    """One tensor, moved where rounding would decide on which side of the threshold it lies."""
    options = make.options()
    kept = 1 - options.get("p", 0.5) if options.get("training", True) else 1.0
    values = make.tensor(*make.case.shape)
    ratio = values.abs() / (kept * options.get("lambd", 0.5))
    doubtful = (ratio - 1).abs() < 1e-4
    if math.frexp(kept)[0] == 0.5:  # a power of two: scaling is exact, and the threshold a value
        doubtful &= ratio != 1
    return Arguments((values.mul_(1 + 0.01 * doubtful.to(values.dtype)),), options)


def dropped_hardshrink(input, p=0.5, training=True, inplace=False, lambd=0.5):
    """What chance may leave of each element, with its probability."""
    if not training:
        return ((1.0, F.hardshrink(input, lambd)),)
    kept = F.hardshrink(input / (1 - p), lambd)
    return ((p, torch.zeros_like(kept)), (1 - p, kept))


@fusion(
    "fused_hardshrink_dropout",
    inputs=beside_the_threshold,
    cases=(
        small("one", "shifted", n=1),
        small("odd", "wide", rows=37, columns=53),
        with_options(small("eval", "heavy_tail", n=1009), training=False),
        with_options(small("ties", "ties", a=3, b=5, c=67), training=False, lambd=1.0),
        with_options(small("half-kept", "ties", rows=40, columns=60), lambd=2.0),
        with_options(
            small("transposed", "scaled", layout="transposed", rows=33, columns=48), p=0.3
        ),
        with_options(small("tiles", "shifted", rows=64, columns=128), p=0.75, lambd=8.0),
        timed("large", "mixed", rows=8192, columns=4096),
        with_options(timed("eval", "mixed", rows=8192, columns=4096), training=False),
        with_options(timed("odd", "mixed", rows=4099, columns=8191), p=0.1, lambd=0.7),
    ),
    check=Mixture(dropped_hardshrink),
    flops=per_element(14),
    draws=3,
    differences=(
        "no stream of numbers is asked for: each element is kept with probability 1 - p, "
        "independently of the others and of the last call",
        "`inplace` stays False: the published text does not say what is left in the input",
    ),
)
def fused_hardshrink_dropout(
    input: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    inplace: bool = False,
    lambd: float = 0.5,
):
    """A dropout in training, 0 with probability p, else x / (1 - p); then 0 where the result lies
    in [-lambd, lambd].
    """
    return F.hardshrink(F.dropout(input, p, training, inplace), lambd)


PARTS = ("first", "second", "third")


def joined_and_divisor(make: Maker) -> Arguments:
    """Tensors that differ in the joined dimension and a divisor: the case's number, or a tensor of
    the result's shape, whole where the quotient is rounded.
    """
    sizes, options = make.case.sizes, make.case.options
    before = [sizes["rows"]] if "rows" in sizes else []
    after = [sizes["depth"]] if "depth" in sizes else []
    widths = [sizes[part] for part in PARTS if part in sizes]
    joined = [make.tensor(*before, width, *after) for width in widths]
    shape = (*before, sum(widths), *after)
    divisor = options.get("divisor")
    if divisor is None:
        whole = make.randint(1, 9, *shape).to(make.dtype)
        fraction = make.positive(*shape) if "rounding_mode" not in options else whole
        divisor = torch.where(make.mask(*shape), fraction, -fraction)
    keywords = make.options("divisor", "out")
    if options.get("out"):
        keywords["out"] = make.out(*shape)
    return Arguments((joined, divisor), keywords)


def joined_operations(case: Case) -> float:
    """A quotient for each joined element."""
    width = sum(case.sizes.get(part, 0) for part in PARTS)
    return float(width * case.sizes.get("rows", 1) * case.sizes.get("depth", 1))


@fusion(
    "fused_hstack_div",
    inputs=joined_and_divisor,
    cases=(
        with_options(small("one", "normal", first=1), divisor=3.0),
        small("odd", "heavy_tail", rows=37, first=29, second=24),
        with_options(small("flat", "normal", first=501, second=3, third=505), divisor=0.7),
        with_options(
            small("floor", "integers", rows=33, first=48, second=7), rounding_mode="floor"
        ),
        with_options(
            small("trunc", "integers", rows=9, first=5, second=8, depth=11), rounding_mode="trunc"
        ),
        with_options(
            small("floor-number", "scaled", first=260, second=513),
            divisor=-2.0,
            rounding_mode="floor",
        ),
        with_options(
            small("integers", "integers", "int64", rows=31, first=40, second=25),
            divisor=3,
            rounding_mode="floor",
        ),
        with_options(small("quotients", "integers", "int64", first=61, second=40), divisor=7),
        small("transposed", "shifted", layout="transposed", rows=33, first=24, second=20),
        with_options(small("out", "mixed", rows=40, first=30, second=34), out=True),
        with_options(timed("flat", "mixed", first=1 << 25, second=1 << 25), divisor=2.5),
        timed("rows", "mixed", rows=8192, first=4096, second=4096),
        with_options(
            timed("floor", "scaled", rows=4099, first=2001, second=6007),
            divisor=2.0,
            rounding_mode="floor",
        ),
    ),
    check=Close(),
    flops=joined_operations,
    mutates=("out",),
    differences=(
        "quotients that are rounded are of whole numbers or of a divisor that is a power of two: "
        "elsewhere the last digit of the quotient would decide",
    ),
)
def fused_hstack_div(tensors, divisor, *, rounding_mode=None, out=None):
    """Tensors joined along the second dimension (1-D: the only one), divided by a number or by a
    tensor that broadcasts; `rounding_mode` None, "trunc" (towards 0) or "floor". Integers divide
    to floats unless rounded; `out` is written and returned.
    """
    return torch.div(torch.hstack(tensors), divisor, rounding_mode=rounding_mode, out=out)
