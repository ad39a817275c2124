"""Inputs of mathematical functions: the family's values brought into a domain, the memory layout
kept (hence the operators in place).
"""

import torch

from benchmark.suite.inputs import Maker
from benchmark.suite.spec import Arguments


def with_output(make: Maker, *args: object, dtype: torch.dtype | None = None) -> Arguments:
    """The arguments, the case's options and, where it asks for one, an `out` of the case's
    shape.
    """
    keywords = make.options("out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(*make.case.shape, dtype=dtype)
    return Arguments(args, keywords)


def mostly_positive(make: Maker) -> Arguments:
    """|x|; the families `special` and `ties` keep negative values, where the answer is NaN."""
    x = make.tensor(*make.case.shape)
    if make.case.family not in ("special", "ties"):
        x.abs_()
    return with_output(make, x)


def signed_unit(make: Maker) -> Arguments:
    """Uniform on [-1, 1) for the family `unit`; the other families stay, NaN answers included."""
    x = make.tensor(*make.case.shape)
    if make.case.family == "unit":
        x.mul_(2).sub_(1)
    return with_output(make, x)


def at_most(make: Maker, limit: float) -> torch.Tensor:
    """The case's tensor, clamped to [-limit, limit]: where an exponential must not overflow."""
    return make.tensor(*make.case.shape).clamp_(-limit, limit)
