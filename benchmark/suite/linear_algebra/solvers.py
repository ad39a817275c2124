"""Linear systems and inverses."""

import torch

from benchmark.suite.checks import Rebuilds, Residual
from benchmark.suite.cost import product, total
from benchmark.suite.inputs import Maker, drawing_dtype, small, timed, with_options
from benchmark.suite.linear_algebra.common import (
    batch_of,
    eye_like,
    general,
    given_back,
    in_layout,
    indefinite,
    linear_algebra,
    solves,
    unpivoted,
    wants_out,
)
from benchmark.suite.spec import Arguments

BACKWARD_ERROR = (
    "judged by the backward error: A X may differ from B by roundings of the terms |A||X|, so that "
    "every stable method passes"
)


def triangles(make: Maker, n: int, *batch: int, upper: bool = False) -> torch.Tensor:
    """Well-conditioned triangles (*batch, n, n), zeros in the other half."""
    work = drawing_dtype(make.dtype)
    noise = make.randn(*batch, n, n, dtype=work) / (2 * n**0.5)
    diagonal = torch.diag_embed(make.rand(*batch, n, dtype=work) + 1)
    lower = noise.tril(-1) + diagonal
    return in_layout(make, (lower.mT if upper else lower).contiguous().to(make.dtype))


def rows_of(x: torch.Tensor, A: torch.Tensor) -> torch.Tensor:
    """A right-hand side as matrices: a vector (n,) is one column."""
    return x.unsqueeze(-1) if x.dim() == A.dim() - 1 else x


def right_hand_side_and_factor(make: Maker) -> Arguments:
    """B (*batch, n, k) and a Cholesky factor (*batch, n, n)."""
    n, k = make.size("n"), make.size("k")
    batch = batch_of(make, "n", "k")
    factor = triangles(make, n, *batch, upper=bool(make.case.options.get("upper")))
    keywords = make.options("out")
    if wants_out(make):
        keywords["out"] = make.out(*batch, n, k)
    return Arguments((make.tensor(*batch, n, k), factor), keywords)


def cholesky_solve_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    """L (L^T X) = B but for roundings of |L||L^T||X|."""
    B, factor = arguments.args
    L = factor.mT if arguments.kwargs.get("upper") else factor
    size = L.abs() @ (L.mT.abs() @ X.abs()) + B.abs()
    return (Residual("A X", L @ (L.mT @ X), B, size.amax((-2, -1), keepdim=True)),)


@linear_algebra(
    "cholesky_solve",
    inputs=right_hand_side_and_factor,
    cases=(
        small("one", "normal", n=1, k=1),
        small("odd", "heavy_tail", n=37, k=5),
        with_options(small("upper", "normal", n=29, k=3), upper=True),
        small("tiles", "mixed", n=64, k=16),
        with_options(small("batch", "shifted", batch=3, n=17, k=1), upper=True),
        small("transposed", "normal", layout="transposed", batch=2, n=33, k=7),
        with_options(small("out", "normal", n=19, k=2), out=True),
        small("wide", "normal", n=5, k=67),
        timed("small", "normal", batch=16384, n=32, k=16),
        timed("large", "normal", batch=4096, n=128, k=8),
        with_options(timed("upper", "normal", batch=8192, n=64, k=32), upper=True),
    ),
    check=Rebuilds(cholesky_solve_residuals),
    flops=product(2, "batch", "n", "n", "k"),
    mutates=("out",),
    differences=(BACKWARD_ERROR,),
)
def cholesky_solve(B, L, upper=False, out=None):
    """X with A X = B, for B (*, n, k) and the Cholesky factor of A, (*, n, n): A = L L^T, or
    A = U^T U with `upper`.
    """
    return torch.cholesky_solve(B, L, upper=upper, out=out)


def matrices_and_right_hand_side(make: Maker) -> Arguments:
    """A (*batch, n, n) and B (*batch, n, k), or (*batch, n) without k."""
    n = make.size("n")
    batch = batch_of(make, "n", "k")
    columns = [size for name, size in make.case.sizes.items() if name == "k"]
    return Arguments((general(make, n, *batch), make.tensor(*batch, n, *columns)), make.options())


def solve_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    A, B = arguments.args
    return (solves("A X", A, rows_of(X, A), rows_of(B, A)),)


@linear_algebra(
    "solve",
    inputs=matrices_and_right_hand_side,
    cases=(
        small("one", "normal", n=1),
        small("odd", "heavy_tail", n=37),
        small("columns", "normal", n=29, k=5),
        small("tiles", "mixed", n=64, k=16),
        small("batch", "shifted", batch=3, n=17, k=1),
        small("transposed", "normal", layout="transposed", n=33, k=7),
        small("batch-wide", "normal", batch=2, n=12, k=31),
        small("two", "normal", n=2),
        timed("small", "normal", batch=16384, n=32, k=16),
        timed("large", "normal", batch=8192, n=64, k=1),
        timed("columns", "normal", batch=4096, n=64, k=64),
    ),
    check=Rebuilds(solve_residuals),
    flops=total(product(2 / 3, "batch", "n", "n", "n"), product(2, "batch", "n", "n", "k")),
    differences=(
        BACKWARD_ERROR,
        "singular and non-square matrices are not asked for: the published test compared the text "
        "of PyTorch's error",
    ),
)
def solve(A, B):
    """X with A X = B, for invertible A (*, n, n) and B (*, n, k), or one vector (n,)."""
    return torch.linalg.solve(A, B)


def triangular_system(make: Maker) -> Arguments:
    """An upper triangle, b (*batch, n, k) and y (*batch, n, 1)."""
    n, k = make.size("n"), make.size("k")
    batch = batch_of(make, "n", "k")
    A = triangles(make, n, *batch, upper=True)
    return Arguments((A, make.tensor(*batch, n, k), make.tensor(*batch, n, 1)), make.options())


def triangular_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    """A (X - alpha y) = b but for roundings of |A|(|X| + |alpha y|)."""
    A, b, y = arguments.args
    moved = arguments.kwargs["alpha"] * y
    size = A.abs() @ (X.abs() + moved.abs()) + b.abs()
    scale = size.amax((-2, -1), keepdim=True)
    return (Residual("A (X - alpha y)", A @ (X - moved), b, scale),)


@linear_algebra(
    "solve_and_add_scaled_vector",
    inputs=triangular_system,
    cases=(
        with_options(small("one", "normal", n=1, k=1), alpha=0.5),
        with_options(small("odd", "heavy_tail", n=37, k=1), alpha=-1.5),
        with_options(small("columns", "normal", n=29, k=5), alpha=2.0),
        with_options(small("tiles", "mixed", n=64, k=16), alpha=0.1),
        with_options(small("batch", "shifted", batch=3, n=17, k=2), alpha=1.0),
        with_options(small("transposed", "normal", layout="transposed", n=33, k=7), alpha=0.3),
        with_options(small("wide", "normal", n=5, k=67), alpha=-0.25),
        with_options(timed("small", "normal", batch=16384, n=32, k=16), alpha=0.5),
        with_options(timed("large", "normal", batch=4096, n=128, k=1), alpha=1.0),
        with_options(timed("columns", "normal", batch=8192, n=64, k=32), alpha=-0.5),
    ),
    check=Rebuilds(triangular_residuals),
    flops=total(product(1, "batch", "n", "n", "k"), product(2, "batch", "n", "k")),
    differences=(
        BACKWARD_ERROR,
        "triangles are well conditioned: the published timed ones, of random numbers, are not, and "
        "their solutions overflow",
    ),
)
def solve_and_add_scaled_vector(
    A: torch.Tensor, b: torch.Tensor, y: torch.Tensor, alpha: float
) -> torch.Tensor:
    """x + alpha * y where A x = b, for upper triangles A (*, n, n), b (*, n, k) and y (*, n, 1)."""
    return torch.linalg.solve_triangular(A, b, upper=True) + alpha * y


def symmetric_system(make: Maker) -> Arguments:
    """A symmetric and indefinite, b (*batch, n) or (*batch, n, k)."""
    n = make.size("n")
    batch = batch_of(make, "n", "k")
    columns = [size for name, size in make.case.sizes.items() if name == "k"]
    keywords = make.options("out")
    if wants_out(make):
        keywords["out"] = make.out(*batch, n, *columns)
    return Arguments((indefinite(make, n, *batch), make.tensor(*batch, n, *columns)), keywords)


@linear_algebra(
    "solve_symmetric_ldl",
    inputs=symmetric_system,
    cases=(
        small("one", "normal", n=1),
        small("odd", "heavy_tail", n=37),
        small("columns", "normal", n=29, k=5),
        with_options(small("tiles", "mixed", n=48, k=16), hermitian=True),
        small("batch", "shifted", batch=3, n=17, k=1),
        small("transposed", "normal", layout="transposed", n=33, k=7),
        with_options(small("out", "normal", n=19), out=True),
        small("two", "normal", n=2),
        timed("small", "normal", batch=16384, n=32, k=16),
        timed("large", "normal", batch=8192, n=64, k=1),
        timed("columns", "normal", batch=4096, n=64, k=64),
    ),
    check=Rebuilds(solve_residuals),
    flops=total(product(1 / 3, "batch", "n", "n", "n"), product(2, "batch", "n", "n", "k")),
    mutates=("out",),
    differences=(
        "the published reference takes the vector of pivot indices for the diagonal D and solves "
        "another system: here A x = b is solved",
        "the timed baseline is torch.linalg.solve: PyTorch's LDL works matrix after matrix",
        "complex matrices are not asked for: Triton has no complex numbers; `hermitian` changes "
        "nothing for real ones",
        BACKWARD_ERROR,
    ),
)
def solve_symmetric_ldl(A, b, hermitian=False, out=None):
    """x with A x = b, for symmetric, indefinite A (*, n, n) and b (n,) or (*, n, k): by
    A = L D L^T, or by any other stable method.
    """
    return given_back(torch.linalg.solve(A, b), out)


def invertible_matrices(make: Maker) -> Arguments:
    """(*batch, n, n): in need of pivoting, or near the identity when there is none."""
    n = make.size("n")
    batch = batch_of(make, "n")
    pivots = make.case.options.get("pivot", True)
    A = general(make, n, *batch) if pivots else unpivoted(make, n, n, *batch)
    keywords = make.options("out")
    if wants_out(make):
        keywords["out"] = make.out(*batch, n, n)
    return Arguments((A,), keywords)


def inverse_residuals(arguments: Arguments, X: torch.Tensor) -> tuple[Residual, ...]:
    """A X = I and X A = I."""
    A = arguments.args[0]
    return solves("A X", A, X, eye_like(A)), solves("X A", X, A, eye_like(A))


@linear_algebra(
    "invert_matrix_lu",
    inputs=invertible_matrices,
    cases=(
        small("one", "normal", n=1),
        small("odd", "normal", n=37),
        with_options(small("no-pivot", "normal", n=29), pivot=False),
        small("tiles", "normal", n=48),
        small("batch", "normal", batch=3, n=17),
        small("transposed", "normal", layout="transposed", n=33),
        with_options(small("out", "normal", n=19), out=True),
        with_options(small("no-pivot-batch", "normal", batch=2, n=12), pivot=False),
        timed("small", "normal", batch=16384, n=32),
        timed("large", "normal", batch=4096, n=64),
        with_options(timed("no-pivot", "normal", batch=4096, n=64), pivot=False),
    ),
    check=Rebuilds(inverse_residuals),
    flops=product(2, "batch", "n", "n", "n"),
    mutates=("out",),
    differences=(
        "the published reference multiplies by P where P^T is needed, which is wrong as soon as "
        "the permutation isn't its own inverse: here the result is the inverse",
        "judged by A X = I and X A = I, up to roundings of |A||X|",
    ),
)
def invert_matrix_lu(A, *, pivot=True, out=None):
    """The inverse of A (*, n, n) by A = P L U: U^-1 L^-1 P^T. With `pivot=False` A is such that
    elimination needs no pivoting.
    """
    return given_back(torch.linalg.inv(A), out)
