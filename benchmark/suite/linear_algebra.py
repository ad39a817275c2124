"""Factorizations and solvers."""

import torch

from benchmark.suite.checks import Rebuilds, Residual
from benchmark.suite.cost import product
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

linear_algebra = category("LinearAlgebra")


def spd_matrices(make: Maker) -> Arguments:
    """Symmetric positive definite matrices, (batch, n, n) or (n, n); `out` on request."""
    n = make.size("n")
    batch = [size for name, size in make.case.sizes.items() if name != "n"]
    keywords = make.options("out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(*batch, n, n)
    return Arguments((make.spd(n, *batch),), keywords)


def cholesky_residuals(arguments: Arguments, factor: torch.Tensor) -> tuple[Residual, ...]:
    """L L^H = A, zeros above the diagonal, a positive diagonal."""
    lower = factor.mH if arguments.kwargs.get("upper") else factor
    diagonal = lower.diagonal(dim1=-2, dim2=-1)
    return (
        Residual("factor times its transpose", lower @ lower.mH, arguments.args[0]),
        Residual("other triangle", lower.triu(1), torch.zeros_like(lower), exact=True),
        Residual("positive diagonal", diagonal, diagonal.abs(), exact=True),
    )


@linear_algebra(
    "cholesky",
    inputs=spd_matrices,
    cases=(
        small("one", "normal", n=1),
        small("two", "normal", n=2),
        with_options(small("odd", "normal", n=37), upper=True),
        small("tiles", "normal", n=64),
        small("batch", "normal", batch=3, n=17),
        with_options(small("batch-upper", "normal", batch=2, n=33), upper=True),
        small("double", "normal", "float64", n=29),
        with_options(small("out", "normal", n=19), out=True),
        timed("batch-small", "normal", batch=8192, n=64),
        timed("batch", "normal", batch=512, n=256),
        timed("large", "normal", n=4096),
    ),
    check=Rebuilds(cholesky_residuals),
    flops=product(1 / 3, "batch", "n", "n", "n"),
    mutates=("out",),
    differences=(
        "complex matrices are not asked for: Triton has no complex numbers, and the published test "
        "compared them with zero tolerance",
        "judged by what the factor rebuilds: equally good factors differ in their last digits",
    ),
)
def cholesky(A: torch.Tensor, upper: bool = False, out: torch.Tensor | None = None):
    """Cholesky factor of symmetric positive definite matrices (*, n, n): A = L L^T, or U^T U with
    `upper`.
    """
    return torch.linalg.cholesky(A, upper=upper, out=out)
