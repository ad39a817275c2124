"""Determinants."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import product
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.linear_algebra.common import (
    batch_of,
    general,
    given_back,
    linear_algebra,
    unpivoted,
    wants_out,
)
from benchmark.suite.spec import Arguments

CONDITIONED = (
    "the tolerance follows the condition of each determinant, |det| sum |A^-1||A|, and inputs are "
    "such that none overflows: the published timed ones are infinite"
)


def square_matrices(make: Maker) -> Arguments:
    """(*batch, n, n): in need of pivoting, or near the identity when there is none."""
    n = make.size("n")
    batch = batch_of(make, "n")
    pivots = make.case.options.get("pivot", True)
    A = general(make, n, *batch) if pivots else unpivoted(make, n, n, *batch)
    keywords = make.options("out")
    if wants_out(make):
        keywords["out"] = make.out(*batch)
    return Arguments((A,), keywords)


def conditioned(A: torch.Tensor) -> torch.Tensor:
    """|det| sum_ij |A^-1|_ji |A|_ij: what rounding A's entries does to the determinant."""
    return torch.linalg.det(A).abs() * (torch.linalg.inv(A).mT * A).abs().sum((-2, -1))


def det_magnitude(A):
    return conditioned(A)


def lu_magnitude(A, *, pivot=True, out=None):
    return conditioned(A)


def qr_magnitude(A, *, mode="reduced", out=None):
    return conditioned(A)


@linear_algebra(
    "det",
    inputs=square_matrices,
    cases=(
        small("one", "normal", n=1),
        small("two", "normal", n=2),
        small("odd", "normal", n=37),
        small("tiles", "normal", n=64),
        small("batch", "normal", batch=7, n=9),
        small("transposed", "normal", layout="transposed", batch=3, n=16),
        small("two-dims", "normal", a=2, b=3, n=11),
        timed("small", "normal", batch=32768, n=32),
        timed("large", "normal", batch=8192, n=64),
        timed("odd", "normal", batch=16384, n=47),
    ),
    check=Close(magnitude=det_magnitude),
    flops=product(2 / 3, "batch", "n", "n", "n"),
    differences=(CONDITIONED,),
)
def det(A):
    """The determinants (*,) of square matrices (*, n, n)."""
    return torch.linalg.det(A)


@linear_algebra(
    "determinant_lu",
    inputs=square_matrices,
    cases=(
        small("one", "normal", n=1),
        with_options(small("two", "normal", n=2), pivot=True),
        with_options(small("no-pivot", "normal", n=37), pivot=False),
        small("tiles", "normal", n=48),
        small("batch", "normal", batch=7, n=9),
        with_options(
            small("transposed", "normal", layout="transposed", batch=3, n=16), pivot=False
        ),
        with_options(small("out", "normal", batch=3, n=11), out=True),
        timed("small", "normal", batch=32768, n=32),
        timed("large", "normal", batch=8192, n=64),
        with_options(timed("no-pivot", "normal", batch=8192, n=64), pivot=False),
    ),
    check=Close(magnitude=lu_magnitude),
    flops=product(2 / 3, "batch", "n", "n", "n"),
    mutates=("out",),
    differences=(
        CONDITIONED,
        "with `pivot=False` the inputs need no pivoting; the reference pivots all the same, which "
        "doesn't change the determinant",
    ),
)
def determinant_lu(A, *, pivot=True, out=None):
    """The determinants (*,) of square matrices (*, n, n) by A = P L U: the permutation's sign times
    the product of U's diagonal. With `pivot=False` P is the identity.
    """
    return given_back(torch.linalg.det(A), out)


@linear_algebra(
    "determinant_via_qr",
    inputs=square_matrices,
    cases=(
        small("one", "normal", n=1),
        with_options(small("two", "normal", n=2), mode="complete"),
        small("odd", "normal", n=37),
        with_options(small("tiles", "normal", n=48), mode="complete"),
        small("batch", "normal", batch=7, n=9),
        small("transposed", "normal", layout="transposed", batch=3, n=16),
        with_options(small("out", "normal", batch=3, n=11), out=True),
        timed("small", "normal", batch=32768, n=32),
        with_options(timed("large", "normal", batch=8192, n=64), mode="complete"),
        timed("odd", "normal", batch=16384, n=47),
    ),
    check=Close(magnitude=qr_magnitude),
    flops=product(4 / 3, "batch", "n", "n", "n"),
    mutates=("out",),
    differences=(
        CONDITIONED,
        "the timed baseline multiplies the diagonal of R and takes the sign from PyTorch's own "
        "reflections, instead of a second determinant, of Q",
    ),
)
def determinant_via_qr(A, *, mode="reduced", out=None):
    """The determinants (*,) of square matrices (*, n, n) by A = Q R: det(Q), which is 1 or -1,
    times the product of R's diagonal. `mode` doesn't change the factors of a square matrix.
    """
    packed, reflections = torch.geqrf(A)
    # A reflection with a nonzero factor has the determinant -1.
    sign = 1 - 2 * ((reflections != 0).sum(-1) % 2)
    return given_back(packed.diagonal(0, -2, -1).prod(-1) * sign, out)
