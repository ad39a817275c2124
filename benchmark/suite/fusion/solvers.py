"""Linear systems solved by a factorization."""

import torch

from benchmark.suite.checks import Rebuilds, Residual
from benchmark.suite.cost import product, total
from benchmark.suite.inputs import Maker, small, timed
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

fusion = category("Fusion")


def right_side(make: Maker, rows: int):
    """(rows, columns) numbers, or (rows,) where the case has no columns."""
    columns = [make.size("columns")] if "columns" in make.case.sizes else []
    return make.tensor(rows, *columns)


def backward_error(arguments: Arguments, solution: torch.Tensor) -> tuple[Residual, ...]:
    """A x = b: each row's error is of the size of its |A||x| + |b|."""
    matrix, right = arguments.args
    x, b = (t if t.dim() > 1 else t.unsqueeze(1) for t in (solution, right))
    scale = matrix.abs() @ x.abs() + b.abs()
    return (Residual("the matrix times the solution", matrix @ x, b, scale),)


def spd_system(make: Maker) -> Arguments:
    """A symmetric positive definite matrix and right-hand sides."""
    n = make.size("n")
    return Arguments((make.spd(n), right_side(make, n)))


@fusion(
    "fused_cholesky_solve",
    inputs=spd_system,
    cases=(
        small("one", "normal", n=1, columns=1),
        small("two", "normal", n=2, columns=2),
        small("odd", "shifted", n=37, columns=5),
        small("tiles", "normal", n=64, columns=8),
        small("column", "heavy_tail", n=53, columns=1),
        small("many", "normal", n=19, columns=45),
        timed("column", "normal", n=6144, columns=1),
        timed("many", "normal", n=4096, columns=4096),
        timed("square", "shifted", n=6000, columns=64),
    ),
    check=Rebuilds(backward_error),
    flops=total(product(1 / 3, "n", "n", "n"), product(2, "n", "n", "columns")),
    differences=(
        "judged by how well the solution fulfills the system: the published test compares elements "
        "of solutions whose condition is 10^4, with a reference that current PyTorch refuses",
    ),
)
def fused_cholesky_solve(A: torch.Tensor, b: torch.Tensor):
    """The solution X (n, k) of A X = b for a symmetric positive definite A (n, n) and b (n, k), by
    the Cholesky factor of A.
    """
    return torch.cholesky_solve(b, torch.linalg.cholesky(A))


def general_system(make: Maker) -> Arguments:
    """A matrix that needs pivoting and right-hand sides."""
    n = make.size("n")
    return Arguments((make.invertible(n), right_side(make, n)))


@fusion(
    "fused_lu_solve",
    inputs=general_system,
    cases=(
        small("one", "normal", n=1),
        small("two", "normal", n=2),
        small("odd", "shifted", n=37),
        small("tiles", "normal", n=64),
        small("prime", "heavy_tail", n=53),
        small("columns", "normal", n=29, columns=7),
        timed("vector", "normal", n=2048),
        timed("columns", "normal", n=2048, columns=64),
        timed("odd", "shifted", n=1901),
    ),
    check=Rebuilds(backward_error),
    flops=product(2 / 3, "n", "n", "n"),
    differences=(
        "x solves A x = b: the published reference forgets the permutation",
        "matrices are not singular: the published test compares the text of PyTorch's exception",
    ),
)
def fused_lu_solve(A: torch.Tensor, b: torch.Tensor):
    """The solution x of A x = b for a general A (n, n) and b (n,) or (n, k), by an LU factorization
    with partial pivoting.
    """
    return torch.linalg.solve(A, b)


def tall_system(make: Maker) -> Arguments:
    """A matrix (m, n) of full rank, m >= n, and right-hand sides."""
    m, n = make.size("m"), make.size("n")
    matrix = make.randn(m, n, dtype=torch.float64) / m**0.5
    matrix = matrix + torch.eye(m, n, dtype=torch.float64, device=make.device)
    return Arguments((matrix.to(make.dtype), right_side(make, m)))


def normal_equations(arguments: Arguments, solution: torch.Tensor) -> tuple[Residual, ...]:
    """A^T (A x - b) = 0: errors are of the size of |A^T| (|A||x| + |b|)."""
    matrix, b = arguments.args
    scale = matrix.abs().mT @ (matrix.abs() @ solution.abs() + b.abs())
    gap = matrix.mT @ (matrix @ solution - b)
    return (Residual("the gradient of the squared error", gap, torch.zeros_like(gap), scale),)


@fusion(
    "fused_qr_solve",
    inputs=tall_system,
    cases=(
        small("one", "normal", m=1, n=1, columns=1),
        small("square", "normal", m=31, n=31, columns=3),
        small("odd", "shifted", m=53, n=29, columns=5),
        small("tall", "normal", m=90, n=17, columns=2),
        small("tiles", "heavy_tail", m=64, n=32, columns=16),
        small("column", "normal", m=61, n=37, columns=1),
        timed("tall", "normal", m=65536, n=512, columns=10),
        timed("large", "normal", m=8192, n=1024, columns=10),
        timed("square", "shifted", m=2048, n=2048, columns=1),
    ),
    check=Rebuilds(normal_equations),
    flops=product(2, "m", "n", "n"),
    differences=(
        "judged by the gradient of the squared error, which is 0 at the solution: equally good "
        "solutions differ in their last digits",
    ),
)
def fused_qr_solve(A: torch.Tensor, b: torch.Tensor):
    """The least-squares solution X (n, k) of A X = b for a matrix A (m, n) of full rank, m >= n,
    and b (m, k), by its QR factorization: R X = Q^T b.
    """
    q, r = torch.linalg.qr(A)
    return torch.linalg.solve_triangular(r, q.mT @ b, upper=True)


def one_matrix(make: Maker) -> Arguments:
    """A matrix (m, n)."""
    return Arguments((make.tensor(make.size("m"), make.size("n")),))


def reconstructed(arguments: Arguments, output: torch.Tensor) -> tuple[Residual, ...]:
    """The product of the factors is the matrix, with errors of the size of its largest singular
    value.
    """
    scale = torch.linalg.matrix_norm(arguments.args[0], 2)
    return (Residual("the product of the factors", output, arguments.args[0], scale),)


@fusion(
    "fused_svd_reconstruct",
    inputs=one_matrix,
    cases=(
        small("one", "normal", m=1, n=1),
        small("two", "shifted", m=2, n=2),
        small("tall", "normal", m=13, n=6),
        small("wide", "heavy_tail", m=5, n=11),
        small("square", "normal", m=8, n=8),
        small("transposed", "mixed", layout="transposed", m=7, n=5),
        timed("square", "normal", m=768, n=768),
        timed("tall", "normal", m=8192, n=512),
        timed("wide", "shifted", m=500, n=3001),
    ),
    check=Rebuilds(reconstructed),
    flops=product(14, "m", "n", "n"),
    differences=(
        "the answer is the input within rounding, so a copy of it passes: the published contract "
        "asks for nothing that only a decomposition has. Speedups of this task say little",
        "timed matrices move less than 128 MB: decompositions of larger ones take seconds",
    ),
)
def fused_svd_reconstruct(A: torch.Tensor):
    """U diag(S) V^T of the reduced singular value decomposition of a matrix (m, n): the matrix
    again.
    """
    u, s, vt = torch.linalg.svd(A, full_matrices=False)
    return (u * s) @ vt
