"""Activation functions, elementwise."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import elementwise_cases, one_tensor
from benchmark.suite.registry import category

activation = category("Activation")


def gelu_magnitude(input, approximate="none"):
    """|x|: for negative x the result is a small difference of terms of this size."""
    return input.abs()


@activation(
    "relu",
    inputs=one_tensor,
    cases=elementwise_cases({}, {"inplace": True}),
    check=Exact(),
    flops=per_element(1),
    mutates=("inplace",),
)
def relu(input: torch.Tensor, inplace: bool = False):
    """Rectified linear unit: max(x, 0), NaN stays NaN. `inplace=True` overwrites and returns the
    input.
    """
    return F.relu(input, inplace=inplace)


@activation(
    "gelu",
    inputs=one_tensor,
    cases=elementwise_cases({}, {"approximate": "tanh"}, special=False),
    check=Close(magnitude=gelu_magnitude),
    flops=per_element(8),
)
def gelu(input: torch.Tensor, approximate: str = "none"):
    """Gaussian error linear unit x Phi(x), exact (`none`) or by its `tanh` approximation."""
    return F.gelu(input, approximate=approximate)
