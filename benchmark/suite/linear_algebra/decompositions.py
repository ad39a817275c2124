"""Eigenvalues, singular values and what they make."""

import torch

from benchmark.suite.checks import Rebuilds, Residual
from benchmark.suite.cost import product, total
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.linear_algebra.common import (
    LIBRARY_LOOP,
    batch_of,
    given_back,
    in_layout,
    indefinite,
    linear_algebra,
    orthogonal,
    orthonormal,
    spectrum,
    wants_out,
    zero,
)
from benchmark.suite.spec import Arguments


def rectangles(make: Maker) -> Arguments:
    """(*batch, m, n)."""
    m, n = make.size("m"), make.size("n")
    return Arguments((make.tensor(*batch_of(make, "m", "n"), m, n),), make.options())


def svd_residuals(arguments: Arguments, factors) -> tuple[Residual, ...]:
    """U S Vh = A, orthonormal columns and rows, singular values in falling order, none negative."""
    A, (U, S, Vh) = arguments.args[0], factors
    k = S.shape[-1]
    rebuilt = (U[..., :k] * S.unsqueeze(-2)) @ Vh[..., :k, :]
    return (
        Residual("U S Vh", rebuilt, A),
        orthogonal("U", U),
        orthogonal("Vh", Vh.mT),
        zero("singular values below 0", S.clamp(max=0)),
        zero("singular values out of order", S.diff().clamp(min=0)),
    )


@linear_algebra(
    "svd",
    inputs=rectangles,
    cases=(
        small("one", "normal", m=1, n=1),
        small("odd", "normal", m=13, n=13),
        small("tall", "heavy_tail", m=23, n=11),
        with_options(small("reduced", "mixed", m=29, n=12), full_matrices=False),
        with_options(small("wide", "shifted", m=9, n=21), full_matrices=False),
        small("wide-full", "normal", m=7, n=15),
        with_options(small("batch", "normal", batch=3, m=16, n=8), full_matrices=False),
        small("transposed", "normal", layout="transposed", m=16, n=16),
        with_options(timed("square", "normal", batch=16384, m=32, n=32), full_matrices=False),
        with_options(timed("tall", "normal", batch=32768, m=32, n=16), full_matrices=False),
        timed("full", "normal", batch=32768, m=24, n=16),
    ),
    check=Rebuilds(svd_residuals),
    flops=product(20, "batch", "m", "n", "n"),
    differences=(
        "judged by what the factors rebuild and by their structure: singular vectors are free in "
        "sign, and those of full_matrices beyond the rank in direction",
    ),
)
def svd(A, full_matrices=True):
    """U, S, Vh with A = U diag(S) Vh, for A (*, m, n): orthonormal columns (*, m, m), singular
    values (*, k) in falling order, orthonormal rows (*, n, n); k = min(m, n). Without
    `full_matrices` U is (*, m, k) and Vh (*, k, n).
    """
    U, S, Vh = torch.linalg.svd(A, full_matrices=full_matrices)
    return U, S, Vh


def square_matrices(make: Maker) -> Arguments:
    """(*batch, n, n), general."""
    n = make.size("n")
    return Arguments((make.tensor(*batch_of(make, "n"), n, n),))


def eig_residuals(arguments: Arguments, found) -> tuple[Residual, ...]:
    """A V = V L with unit columns, and V L V^-1 = A: no eigenvalue is left out."""
    A, (values, V) = arguments.args[0], found
    A = A.to(V.dtype)
    norms = torch.linalg.vector_norm(V, dim=-2)
    scaled = V * values.unsqueeze(-2)
    inverse = torch.linalg.inv_ex(V).inverse
    terms = (scaled.abs() @ inverse.abs()).amax((-2, -1), keepdim=True)
    largest = torch.linalg.matrix_norm(A, keepdim=True)
    return (
        Residual("A V = V L", A @ V, scaled, largest),
        Residual("V L V^-1", scaled @ inverse, A, terms),
        Residual("columns of length 1", norms, torch.ones_like(norms), torch.ones_like(norms)),
    )


@linear_algebra(
    "eig",
    inputs=square_matrices,
    cases=(
        small("one", "normal", n=1),
        small("two", "normal", n=2),
        small("odd", "normal", n=23),
        small("shifted", "shifted", n=17),
        small("batch", "mixed", batch=3, n=11),
        small("transposed", "normal", layout="transposed", n=16),
        small("double", "normal", "float64", n=19),
        timed("small", "normal", batch=48, n=16),
        timed("large", "normal", batch=8, n=64),
        timed("single", "normal", n=256),
    ),
    check=Rebuilds(eig_residuals),
    flops=product(25, "batch", "n", "n", "n"),
    delegates=("linalg_eig", "linalg_eigvals"),
    differences=(
        "judged by A V = V L and V L V^-1 = A: order, and phase of the eigenvectors, are free; the "
        "published test compared them with zero tolerance",
        "a library may compute eigenvalues and eigenvectors (torch.linalg.eig or eigvals): Triton "
        "has no complex numbers, and iterations on general matrices are beyond a kernel",
        LIBRARY_LOOP,
    ),
)
def eig(A):
    """Eigenvalues (*, n) and eigenvectors, columns of length 1 of (*, n, n), of general real
    matrices (*, n, n), both complex: A V = V diag(L). The order is free.
    """
    # A copy: on CUDA, PyTorch 2.11 writes into a column-major argument.
    values, vectors = torch.linalg.eig(A.contiguous())
    return values, vectors


def gapped_matrices(make: Maker) -> Arguments:
    """(*batch, m, n) with k singular values from 2 to 4 and the others below 1."""
    m, n = make.size("m"), make.size("n")
    batch, k = batch_of(make, "m", "n"), int(str(make.case.options["k"]))
    full = min(m, n)
    values = torch.cat(
        (spectrum(make, k, 2.0, 4.0, *batch), spectrum(make, full - k, 0.1, 1.0, *batch)), -1
    )
    left, right = orthonormal(make, m, full, *batch), orthonormal(make, n, full, *batch)
    A = in_layout(make, ((left * values.unsqueeze(-2)) @ right.mT).to(make.dtype))
    keywords = make.options("k", "out")
    if wants_out(make):
        keywords["out"] = make.out(*batch, m, n)
    return Arguments((A, k), keywords)


def truncated(A: torch.Tensor, k: int) -> torch.Tensor:
    """The nearest matrix of rank k."""
    U, S, Vh = torch.linalg.svd(A, full_matrices=False)
    return (U[..., :k] * S[..., None, :k]) @ Vh[..., :k, :]


def low_rank_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    A, k = arguments.args
    size = torch.linalg.matrix_norm(A, 2, keepdim=True)
    return (Residual("U_k S_k V_k^T", X, truncated(A, k), size),)


@linear_algebra(
    "low_rank_svd_approximation",
    inputs=gapped_matrices,
    cases=(
        with_options(small("one", "normal", m=1, n=1), k=1),
        with_options(small("odd", "normal", m=13, n=13), k=5),
        with_options(small("tall", "normal", m=23, n=11), k=3, full_matrices=False),
        with_options(small("wide", "normal", m=9, n=21), k=4, full_matrices=False),
        with_options(small("batch", "normal", batch=2, m=9, n=16), k=5),
        with_options(small("transposed", "normal", layout="transposed", m=16, n=16), k=2),
        with_options(small("all", "normal", m=15, n=8), k=8),
        with_options(small("out", "normal", m=11, n=14), k=1, out=True),
        with_options(timed("square", "normal", batch=16384, m=32, n=32), k=8),
        with_options(timed("tall", "normal", batch=32768, m=32, n=16), k=4, full_matrices=False),
        with_options(timed("wide", "normal", batch=32768, m=16, n=32), k=12),
    ),
    check=Rebuilds(low_rank_residuals),
    flops=total(product(14, "batch", "m", "n", "n"), product(2, "batch", "m", "n")),
    mutates=("out",),
    differences=(
        "inputs have a gap between the singular values that are kept and the others: without one "
        "the answer hangs on roundings",
    ),
)
def low_rank_svd_approximation(A, k, *, full_matrices=True, out=None):
    """The matrix of rank k nearest to A (*, m, n), U_k diag(S_k) V_k^T out of its singular value
    decomposition. `full_matrices` doesn't change the result.
    """
    return given_back(truncated(A, k), out)


def matrices_of_rank(make: Maker) -> Arguments:
    """(*batch, m, n) with singular values from 1 to 3; `deficient` of them are far below the cutoff
    that goes with it."""
    m, n = make.size("m"), make.size("n")
    batch, low = batch_of(make, "m", "n"), int(str(make.case.options.get("deficient", 0)))
    full = min(m, n)
    values = torch.cat(
        (spectrum(make, full - low, 1.0, 3.0, *batch), spectrum(make, low, 0.005, 0.02, *batch)), -1
    )
    left, right = orthonormal(make, m, full, *batch), orthonormal(make, n, full, *batch)
    A = in_layout(make, ((left * values.unsqueeze(-2)) @ right.mT).to(make.dtype))
    keywords = make.options("deficient", "out")
    if wants_out(make):
        keywords["out"] = make.out(*batch, n, m)
    return Arguments((A,), keywords)


def pseudoinverse(A: torch.Tensor, rcond: float) -> torch.Tensor:
    """V S^+ U^T, singular values up to rcond max(S) counted as zero."""
    U, values, Vh = torch.linalg.svd(A, full_matrices=False)
    kept = values > rcond * values.amax(-1, keepdim=True)
    inverse = torch.where(kept, 1 / values, torch.zeros_like(values))
    return (Vh.mT * inverse.unsqueeze(-2)) @ U.mT


def pseudoinverse_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    A = arguments.args[0]
    wanted = pseudoinverse(A, arguments.kwargs.get("rcond", 1e-15))
    size = torch.linalg.matrix_norm(wanted, 2, keepdim=True)
    return (Residual("pseudoinverse", X, wanted, size),)


@linear_algebra(
    "pseudoinverse_svd",
    inputs=matrices_of_rank,
    cases=(
        small("one", "normal", m=1, n=1),
        small("odd", "normal", m=13, n=13),
        with_options(small("tall", "normal", m=23, n=11), full_matrices=False),
        with_options(small("deficient", "normal", m=14, n=12), rcond=0.1, deficient=5),
        small("wide", "normal", m=9, n=21),
        small("batch", "normal", batch=3, m=12, n=8),
        with_options(
            small("transposed", "normal", layout="transposed", m=16, n=16), rcond=0.05, deficient=3
        ),
        with_options(small("out", "normal", m=11, n=7), full_matrices=False, out=True),
        timed("square", "normal", batch=16384, m=32, n=32),
        with_options(timed("tall", "normal", batch=32768, m=32, n=16), full_matrices=False),
        with_options(timed("deficient", "normal", batch=16384, m=32, n=32), rcond=0.1, deficient=8),
    ),
    check=Rebuilds(pseudoinverse_residuals),
    flops=total(product(14, "batch", "m", "n", "n"), product(2, "batch", "m", "n", "n")),
    mutates=("out",),
    differences=(
        "matrices of full rank, or with a cutoff far from every singular value: with the published "
        "1e-15 and matrices of lower rank the result is made of roundings",
    ),
)
def pseudoinverse_svd(A, full_matrices=True, rcond=1e-15, out=None):
    """The Moore-Penrose inverse (*, n, m) of A (*, m, n), V S^+ U^T out of its singular value
    decomposition: singular values up to rcond times the largest count as zero. `full_matrices`
    doesn't change the result.
    """
    return given_back(pseudoinverse(A, rcond), out)


def powers(make: Maker) -> Arguments:
    """Symmetric matrices: positive definite for a power that isn't whole, else indefinite."""
    n = make.size("n")
    batch, k = batch_of(make, "n"), make.case.options["k"]
    whole = float(str(k)).is_integer()
    A = indefinite(make, n, *batch) if whole else in_layout(make, make.spd(n, *batch))
    keywords = make.options("k", "out")
    if wants_out(make):
        keywords["out"] = make.out(*batch, n, n)
    return Arguments((A, k), keywords)


def symmetric_power(A: torch.Tensor, k: float) -> torch.Tensor:
    """V diag(L^k) V^T."""
    values, V = torch.linalg.eigh(A)
    return (V * values.pow(k).unsqueeze(-2)) @ V.mT


def power_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    A, k = arguments.args
    wanted = symmetric_power(A, k)
    return (Residual("V L^k V^T", X, wanted, torch.linalg.matrix_norm(wanted, 2, keepdim=True)),)


@linear_algebra(
    "matrix_power_eig",
    inputs=powers,
    cases=(
        with_options(small("one", "normal", n=1), k=2),
        with_options(small("root", "normal", n=13), k=0.5),
        with_options(small("odd", "normal", n=15), k=3),
        with_options(small("inverse", "normal", n=12), k=-1.0),
        with_options(small("batch", "normal", batch=3, n=11), k=2.0),
        with_options(small("transposed", "normal", layout="transposed", n=16), k=1.5),
        with_options(small("batch-root", "normal", batch=2, n=7), k=-0.5),
        with_options(small("out", "normal", n=9), k=2, out=True),
        with_options(timed("square", "normal", batch=16384, n=32), k=2),
        with_options(timed("root", "normal", batch=16384, n=32), k=0.5),
        with_options(timed("inverse", "normal", batch=32768, n=24), k=-1.5),
    ),
    check=Rebuilds(power_residuals),
    flops=total(product(9, "batch", "n", "n", "n"), product(2, "batch", "n", "n", "n")),
    mutates=("out",),
    differences=(
        "symmetric matrices: the published reference takes one triangle of whatever it is given "
        "(eigh) though it speaks of general matrices, and makes a matrix of a batch",
        "powers that aren't whole are asked of positive definite matrices only: the others' are "
        "complex",
    ),
)
def matrix_power_eig(A: torch.Tensor, k: float, *, out: torch.Tensor | None = None):
    """A^k = V diag(L^k) V^T for symmetric matrices (*, n, n) with eigenvalues L and eigenvectors V,
    and any real k.
    """
    return given_back(symmetric_power(A, k), out)
