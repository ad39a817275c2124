"""The integer contract of the category: how numbers become integers, and where rounding decides.

Symmetric, dynamic quantization. Over a line (a row, a column, a channel or a whole tensor) the
scale is s = max|x| / L in float32, with L = 127 levels for int8 and 7 for int4, and s = 1 for a
line of zeros. The integer is q = x / s in float32, rounded half to even and held within its bounds.
All divisions are rounded to nearest, as IEEE 754 says.
"""

import torch

from benchmark.suite.inputs import Maker
from benchmark.suite.registry import category

quantization = category("Quantization")

EPS = 2.0**-23  # of float32, in which scales and quotients are computed
TIE_BAND = 8  # float32 roundings: two of the division, two of the scale, or a product by 1 / s
STEP = 2.0**-5  # the scale of lines made of exact ties

SCALES_DIFFERENCE = (
    "the published reference is the floating-point operator, and its thresholds (cosine, relative "
    "L1, an absolute RMSE that ignores the size of the output) are met by leaving the quantization "
    "out and, in five of six tasks, missed by every kernel that does it: here the integer "
    "arithmetic is specified, the truth is that arithmetic evaluated exactly, and rounding errors "
    "of float32 are what is allowed"
)
TIES_DIFFERENCE = (
    "a quotient that lies within 8 float32 roundings of a half may be rounded either way, unless "
    "the scale is a power of two: then it is exact and goes to the even neighbour"
)


def scale_of(x: torch.Tensor, dims: tuple[int, ...], levels: int) -> torch.Tensor:
    """max|x| / levels over the dimensions, which are kept, in float32; 1 where all are zero."""
    largest = x.float().abs().amax(dims, keepdim=True)
    return torch.where(largest > 0, largest / torch.full_like(largest, levels), 1.0)


def quantized(
    x: torch.Tensor, dims: tuple[int, ...], levels: int = 127
) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 integers and their float32 scale, lines along the dimensions."""
    scale = scale_of(x, dims, levels)
    return (x.float() / scale).round().clamp(-levels - 1, levels).to(torch.int8), scale


def in_doubt(
    x: torch.Tensor, dims: tuple[int, ...], levels: int = 127, error: torch.Tensor | float = 0.0
) -> torch.Tensor:
    """1 where rounding errors decide between two integers, else 0, for float64 x whose own error is
    `error`. Nothing is in doubt where the scale is a power of two and x exact.
    """
    largest = x.abs().amax(dims, keepdim=True)
    scale = torch.where(largest > 0, largest / levels, 1.0)
    quotient = (x / scale).abs()
    near = (quotient % 1 - 0.5).abs() <= TIE_BAND * EPS * quotient + error / scale
    exact = (torch.frexp(scale).mantissa == 0.5) & (error == 0)
    return (near & ~exact).to(x.dtype)


def int_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a @ b of int8 matrices, exact, int32: on tensor cores where the library takes the shape."""
    if a.is_cuda and a.shape[0] > 16 and a.shape[1] % 8 == 0 and b.shape[1] % 8 == 0:
        return torch._int_mm(a, b)
    return (a.double() @ b.double()).to(torch.int32)


def product_magnitude(
    a: torch.Tensor, b: torch.Tensor, doubt_a: torch.Tensor, doubt_b: torch.Tensor
) -> torch.Tensor:
    """sum |qa||qb| plus, in units of a rounding, what the integers in doubt may change; a and b are
    integers in float64.
    """
    a, b = a.abs(), b.abs()
    moved = doubt_a @ (b + doubt_b) + a @ doubt_b
    return a @ b + moved / EPS


def lines(make: Maker, *shape: int, dim: int) -> torch.Tensor:
    """A tensor of lines along `dim`. In the family `ties` each line's scale is exactly STEP, its
    quotients are multiples of 1/2, and the last line across is zero.
    """
    if make.case.family != "ties":
        return make.tensor(*shape)
    values = make.randint(-253, 254, *shape).to(make.dtype) * (STEP / 2)
    values.select(dim, 0).fill_(127 * STEP)
    across = -3 - dim  # the other one of the last two
    if len(shape) > 1 and shape[across] > 1:
        values.select(across, shape[across] - 1).zero_()
    return values
