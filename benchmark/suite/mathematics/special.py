"""Special functions, elementwise, in float32: rounding is judged against the terms they are sums
of, and against what a rounding of the argument does.
"""

import math

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, one_tensor, small, timed, with_options
from benchmark.suite.mathematics.domains import at_most, with_output
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

mathematics = category("Math")


def special_cases(*families: str, times: tuple[str, str, str]) -> tuple[Case, ...]:
    """Eight small cases of the families in turn, `out` in every third, and three timed ones."""
    dealt = [families[i % len(families)] for i in range(8)]
    checked = (
        small("one", dealt[0], n=1),
        small("odd", dealt[1], rows=37, columns=53),
        with_options(small("prime", dealt[2], n=1009), out=True),
        small("cube", dealt[3], a=3, b=5, c=67),
        small("transposed", dealt[4], layout="transposed", rows=33, columns=48),
        with_options(small("slim", dealt[5], rows=1021, columns=3), out=True),
        small("tiles", dealt[6], rows=64, columns=128),
        small("strided", dealt[7], layout="strided", rows=9, columns=129),
    )
    return (
        *checked,
        timed("large", times[0], rows=8192, columns=8192),
        with_options(timed("out", times[1], rows=8192, columns=4096), out=True),
        timed("odd", times[2], rows=4099, columns=8191),
    )


def without_out(cases: tuple[Case, ...]) -> tuple[Case, ...]:
    """The cases for a function that has no `out`."""
    return tuple(Case(c.name, c.kind, c.dtype, c.sizes, c.family, {}, c.layout) for c in cases)


AIRY_0, AIRY_SLOPE = 0.355028053887817239, 0.258819403792806798  # Ai(0) and -Ai'(0)


def airy_truth(input, out=None):
    """Ai in float64. From -5 to -2 by the power series: there PyTorch's is off by up to 3e-6, in
    float64 as well.
    """
    values = torch.special.airy_ai(input)
    cube = input.clamp(-5, -2) ** 3
    even, odd = torch.full_like(input, AIRY_0), AIRY_SLOPE * input.clamp(-5, -2)
    series = even - odd
    for k in range(0, 90, 3):  # the last terms are below 1e-16 at -5
        even, odd = even * cube / ((k + 2) * (k + 3)), odd * cube / ((k + 3) * (k + 4))
        series = series + even - odd
    values = torch.where((input > -5) & (input < -2), series, values)
    return values if out is None else out.copy_(values)


def airy_magnitude(input, out=None):
    """Left of 0 the amplitude, times the phase that rounding shifts; between 0 and 2.1 the growing
    solutions whose difference Ai is; beyond, Ai times its exponent.

    Between -2.6 and -2.05 it is 24, 24 eps being the 3e-6 that PyTorch is off there: else these
    errors would be everybody's tolerance everywhere.
    """
    z = input.abs()
    exponent = z**1.5 * 2 / 3
    envelope = (z + 1).rsqrt().sqrt() / math.sqrt(math.pi)
    tail = torch.special.airy_ai(input.clamp(min=0)) * (1 + exponent)
    grown = torch.where(input < 2.1, torch.exp(exponent.clamp(max=3)), tail)
    size = torch.where(input < 0, envelope * (1 + exponent), grown)
    return size.masked_fill((input > -2.6) & (input < -2.05), 24.0)


@mathematics(
    "airy_ai",
    inputs=one_tensor,
    cases=special_cases(
        "normal", "wide", "scaled", "wide", "mixed", "shifted", "mixed", "tiny",
        times=("wide", "scaled", "mixed"),
    ),
    truth=airy_truth,
    check=Close(magnitude=airy_magnitude),
    flops=per_element(50),
    mutates=("out",),
    differences=(
        "from -5 to -2 the truth is the power series: PyTorch's own, the published truth, is off "
        "by up to 3e-6 just left of -2.09",
    ),
)  # fmt: skip
def airy_ai(input: torch.Tensor, out: torch.Tensor | None = None):
    """Airy function Ai(x), the solution of y'' = x y that falls off to the right: oscillates for
    x < 0, decays like exp(-2/3 x^(3/2)) for x > 0. Written to `out` where given.
    """
    return torch.special.airy_ai(input, out=out)


def bessel_truth(input, out=None):
    """J1 in float64. For |x| from 5 to 14 by the power series: there PyTorch's is off by up to
    4e-7, in float64 as well.
    """
    values = torch.special.bessel_j1(input)
    term = input.clamp(-14, 14) / 2
    square, series = -term.square(), term
    for k in range(1, 60):  # the last terms are below 1e-16 at 14
        term = term * square / (k * (k + 1))
        series = series + term
    values = torch.where((input.abs() >= 5) & (input.abs() <= 14), series, values)
    return values if out is None else out.copy_(values)


def bessel_magnitude(input, out=None):
    """The envelope: |x| / 2 near 0, sqrt(2 / (pi |x|)) far out, times the phase |x| that rounding
    shifts.
    """
    x = input.abs()
    return torch.minimum(x / 2, torch.sqrt(2 / (math.pi * x))) * (1 + x)


@mathematics(
    "bessel_j1",
    inputs=one_tensor,
    cases=special_cases(
        "normal", "wide", "scaled", "tiny", "mixed", "shifted", "mixed", "wide",
        times=("wide", "scaled", "mixed"),
    ),
    truth=bessel_truth,
    check=Close(magnitude=bessel_magnitude),
    flops=per_element(100),
    mutates=("out",),
    differences=(
        "from 5 to 14 the truth is the power series: PyTorch's own, the published truth, is off by "
        "up to 5e-7 just above 5",
    ),
)  # fmt: skip
def bessel_j1(input: torch.Tensor, out: torch.Tensor | None = None):
    """Bessel function of the first kind, order 1; odd in x. Written to `out` where given."""
    return torch.special.bessel_j1(input, out=out)


def moderate(make: Maker) -> Arguments:
    """A tensor within [-80, 80]: exp(80), and thus I0(80), is a float32."""
    return with_output(make, at_most(make, 80.0))


def i0_magnitude(input_tensor, out=None):
    """|x| I0(x): what a rounding of the exponent does."""
    return torch.special.i0(input_tensor) * input_tensor.abs()


@mathematics(
    "i0",
    inputs=moderate,
    cases=special_cases(
        "normal", "wide", "scaled", "tiny", "heavy_tail", "shifted", "mixed", "ties",
        times=("wide", "scaled", "mixed"),
    ),
    check=Close(magnitude=i0_magnitude),
    flops=per_element(40),
    mutates=("out",),
)  # fmt: skip
def i0(input_tensor: torch.Tensor, out: torch.Tensor | None = None):
    """Modified Bessel function of the first kind, order 0; even in x, grows like exp(|x|). Written
    to `out` where given.
    """
    return torch.special.i0(input_tensor, out=out)


def gammaln_magnitude(input, out=None):
    """|x| (1 + |log|x||) + 1: the terms of Stirling's series, far larger than log|Gamma| near its
    zeros.
    """
    x = input.abs()
    return 1 + (x * (1 + x.log().abs())).nan_to_num(0, 0, 0)


@mathematics(
    "gammaln",
    inputs=one_tensor,
    cases=special_cases(
        "normal", "wide", "scaled", "ties", "mixed", "shifted", "special", "unit",
        times=("wide", "scaled", "mixed"),
    ),
    check=Close(magnitude=gammaln_magnitude),
    flops=per_element(60),
    mutates=("out",),
)  # fmt: skip
def gammaln(input: torch.Tensor, out: torch.Tensor | None = None):
    """log|Gamma(x)|, for negative x too; infinite at 0, at negative whole numbers and at both
    infinities. Written to `out` where given.
    """
    return torch.special.gammaln(input, out=out)


def digamma_magnitude(input_tensor):
    """1/|x| + |log|x|| + 1, the terms of the series, and |x| psi'(x), what a rounding of x does
    near a pole.
    """
    x = input_tensor.abs()
    terms = 1 / x + x.log().abs() + 1
    return terms + (x * torch.polygamma(1, input_tensor).abs()).nan_to_num(0, 0, 0)


@mathematics(
    "digamma",
    inputs=one_tensor,
    cases=without_out(
        special_cases(
            "normal", "wide", "scaled", "ties", "mixed", "shifted", "special", "unit",
            times=("wide", "scaled", "mixed"),
        )
    ),
    check=Close(magnitude=digamma_magnitude),
    flops=per_element(40),
)  # fmt: skip
def digamma(input_tensor: torch.Tensor):
    """psi(x), the derivative of log Gamma(x), for negative x too: NaN at negative whole numbers and
    at -inf, -inf at 0, inf at -0.
    """
    return torch.digamma(input_tensor)


def order_and_positive(make: Maker) -> Arguments:
    """The order, a number, and a tensor of positive values, none below 1/32."""
    keywords = make.options("order", "out")
    x = make.tensor(*make.case.shape).abs_().add_(1 / 32)
    if make.case.options.get("out"):
        keywords["out"] = make.out(*make.case.shape)
    return Arguments((make.case.options["order"], x), keywords)


def polygamma_magnitude(n, input, *, out=None):
    """(n + 1) |log x| times the result: what a rounding of the exponent of x^-(n+1) does."""
    return torch.polygamma(n, input).abs() * (1 + (n + 1) * input.log().abs())


@mathematics(
    "polygamma",
    inputs=order_and_positive,
    cases=(
        with_options(small("one", "normal", n=1), order=1),
        with_options(small("odd", "wide", rows=37, columns=53), order=1),
        with_options(small("two", "scaled", n=1009), order=2),
        with_options(small("three", "unit", a=3, b=5, c=67), order=3, out=True),
        with_options(small("four", "normal", layout="transposed", rows=33, columns=48), order=4),
        with_options(small("tiny", "tiny", rows=31, columns=65), order=2, out=True),
        with_options(small("six", "mixed", rows=64, columns=128), order=6),
        with_options(small("strided", "shifted", layout="strided", rows=9, columns=129), order=3),
        with_options(timed("one", "mixed", rows=8192, columns=8192), order=1),
        with_options(timed("two", "mixed", rows=8192, columns=4096), order=2, out=True),
        with_options(timed("four", "mixed", rows=4099, columns=8191), order=4),
    ),
    check=Close(magnitude=polygamma_magnitude),
    flops=per_element(60),
    mutates=("out",),
)
def polygamma(n, input, *, out=None):
    """The n-th derivative of psi at x > 0: (-1)^(n+1) n! times the sum over k >= 0 of
    1 / (x + k)^(n+1). The order `n`, at least 1, comes first. Written to `out` where given.
    """
    return torch.polygamma(n, input, out=out)


def exponents_and_shifts(make: Maker) -> Arguments:
    """x above 1 by the family's values, q positive; in the family `ties` multiples of 1/2 from 0,
    poles and undefined places among them.
    """
    x, q = make.tensor(*make.case.shape).abs_(), make.tensor(*make.case.shape).abs_()
    if make.case.family != "ties":
        x.add_(1.0078125)
        q.add_(0.03125)
    return with_output(make, x, q)


def zeta_magnitude(input, other, out=None):
    """x |log q| times the result: what a rounding of the exponent of q^-x does."""
    size = torch.special.zeta(input, other) * (1 + input * other.log().abs())
    return size.nan_to_num(0, 0, 0)


@mathematics(
    "zeta",
    inputs=exponents_and_shifts,
    cases=special_cases(
        "normal", "wide", "unit", "ties", "tiny", "wide", "normal", "shifted",
        times=("wide", "normal", "wide"),
    ),
    check=Close(magnitude=zeta_magnitude),
    flops=per_element(60),
    mutates=("out",),
)  # fmt: skip
def zeta(input: torch.Tensor, other: torch.Tensor, out: torch.Tensor | None = None):
    """Hurwitz zeta function: the sum over k >= 0 of (q + k)^-x, x in `input` and q >= 0 in `other`,
    of one shape. Infinite at x = 1, NaN below, infinite at q = 0. Written to `out` where given.
    """
    return torch.special.zeta(input, other, out=out)


def tensor_and_degree(make: Maker) -> Arguments:
    """A tensor, within [-1, 1) in the family `unit`, and the degree, a number."""
    x = make.tensor(*make.case.shape)
    if make.case.family == "unit":
        x.mul_(2).sub_(1)
    keywords = {"out": make.out(*make.case.shape)} if make.case.options.get("out") else {}
    return Arguments((x, make.case.options["degree"]), keywords)


def chebyshev_magnitude(input, n, out=None):
    """n times the larger of 1 and |T_n|: each step of the recurrence adds a rounding, and so does
    the phase n arccos x.
    """
    return torch.special.chebyshev_polynomial_t(input, n).abs().clamp(min=1) * n


def recurrence(case: Case) -> float:
    """Three operations a step of the recurrence."""
    return per_element(3.0 * max(case.options["degree"] - 1, 1))(case)


@mathematics(
    "chebyshev_polynomial_t",
    inputs=tensor_and_degree,
    cases=(
        with_options(small("constant", "normal", n=7), degree=0),
        with_options(small("linear", "normal", n=1), degree=1),
        with_options(small("square", "wide", rows=37, columns=53), degree=2),
        with_options(small("cube", "unit", n=1009), degree=3, out=True),
        with_options(small("five", "normal", a=3, b=5, c=67), degree=5),
        with_options(small("ten", "unit", layout="transposed", rows=33, columns=48), degree=10),
        with_options(small("out", "wide", rows=31, columns=65), degree=10, out=True),
        with_options(small("ends", "ties", rows=64, columns=128), degree=7),
        with_options(small("strided", "unit", layout="strided", rows=9, columns=129), degree=16),
        with_options(timed("cube", "normal", rows=8192, columns=8192), degree=3),
        with_options(timed("ten", "unit", rows=8192, columns=4096), degree=10, out=True),
        with_options(timed("five", "unit", rows=4099, columns=8191), degree=5),
    ),
    check=Close(magnitude=chebyshev_magnitude),
    flops=recurrence,
    mutates=("out",),
)
def chebyshev_polynomial_t(input: torch.Tensor, n: int, out: torch.Tensor | None = None):
    """Chebyshev polynomial of the first kind: T_0 = 1, T_1 = x, T_k = 2 x T_(k-1) - T_(k-2), which
    is cos(n arccos x) within [-1, 1]; for all real x. Written to `out` where given.
    """
    return torch.special.chebyshev_polynomial_t(input, n, out=out)
