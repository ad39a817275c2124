"""Factorizations: Cholesky, LU, QR and LDL."""

import torch

from benchmark.suite.checks import Rebuilds, Residual
from benchmark.suite.cost import product
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.linear_algebra.common import (
    LIBRARY_LOOP,
    batch_of,
    general,
    in_layout,
    indefinite,
    linear_algebra,
    orthogonal,
    unpivoted,
    wants_out,
    zero,
)
from benchmark.suite.spec import Arguments


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


def lu_matrices(make: Maker) -> Arguments:
    """(*batch, m, n): in need of pivoting, or near the identity when there is none."""
    m, n = make.size("m"), make.size("n")
    batch = batch_of(make, "m", "n")
    keywords = make.options("out")
    if not make.case.options.get("pivot", True):
        A = unpivoted(make, m, n, *batch)
    elif m == n:
        A = general(make, n, *batch)
    else:
        A = make.tensor(*batch, m, n)
    if wants_out(make):
        k = min(m, n)
        keywords["out"] = tuple(make.out(*batch, *s) for s in ((m, m), (m, k), (k, n)))
    return Arguments((A,), keywords)


def lu_residuals(arguments: Arguments, factors) -> tuple[Residual, ...]:
    """P L U = A, a permutation, triangles, and multipliers of at most 1 with pivoting."""
    P, L, U = factors
    pivots = arguments.kwargs.get("pivot", True)
    rebuilt = P @ L @ U if pivots else L @ U
    diagonal = L.diagonal(dim1=-2, dim2=-1)
    claims = (
        Residual("P L U", rebuilt, arguments.args[0]),
        zero("above L's diagonal", L.triu(1)),
        Residual("L's diagonal", diagonal, torch.ones_like(diagonal), exact=True),
        zero("below U's diagonal", U.tril(-1)),
    )
    if not pivots:
        return claims
    excess = (L.abs() - 1).clamp(min=0)
    return (
        *claims,
        zero("P's entries are 0 or 1", P * (P - 1)),
        zero("P's rows hold one 1", P.sum(-1) - 1),
        zero("P's columns hold one 1", P.sum(-2) - 1),
        Residual(
            "multipliers of at most 1", excess, torch.zeros_like(excess), torch.ones_like(excess)
        ),
    )


def eliminated(A: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """L (*, m, k) and U (*, k, n) without pivoting, column by column."""
    k = min(A.shape[-2:])
    L, U = torch.eye(A.shape[-2], k, dtype=A.dtype, device=A.device), A.clone()
    L = L.expand(*A.shape[:-2], -1, -1).clone()
    for j in range(k):
        factor = U[..., j + 1 :, j] / U[..., j, j].unsqueeze(-1)
        L[..., j + 1 :, j] = factor
        U[..., j + 1 :, :] -= factor.unsqueeze(-1) * U[..., j : j + 1, :]
    return L, U[..., :k, :].triu()


@linear_algebra(
    "lu",
    inputs=lu_matrices,
    cases=(
        small("one", "normal", m=1, n=1),
        small("odd", "normal", m=29, n=29),
        small("tall", "normal", m=37, n=13),
        small("wide", "normal", m=11, n=31),
        small("batch", "normal", batch=3, m=17, n=17),
        small("transposed", "normal", layout="transposed", m=32, n=32),
        with_options(small("no-pivot", "normal", m=19, n=23), pivot=False),
        with_options(small("no-pivot-batch", "normal", batch=2, m=21, n=13), pivot=False),
        with_options(small("out", "normal", m=15, n=18), out=True),
        timed("small", "normal", batch=16384, m=32, n=32),
        timed("large", "normal", batch=4096, m=64, n=64),
        with_options(timed("no-pivot", "normal", batch=4096, m=64, n=64), pivot=False),
    ),
    check=Rebuilds(lu_residuals),
    flops=product(2 / 3, "batch", "m", "n", "n"),
    mutates=("out",),
    differences=(
        "judged by what the factors rebuild and by their structure: where two pivots are nearly as "
        "large, either will do",
        "without pivoting the reference eliminates column by column where PyTorch's library has no "
        "such routine, on the CPU; the timed one is PyTorch's",
    ),
)
def lu(A: torch.Tensor, pivot: bool = True, out=None):
    """P, L, U with A = P L U, for A (*, m, n): a permutation (*, m, m), a unit lower triangle
    (*, m, k) with entries of at most 1 (partial pivoting), an upper triangle (*, k, n);
    k = min(m, n). With `pivot=False` A = L U, and P is an empty tensor of shape (0,).
    """
    if pivot or A.is_cuda:
        return torch.linalg.lu(A, pivot=pivot, out=out)
    factors = (A.new_empty(0), *eliminated(A))
    if out is None:
        return factors
    for target, factor in zip(out, factors, strict=True):
        target.resize_(factor.shape).copy_(factor)
    return out


def qr_matrices(make: Maker) -> Arguments:
    """(*batch, m, n), full rank."""
    m, n = make.size("m"), make.size("n")
    batch = batch_of(make, "m", "n")
    keywords = make.options("out")
    if wants_out(make):
        k = min(m, n)
        keywords["out"] = (make.out(*batch, m, k), make.out(*batch, k, n))
    return Arguments((make.tensor(*batch, m, n),), keywords)


def qr_residuals(arguments: Arguments, factors) -> tuple[Residual, ...]:
    """Q R = A, orthonormal columns, an upper triangle; without Q, R^T R = A^T A."""
    A, (Q, R) = arguments.args[0], factors
    triangle = zero("below R's diagonal", R.tril(-1))
    if arguments.kwargs.get("mode") == "r":
        return triangle, Residual("R^T R", R.mT @ R, A.mT @ A)
    return triangle, Residual("Q R", Q @ R, A), orthogonal("Q", Q)


@linear_algebra(
    "qr",
    inputs=qr_matrices,
    cases=(
        small("one", "normal", m=1, n=1),
        small("odd", "normal", m=29, n=29),
        small("tall", "heavy_tail", m=37, n=13),
        with_options(small("complete", "normal", m=31, n=12), mode="complete"),
        with_options(small("r", "mixed", m=23, n=17), mode="r"),
        small("wide", "shifted", m=11, n=31),
        small("batch", "normal", batch=3, m=19, n=16),
        small("transposed", "normal", layout="transposed", m=32, n=24),
        with_options(small("wide-r", "normal", batch=2, m=7, n=13), mode="r"),
        with_options(small("out", "normal", m=15, n=9), out=True),
        timed("small", "normal", batch=1024, m=32, n=32),
        timed("tall", "normal", batch=1024, m=64, n=32),
        with_options(timed("r", "normal", batch=8192, m=64, n=64), mode="r"),
    ),
    check=Rebuilds(qr_residuals),
    flops=product(2, "batch", "m", "n", "n"),
    mutates=("out",),
    differences=(
        "judged by what the factors rebuild and by their structure: each column of Q may have "
        "either sign, with the row of R to match",
    ),
)
def qr(A: torch.Tensor, mode: str = "reduced", out=None):
    """Q, R with A = Q R for A (*, m, n): orthonormal columns and an upper triangle, zeros below.

    `reduced`: (*, m, k) and (*, k, n) with k = min(m, n); `complete`: (*, m, m) and (*, m, n);
    `r`: an empty tensor of shape (0,), and R (*, k, n).
    """
    return torch.linalg.qr(A, mode=mode, out=out)


def symmetric_matrices(make: Maker) -> Arguments:
    """(*batch, n, n), indefinite; `hollow`: zeros on the diagonal, so that no 1 x 1 pivot will do
    to begin with.
    """
    n = make.size("n")
    batch = batch_of(make, "n")
    if make.case.options.get("hollow"):
        square = make.randn(*batch, n, n).to(make.dtype)
        A = in_layout(make, square.triu(1) + square.triu(1).mT)
    else:
        A = indefinite(make, n, *batch)
    keywords = make.options("out", "hollow")
    if wants_out(make):
        keywords["out"] = (make.out(*batch, n, n), make.out(*batch, n, dtype=torch.int32))
    return Arguments((A,), keywords)


def second_of_pair(pivots: torch.Tensor) -> torch.Tensor:
    """Which columns are the second of a 2 x 2 block: negative pivots come in pairs."""
    second = torch.zeros_like(pivots, dtype=torch.bool)
    for j in range(1, pivots.shape[-1]):
        second[:, j] = (pivots[:, j] < 0) & (pivots[:, j - 1] < 0) & ~second[:, j - 1]
    return second


def ldl_rebuilt(LD: torch.Tensor, pivots: torch.Tensor) -> torch.Tensor:
    """P1 L1 P2 L2 ... D ... L2^T P2^T L1^T P1^T for (b, n, n) and (b, n), as LAPACK's sytrf stores
    them: interchanges aren't applied to earlier columns of L.
    """
    count, n = pivots.shape
    second = second_of_pair(pivots)
    first = (pivots < 0) & ~second
    below = LD.diagonal(-1, -2, -1) * first[:, : n - 1]  # of the blocks of D
    A = torch.diag_embed(LD.diagonal(0, -2, -1))
    A = A + torch.diag_embed(below, -1) + torch.diag_embed(below, 1)
    each, places = torch.arange(count, device=LD.device), torch.arange(n, device=LD.device)
    for j in reversed(range(n)):
        column = LD[:, :, j] * (places > j)
        if j + 1 < n:
            column[:, j + 1] *= ~first[:, j]
        A = A + column[:, :, None] * A[:, j : j + 1, :]
        A = A + A[:, :, j : j + 1] * column[:, None, :]
        here = (j + first[:, j].long()).clamp(max=n - 1)
        there = torch.where(second[:, j], here, (pivots[:, j].abs().long() - 1).clamp(0, n - 1))
        order = places.repeat(count, 1)
        order[each, here], order[each, there] = there, here
        A = A.gather(1, order[:, :, None].expand_as(A)).gather(2, order[:, None, :].expand_as(A))
    return A


def ldl_residuals(arguments: Arguments, factors) -> tuple[Residual, ...]:
    """The packed factors rebuild A; pivots are rows from the current one on."""
    A, (LD, pivots) = arguments.args[0], factors
    n = A.shape[-1]
    LD, pivots = LD.reshape(-1, n, n), pivots.reshape(-1, n)
    places = torch.arange(1, n + 1, device=pivots.device)
    wrong = (pivots.abs() < places) | (pivots.abs() > n)
    return (
        Residual("P L D L^T P^T", ldl_rebuilt(LD, pivots), A.reshape(-1, n, n)),
        zero("pivots out of range", wrong.double()),
    )


@linear_algebra(
    "ldl_factor",
    inputs=symmetric_matrices,
    cases=(
        small("one", "normal", n=1),
        with_options(small("two-hollow", "normal", n=2), hollow=True),
        small("odd", "normal", n=29),
        with_options(small("hollow", "normal", n=24), hollow=True),
        with_options(small("batch", "normal", batch=2, n=13), hermitian=True),
        small("transposed", "normal", layout="transposed", n=23),
        with_options(small("out", "normal", n=13), out=True),
        with_options(small("hollow-batch", "normal", batch=2, n=12), hollow=True, hermitian=True),
        timed("small", "normal", batch=128, n=32),
        timed("large", "normal", batch=64, n=64),
        with_options(timed("hollow", "normal", batch=64, n=64), hollow=True),
    ),
    check=Rebuilds(ldl_residuals),
    flops=product(1 / 3, "batch", "n", "n", "n"),
    mutates=("out",),
    differences=(
        "judged by what the packed factors rebuild: any choice of pivots will do that keeps the "
        "rebuilt matrix within roundings of A's largest entry",
        "complex matrices are not asked for: Triton has no complex numbers; `hermitian` changes "
        "nothing for real ones",
        LIBRARY_LOOP,
    ),
)
def ldl_factor(A: torch.Tensor, hermitian: bool = False, out=None):
    """LD (*, n, n) and pivots (*, n), int32, of symmetric matrices: A = P L D L^T P^T, packed as
    LAPACK's sytrf does for the lower triangle.

    Pivots count from 1. A positive p at column j: a 1 x 1 block, rows j and p were exchanged. The
    same negative -p at j and j + 1: a 2 x 2 block, rows j + 1 and p were exchanged. Below the
    blocks of D are the multipliers of L, as they were when their column was eliminated: later
    exchanges aren't applied to them. What is above the diagonal of LD doesn't count.
    """
    return torch.linalg.ldl_factor(A, hermitian=hermitian, out=out)
