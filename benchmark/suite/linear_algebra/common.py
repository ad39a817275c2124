"""The category's decorator, its matrices, and claims that several of its checks make."""

import torch

from benchmark.suite.checks import Residual
from benchmark.suite.inputs import Maker, drawing_dtype
from benchmark.suite.registry import category

linear_algebra = category("LinearAlgebra")

LIBRARY_LOOP = (
    "the timed cases move less than 128 MB: the library works matrix after matrix, and larger "
    "cases would take it seconds a call"
)


def batch_of(make: Maker, *without: str) -> list[int]:
    """The leading sizes of the case: all but the named ones."""
    return [size for name, size in make.case.sizes.items() if name not in without]


def in_layout(make: Maker, matrices: torch.Tensor) -> torch.Tensor:
    """The same matrices, column by column in memory where the case says `transposed`."""
    if make.case.layout == "transposed":
        return matrices.mT.contiguous().mT
    return matrices


def general(make: Maker, n: int, *batch: int) -> torch.Tensor:
    """Well-conditioned matrices (*batch, n, n) that need pivoting; determinants of both signs."""
    square = make.invertible(n, *batch)
    sign = make.randint(0, 2, *batch, 1).to(make.dtype) * 2 - 1
    square[..., 0, :] *= sign
    return in_layout(make, square)


def unpivoted(make: Maker, m: int, n: int, *batch: int) -> torch.Tensor:
    """Matrices (*batch, m, n) near the identity: elimination is stable without pivoting."""
    work = drawing_dtype(make.dtype)
    noise = make.randn(*batch, m, n, dtype=work) / (4 * max(m, n) ** 0.5)
    eye = torch.eye(m, n, dtype=work, device=make.device)
    sign = make.randint(0, 2, *batch, 1, n).to(work) * 2 - 1
    return in_layout(make, ((noise + eye) * sign).to(make.dtype))


def orthonormal(make: Maker, m: int, k: int, *batch: int) -> torch.Tensor:
    """k orthonormal columns of length m, in all directions alike: the QR factor of normal numbers.

    By Cholesky's factor of the Gram matrix, a shifted one at first, then twice to repair what
    rounding left (Fukaya et al., Shifted Cholesky QR, 2020): a library's QR works matrix after
    matrix on a board, seconds for a timed case.
    """
    columns = make.randn(*batch, m, k, dtype=torch.float64)
    eye = torch.eye(k, dtype=torch.float64, device=make.device)
    shift = 11 * (m * k + k * (k + 1)) * torch.finfo(torch.float64).eps
    for share in (shift, 0.0, 0.0):
        gram = columns.mT @ columns
        trace = gram.diagonal(dim1=-2, dim2=-1).sum(-1)[..., None, None]
        factor = torch.linalg.cholesky(gram + share * trace * eye)
        columns = torch.linalg.solve_triangular(factor, columns.mT, upper=False).mT
    return columns.to(drawing_dtype(make.dtype))


def spectrum(make: Maker, k: int, low: float, high: float, *batch: int) -> torch.Tensor:
    """k numbers in [low, high)."""
    return make.rand(*batch, k, dtype=drawing_dtype(make.dtype)) * (high - low) + low


def indefinite(make: Maker, n: int, *batch: int) -> torch.Tensor:
    """Symmetric matrices (*batch, n, n) with eigenvalues of both signs, from 1 to 3 in size."""
    q = orthonormal(make, n, n, *batch)
    values = spectrum(make, n, 1.0, 3.0, *batch)
    values = values * (make.randint(0, 2, *batch, n).to(values.dtype) * 2 - 1)
    full = (q * values.unsqueeze(-2)) @ q.mT
    return in_layout(make, ((full + full.mT) / 2).to(make.dtype))


def wants_out(make: Maker) -> bool:
    return bool(make.case.options.get("out"))


def given_back(result, out):
    """The result, or `out` filled with it."""
    return result if out is None else out.copy_(result)


def eye_like(square: torch.Tensor) -> torch.Tensor:
    """Identity matrices of the same shape."""
    eye = torch.eye(square.shape[-1], dtype=square.dtype, device=square.device)
    return eye.expand(square.shape)


def orthogonal(name: str, columns: torch.Tensor) -> Residual:
    """The columns are orthonormal."""
    gram = columns.mT @ columns
    return Residual(f"{name}: orthonormal", gram, eye_like(gram))


def zero(name: str, part: torch.Tensor) -> Residual:
    """The part is zero, exactly."""
    return Residual(name, part, torch.zeros_like(part), exact=True)


def solves(name: str, A: torch.Tensor, X: torch.Tensor, B: torch.Tensor) -> Residual:
    """A X = B but for roundings of the terms |A||X| behind B: the backward error."""
    scale = (A.abs() @ X.abs() + B.abs()).amax((-2, -1), keepdim=True)
    return Residual(name, A @ X, B, scale)
