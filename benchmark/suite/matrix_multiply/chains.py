"""Products of products, and sums of products."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import product, total
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.matrix_multiply.common import matrix_multiply
from benchmark.suite.spec import Arguments

TARGET = (
    "C may be overwritten with anything: the published prompt calls it what the result is added "
    "to, and the published reference leaves it alone"
)


def row_dot_inputs(make: Maker) -> Arguments:
    """A (n, m), B (m, p), the scales and C (n, p), by position."""
    n, m, p = make.size("n"), make.size("m"), make.size("p")
    chosen = make.options()
    A, B, C = make.tensor(n, m), make.tensor(m, p), make.tensor(n, p)
    return Arguments((A, B, chosen["alpha"], chosen["beta"], C))


def row_dot_magnitude(A, B, alpha, beta, C):
    """What an error of either row moves: |other row| x the terms behind the row, plus |r0||r1|."""
    rows = alpha * (A[:2] @ B) + beta * C[:2]
    # The root of the sum of squares: errors of the terms are independent, not all of one sign.
    spread = abs(alpha) * (A[:2].square() @ B.square()).sqrt() + abs(beta) * C[:2].abs()
    moved = (rows[0] * spread[1]).square() + (rows[1] * spread[0]).square()
    return moved.sum().sqrt() + (rows[0] * rows[1]).square().sum().sqrt()


ROW_DOT = (
    with_options(small("two", "normal", n=2, m=1, p=1), alpha=1.5, beta=0.5),
    with_options(small("odd", "heavy_tail", n=5, m=53, p=37), alpha=0.5, beta=2.0),
    with_options(small("no-c", "normal", n=3, m=65, p=101), alpha=2.0, beta=0.0),
    with_options(small("tiles", "mixed", n=4, m=64, p=128), alpha=1.0, beta=-1.0),
    with_options(
        small("transposed", "shifted", layout="transposed", n=7, m=33, p=48), alpha=-0.5, beta=0.7
    ),
    with_options(small("half", "normal", "float16", n=3, m=61, p=43), alpha=0.25, beta=0.5),
    with_options(small("tall", "normal", n=67, m=17, p=23), alpha=1.0, beta=0.5),
    with_options(timed("large", "mixed", n=16, m=8192, p=8192), alpha=0.25, beta=0.5),
    with_options(timed("half", "mixed", "float16", n=16, m=16384, p=8192), alpha=0.01, beta=1.0),
    with_options(timed("odd", "mixed", n=17, m=8191, p=4099), alpha=1.0, beta=1.0),
)


@matrix_multiply(
    "matrix_multiply_and_row_dot",
    inputs=row_dot_inputs,
    cases=ROW_DOT,
    check=Close(magnitude=row_dot_magnitude, narrow_intermediates=True),
    flops=total(product(4, "m", "p"), product(8, "p")),
    may_write=("C",),
    differences=(
        TARGET,
        "the reference computes the two rows that count: the published one computed all, so that "
        "leaving the others out won by construction",
        "A has few rows in the timed cases and float16 is scaled down: the published timed float16 "
        "sums overflow",
    ),
)
def matrix_multiply_and_row_dot(
    A: torch.Tensor, B: torch.Tensor, alpha: float, beta: float, C: torch.Tensor
):
    """The dot product of the first two rows of alpha * A @ B + beta * C, for A (n, m), B (m, p),
    C (n, p) with n >= 2: a tensor without dimensions. C may be overwritten.
    """
    rows = alpha * torch.matmul(A[:2], B) + beta * C[:2]
    return torch.dot(rows[0], rows[1])


def symmetric_inputs(make: Maker) -> Arguments:
    """A (n, m), B (m, n), C (n, n), then the scales by keyword."""
    n, m = make.size("n"), make.size("m")
    return Arguments((make.tensor(n, m), make.tensor(m, n), make.tensor(n, n)), make.options())


def symmetric_magnitude(A, B, C, alpha, beta):
    """|alpha| sum |c||c| + |beta||c| over the first product c and its own rounding errors."""
    first = alpha * (A @ B) + beta * C
    # Errors of the first sum's terms are independent: their root of the sum of squares.
    spread = abs(alpha) * (A.square() @ B.square()).sqrt() + abs(beta) * C.abs()
    size, square = first.abs(), first.square()
    moved = (square @ spread.square().mT + spread.square() @ square.mT).sqrt()
    return abs(alpha) * ((square @ square.mT).sqrt() + moved) + abs(beta) * (size + spread)


@matrix_multiply(
    "matrix_multiply_symmetric",
    inputs=symmetric_inputs,
    cases=(
        with_options(small("one", "normal", n=1, m=1), alpha=2.0, beta=0.5),
        with_options(small("odd", "heavy_tail", n=37, m=29), alpha=0.5, beta=2.0),
        with_options(small("deep", "normal", n=23, m=101), alpha=1.0, beta=1.0),
        with_options(small("tiles", "mixed", n=64, m=64), alpha=1.0, beta=-0.5),
        with_options(
            small("transposed", "normal", layout="transposed", n=48, m=33), alpha=-0.3, beta=0.7
        ),
        with_options(small("half", "normal", "float16", n=45, m=31), alpha=0.25, beta=0.5),
        with_options(small("flat", "shifted", n=67, m=3), alpha=1.0, beta=0.5),
        with_options(timed("large", "mixed", n=4096, m=4096), alpha=0.015625, beta=0.5),
        with_options(
            timed("half", "mixed", "float16", n=8192, m=4096), alpha=0.001953125, beta=0.25
        ),
        with_options(timed("odd", "mixed", n=4099, m=3001), alpha=0.03125, beta=1.0),
    ),
    check=Close(magnitude=symmetric_magnitude, narrow_intermediates=True),
    flops=total(product(2, "n", "n", "m"), product(2, "n", "n", "n"), product(6, "n", "n")),
    may_write=("C",),
    differences=(
        TARGET,
        "alpha scales the timed products down: the published timed float16 results are infinite",
    ),
)
def matrix_multiply_symmetric(
    A: torch.Tensor, B: torch.Tensor, C: torch.Tensor, alpha: float, beta: float
):
    """alpha * D @ D^T + beta * D with D = alpha * A @ B + beta * C, for A (n, m), B (m, n),
    C (n, n). D may be kept in the inputs' dtype, and C be overwritten.
    """
    first = alpha * torch.matmul(A, B) + beta * C
    return alpha * torch.matmul(first, first.mT) + beta * first


def vector_inputs(make: Maker) -> Arguments:
    """A (n, n), x (n,), y (n,), then the scales by keyword."""
    n = make.size("n")
    return Arguments((make.tensor(n, n), make.tensor(n), make.tensor(n)), make.options())


def vector_dot_magnitude(A, x, y, alpha, beta):
    """sum |x| (|alpha| sum |a||x| + |beta||y|), errors of the terms taken as independent."""
    y_new = alpha * (A @ x) + beta * y
    spread = abs(alpha) * (A.square() @ x.square()).sqrt() + abs(beta) * y.abs()
    return ((x * spread).square().sum() + (x * y_new).square().sum()).sqrt()


def written_magnitude(A, x, y, alpha, beta):
    """|alpha| sum |a||x| + |beta||y| behind each element of y, which the call writes."""
    return {"argument[2]": abs(alpha) * (A.abs() @ x.abs()) + abs(beta) * y.abs()}


@matrix_multiply(
    "matrix_vector_dot",
    inputs=vector_inputs,
    cases=(
        with_options(small("one", "normal", n=1), alpha=1.5, beta=0.5),
        with_options(small("odd", "heavy_tail", n=37), alpha=0.5, beta=2.0),
        with_options(small("no-y", "normal", n=101), alpha=2.0, beta=0.0),
        with_options(small("tiles", "mixed", n=64), alpha=1.0, beta=-1.0),
        with_options(small("transposed", "shifted", layout="transposed", n=48), alpha=-0.5, beta=1),
        with_options(small("half", "normal", "float16", n=61), alpha=0.25, beta=0.5),
        with_options(small("prime", "normal", n=109), alpha=1.0, beta=1.0),
        with_options(timed("large", "mixed", n=8192), alpha=0.5, beta=0.5),
        with_options(timed("half", "mixed", "float16", n=16384), alpha=0.0078125, beta=1.0),
        with_options(timed("odd", "mixed", n=6007), alpha=1.0, beta=1.0),
    ),
    check=Close(
        magnitude=vector_dot_magnitude, written=written_magnitude, narrow_intermediates=True
    ),
    flops=total(product(2, "n", "n"), product(5, "n")),
    mutates=True,
    differences=(
        "y after the call is part of the answer: the published test never looked at it",
        "alpha scales the timed float16 case down: the published one lets y grow from call to call "
        "until it is infinite",
    ),
)
def matrix_vector_dot(A: torch.Tensor, x: torch.Tensor, y: torch.Tensor, alpha: float, beta: float):
    """Overwrites y with alpha * A @ x + beta * y and returns the dot product of the new y and x, a
    tensor without dimensions. A is (n, n), x and y are (n,). The new y may be rounded to its dtype
    before the dot product.
    """
    y.copy_(alpha * torch.mv(A, x) + beta * y)
    return torch.dot(y, x)


def abs_sum_inputs(make: Maker) -> Arguments:
    """A (n, m), C (n, n), then the scales by keyword."""
    n, m = make.size("n"), make.size("m")
    return Arguments((make.tensor(n, m), make.tensor(n, n)), make.options())


def abs_sum_magnitude(A, C, alpha, beta):
    """Three times the sum: added up tile by tile, N tile sums are off by about sqrt(N) / 6
    roundings, 11 for the 4096 tiles of a timed case."""
    return 3 * (alpha * (A @ A.mT) + beta * C).abs().sum()


@matrix_multiply(
    "symmetric_mm_and_abs_sum",
    inputs=abs_sum_inputs,
    cases=(
        with_options(small("one", "normal", n=1, m=1), alpha=1.5, beta=0.5),
        with_options(small("odd", "heavy_tail", n=37, m=29), alpha=0.5, beta=2.0),
        with_options(small("deep", "normal", n=23, m=101), alpha=1.0, beta=1.0),
        with_options(small("tiles", "mixed", n=64, m=64), alpha=1.0, beta=-0.5),
        with_options(
            small("transposed", "normal", layout="transposed", n=48, m=33), alpha=-0.3, beta=0.7
        ),
        with_options(small("flat", "shifted", n=67, m=3), alpha=1.0, beta=-20.0),
        with_options(timed("large", "mixed", n=4096, m=4096), alpha=0.5, beta=0.5),
        with_options(timed("flat", "mixed", n=8192, m=1024), alpha=1.0, beta=2.0),
        with_options(timed("odd", "mixed", n=4099, m=6007), alpha=1.0, beta=0.5),
    ),
    check=Close(magnitude=abs_sum_magnitude),
    flops=total(product(2, "n", "n", "m"), product(5, "n", "n")),
    may_write=("C",),
    differences=(TARGET,),
)
def symmetric_mm_and_abs_sum(A: torch.Tensor, C: torch.Tensor, alpha: float, beta: float):
    """The sum of |alpha * A @ A^T + beta * C| over all elements, for A (n, m) and C (n, n), which
    needn't be symmetric: a tensor without dimensions. C may be overwritten.
    """
    return torch.sum(torch.abs(alpha * torch.mm(A, A.mT) + beta * C))
