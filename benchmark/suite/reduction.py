"""Reductions along dimensions."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import one_tensor, small, timed, with_options
from benchmark.suite.registry import category

reduction = category("Reduce")


def sum_magnitude(input, dim, keepdim=False, dtype=None):
    """sum |x| behind each element."""
    return torch.sum(input.abs(), dim, keepdim=keepdim, dtype=dtype)


@reduction(
    "sum",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", n=1), dim=0),
        with_options(small("odd", "heavy_tail", rows=17, columns=781), dim=1),
        with_options(small("first", "shifted", rows=211, columns=7), dim=0, keepdim=True),
        with_options(small("two-dims", "mixed", a=5, b=31, c=37), dim=[0, 2]),
        with_options(small("negative", "normal", a=3, b=64, c=33), dim=-2, keepdim=True),
        with_options(small("half", "normal", "float16", rows=15, columns=257), dim=1),
        with_options(small("wide", "scaled", rows=9, columns=129), dim=-1, dtype="float64"),
        with_options(small("integers", "integers", "int64", rows=19, columns=45), dim=[0, 1]),
        with_options(small("transposed", "ties", layout="transposed", rows=33, columns=48), dim=1),
        with_options(timed("rows", "mixed", rows=16384, columns=4096), dim=1),
        with_options(timed("columns", "mixed", rows=16384, columns=4096), dim=0),
        with_options(timed("half", "mixed", "float16", rows=65536, columns=2048), dim=-1),
    ),
    check=Close(magnitude=sum_magnitude),
    flops=per_element(1),
)
def sum(input, dim, keepdim=False, dtype=None):
    """Sum over one dimension or several, kept as size 1 on request; `dtype` is that of the sum and
    the result.
    """
    return torch.sum(input, dim, keepdim=keepdim, dtype=dtype)
