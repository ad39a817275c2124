"""Matrix products."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import matmul as matmul_flops
from benchmark.suite.inputs import Maker, small, timed
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

matrix_multiply = category("MatrixMultiply")


def two_factors(make: Maker) -> Arguments:
    """(batch, m, k) @ (batch, k, n); a size that the case lacks is a dimension that the factor
    lacks.
    """
    sizes = make.case.sizes
    left = [sizes[name] for name in ("batch", "m", "k") if name in sizes]
    right = [sizes[name] for name in ("batch", "k", "n") if name in sizes]
    return Arguments((make.tensor(*left), make.tensor(*right)), make.options())


def product_magnitude(tensor1, tensor2):
    """sum |a||b| behind each element."""
    return torch.matmul(tensor1.abs(), tensor2.abs())


@matrix_multiply(
    "matmul",
    inputs=two_factors,
    cases=(
        small("one", "normal", m=1, k=1, n=1),
        small("odd", "heavy_tail", m=37, k=53, n=29),
        small("tiles", "mixed", m=64, k=128, n=32),
        small("transposed", "normal", layout="transposed", m=33, k=65, n=48),
        small("half", "normal", "float16", m=45, k=97, n=31),
        small("batch", "integers", batch=3, m=17, k=19, n=23),
        small("row", "normal", k=61, n=37),
        small("column", "shifted", m=41, k=67),
        small("dot", "normal", k=127),
        timed("large", "mixed", m=4096, k=4096, n=4096),
        timed("half", "mixed", "float16", m=8192, k=8192, n=8192),
        timed("batch", "mixed", "float16", batch=64, m=1024, k=1024, n=1024),
    ),
    check=Close(magnitude=product_magnitude),
    flops=matmul_flops(),
)
def matmul(tensor1, tensor2):
    """Matrix product with the rules of torch.matmul: 1-D factors are a row or a column, leading
    dimensions batch.
    """
    return torch.matmul(tensor1, tensor2)
