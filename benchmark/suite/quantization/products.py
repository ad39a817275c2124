"""Matrix products of int8 tensors."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import matmul as matmul_flops
from benchmark.suite.inputs import Maker, small, timed
from benchmark.suite.quantization.common import (
    SCALES_DIFFERENCE,
    TIES_DIFFERENCE,
    in_doubt,
    int_product,
    lines,
    product_magnitude,
    quantization,
    quantized,
)
from benchmark.suite.spec import Arguments


def two_factors(make: Maker) -> Arguments:
    """(batch, m, k), quantized along rows, and (batch, k, n), along columns."""
    batch = [size for name, size in make.case.sizes.items() if name == "batch"]
    m, k, n = make.size("m"), make.size("k"), make.size("n")
    return Arguments((lines(make, *batch, m, k, dim=-1), lines(make, *batch, k, n, dim=-2)))


def factors_magnitude(left, right):
    """The terms behind each element, and what integers in doubt may change."""
    (a, scale_a), (b, scale_b) = quantized(left, (-1,)), quantized(right, (-2,))
    size = product_magnitude(a.double(), b.double(), in_doubt(left, (-1,)), in_doubt(right, (-2,)))
    return size * scale_a * scale_b


def matmul_magnitude(input, weight):
    """As for both factors of a product."""
    return factors_magnitude(input, weight)


def bmm_magnitude(input, mat2):
    """As for both factors of a product."""
    return factors_magnitude(input, mat2)


@quantization(
    "matmul_w8a8",
    inputs=two_factors,
    cases=(
        small("one", "normal", m=1, k=1, n=1),
        small("odd", "heavy_tail", m=37, k=53, n=29),
        small("ties", "ties", m=33, k=61, n=35),
        small("tiles", "mixed", m=64, k=128, n=32),
        small("transposed", "normal", layout="transposed", m=33, k=65, n=48),
        small("row", "shifted", m=1, k=127, n=67),
        small("deep", "normal", m=7, k=1009, n=5),
        timed("large", "mixed", m=4096, k=4096, n=4096),
        timed("wide", "mixed", m=1024, k=4096, n=16384),
        timed("odd", "mixed", m=4099, k=4104, n=4104),
    ),
    check=Close(magnitude=matmul_magnitude),
    flops=matmul_flops(),
    differences=(SCALES_DIFFERENCE, TIES_DIFFERENCE),
)
def matmul_w8a8(input: torch.Tensor, weight: torch.Tensor):
    """The product of input (m, k) and weight (k, n), float32, computed with int8 numbers.

    Each row of the input and each column of the weight has a scale s = max|x| / 127 (1 if all are
    zero) and integers q = x / s, rounded half to even, within [-128, 127]. The sum over k of
    qa qb is exact, in int32; times (sa sb) in float32 it is the result.
    """
    (a, scale_a), (b, scale_b) = quantized(input, (-1,)), quantized(weight, (-2,))
    dtype = input.dtype
    return int_product(a, b).to(dtype) * (scale_a.to(dtype) * scale_b.to(dtype))


@quantization(
    "bmm_w8a8",
    inputs=two_factors,
    cases=(
        small("one", "normal", batch=1, m=1, k=1, n=1),
        small("odd", "heavy_tail", batch=3, m=17, k=29, n=23),
        small("ties", "ties", batch=2, m=33, k=31, n=19),
        small("tiles", "mixed", batch=2, m=32, k=64, n=32),
        small("transposed", "normal", layout="transposed", batch=5, m=13, k=37, n=16),
        small("row", "shifted", batch=7, m=1, k=67, n=11),
        small("deep", "normal", batch=2, m=3, k=1009, n=5),
        timed("large", "mixed", batch=16, m=1024, k=1024, n=2048),
        timed("small", "mixed", batch=64, m=512, k=512, n=512),
        timed("deep", "mixed", batch=8, m=1024, k=4096, n=1024),
    ),
    check=Close(magnitude=bmm_magnitude),
    flops=matmul_flops(),
    differences=(SCALES_DIFFERENCE, TIES_DIFFERENCE),
)
def bmm_w8a8(input: torch.Tensor, mat2: torch.Tensor):
    """The products of input (batch, m, k) and mat2 (batch, k, n), float32, computed with int8
    numbers.

    Each row of the input and each column of mat2, matrix by matrix, has a scale s = max|x| / 127
    (1 if all are zero) and integers q = x / s, rounded half to even, within [-128, 127]. The sum
    over k of qa qb is exact, in int32; times (sa sb) in float32 it is the result.
    """
    (a, scale_a), (b, scale_b) = quantized(input, (-1,)), quantized(mat2, (-2,))
    dtype = input.dtype
    products = torch.stack([int_product(*pair) for pair in zip(a, b, strict=True)])
    return products.to(dtype) * (scale_a.to(dtype) * scale_b.to(dtype))
