"""Activation functions, elementwise; one of them behind a matrix product."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import matmul, per_element, product, total
from benchmark.suite.inputs import (
    Maker,
    elementwise_cases,
    one_tensor,
    small,
    timed,
    with_options,
)
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

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


def narrow_gelu_cases(dtype: str):
    """The cases of a GELU of one half dtype, exact and tanh."""
    return (
        small("one", "normal", dtype, n=1),
        with_options(small("odd", "wide", dtype, rows=37, columns=53), approximate="tanh"),
        small("prime", "heavy_tail", dtype, n=1009),
        with_options(small("ties", "ties", dtype, a=3, b=5, c=67), approximate="tanh"),
        small("transposed", "scaled", dtype, "transposed", rows=33, columns=48),
        small("tiles", "wide", dtype, rows=64, columns=128),
        with_options(
            small("strided", "mixed", dtype, "strided", rows=9, columns=129), approximate="tanh"
        ),
        timed("large", "mixed", dtype, rows=8192, columns=8192),
        with_options(timed("tanh", "mixed", dtype, rows=8192, columns=8192), approximate="tanh"),
        timed("odd", "mixed", dtype, rows=4099, columns=8191 * 2),
    )


@activation(
    "gelu_fp16",
    inputs=one_tensor,
    cases=narrow_gelu_cases("float16"),
    check=Close(magnitude=gelu_magnitude),
    flops=per_element(8),
)
def gelu_fp16(input: torch.Tensor, approximate: str = "none"):
    """Gaussian error linear unit x Phi(x) of a float16 tensor, exact (`none`) or by its `tanh`
    approximation; computed in float32 and rounded once.
    """
    return F.gelu(input, approximate=approximate)


@activation(
    "gelu_bf16",
    inputs=one_tensor,
    cases=narrow_gelu_cases("bfloat16"),
    check=Close(magnitude=gelu_magnitude),
    flops=per_element(8),
)
def gelu_bf16(input: torch.Tensor, approximate: str = "none"):
    """Gaussian error linear unit x Phi(x) of a bfloat16 tensor, exact (`none`) or by its `tanh`
    approximation; computed in float32 and rounded once.
    """
    return F.gelu(input, approximate=approximate)


# 5 tanh-GELU lies half a float32 rounding below 5: whether it truncates to 4 or to 5 is chance.
UNDECIDED = 5


def whole_numbers(make: Maker) -> Arguments:
    """All of int8, or -8..8 for the family `integers`; no 5 where its truncation is undecided."""
    low, high = (-8, 9) if make.case.family == "integers" else (-128, 128)
    values = make.laid_out(
        lambda *dims: make.randint(low, high, *dims).to(torch.int8), *make.case.shape
    )
    if make.case.options.get("approximate") == "tanh":
        values = torch.where(values == UNDECIDED, UNDECIDED - 1, values)
    return Arguments((values,), make.options())


def truncated_gelu(input, approximate="none"):
    """The exact GELU rounded to float32, then cut to int8: float32 is part of the contract."""
    return F.gelu(input.double(), approximate=approximate).float().to(torch.int8)


@activation(
    "gelu_int8",
    inputs=whole_numbers,
    truth=truncated_gelu,
    cases=(
        small("one", "wide", "int8", n=1),
        with_options(small("odd", "wide", "int8", rows=37, columns=53), approximate="tanh"),
        small("prime", "integers", "int8", n=1009),
        with_options(small("near", "integers", "int8", a=3, b=5, c=67), approximate="tanh"),
        small("transposed", "wide", "int8", "transposed", rows=33, columns=48),
        small("tiles", "integers", "int8", rows=64, columns=128),
        with_options(
            small("strided", "wide", "int8", "strided", rows=9, columns=129), approximate="tanh"
        ),
        timed("large", "wide", "int8", rows=16384, columns=8192),
        with_options(timed("tanh", "wide", "int8", rows=16384, columns=8192), approximate="tanh"),
        timed("odd", "integers", "int8", rows=8191, columns=16381),
    ),
    check=Exact(),
    flops=per_element(8),
    differences=(
        "with `tanh` no input is 5, where the last digit of float32 decides between 4 and 5; at "
        "all other whole numbers both forms of GELU give the same",
    ),
)
def gelu_int8(input: torch.Tensor, approximate: str = "none"):
    """Gaussian error linear unit x Phi(x) of an int8 tensor, computed in float32, then converted to
    int8, which cuts the fraction off. `approximate`, exact (`none`) or by the `tanh` formula, makes
    no difference that is left after that.
    """
    return F.gelu(input.float(), approximate=approximate).to(torch.int8)


@activation(
    "leaky_relu",
    inputs=one_tensor,
    cases=elementwise_cases({}, {"negative_slope": 0.2, "inplace": True}, {"negative_slope": -1.5}),
    check=Close(),
    flops=per_element(2),
    mutates=("inplace",),
)
def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where x > 0, negative_slope * x elsewhere. `inplace=True` overwrites and returns the
    input.
    """
    return F.leaky_relu(input, negative_slope=negative_slope, inplace=inplace)


SELU_SCALE = 1.0507009873554805 * 1.6732632423543772  # what exp(x) - 1 is multiplied with


def selu_magnitude(input, inplace=False):
    """x scaled, or for negative x the terms exp(x) and 1 of a difference."""
    return torch.where(input > 0, input, SELU_SCALE * (input.clamp(max=0).exp() + 1))


@activation(
    "selu",
    inputs=one_tensor,
    cases=elementwise_cases({}, {"inplace": True}),
    check=Close(magnitude=selu_magnitude),
    flops=per_element(4),
    mutates=("inplace",),
    differences=(
        "`inplace=True` overwrites and returns the input; the published reference ignores it",
    ),
)
def selu(input: torch.Tensor, inplace: bool = False):
    """Scaled exponential linear unit, 1.0507009873554805 * (max(0, x) + min(0, 1.6732632423543772 *
    (exp(x) - 1))). `inplace=True` overwrites and returns the input.
    """
    return F.selu(input, inplace=inplace)


def sigmoid_magnitude(input, out=None):
    """|x| s(x) (1 - s(x)): what the rounding of the exponent -x makes of the result."""
    sigmoid = torch.sigmoid(input)
    return (input.abs() * sigmoid * (1 - sigmoid)).nan_to_num(0, 0, 0)


@activation(
    "sigmoid",
    inputs=one_tensor,
    cases=elementwise_cases({}, {"out": True}),
    check=Close(magnitude=sigmoid_magnitude),
    flops=per_element(4),
    mutates=("out",),
)
def sigmoid(input, out=None):
    """1 / (1 + exp(-x)); `out` is written and returned."""
    return torch.sigmoid(input, out=out)


def tanh_magnitude(input_tensor, out_tensor=None):
    """1: by exponentials, tanh is a difference of terms of this size."""
    return torch.ones_like(input_tensor)


@activation(
    "tanh",
    inputs=one_tensor,
    cases=(
        small("empty", "normal", n=0),
        small("one", "normal", n=1),
        small("odd", "wide", rows=37, columns=53),
        small("prime", "heavy_tail", n=1009),
        small("special", "special", a=3, b=5, c=67),
        small("transposed", "scaled", layout="transposed", rows=33, columns=48),
        small("half", "normal", "float16", rows=31, columns=65),
        small("tiles", "mixed", rows=64, columns=128),
        small("strided", "shifted", layout="strided", rows=9, columns=129),
        timed("large", "mixed", rows=8192, columns=8192),
        timed("half", "mixed", "float16", rows=8192, columns=8192),
        timed("odd", "mixed", rows=4099, columns=8191),
    ),
    check=Close(magnitude=tanh_magnitude),
    flops=per_element(5),
    differences=(
        "`out_tensor` stays None: published prompts call it `out`, and the published tests never "
        "give it",
    ),
)
def tanh(input_tensor, out_tensor=None):
    """Hyperbolic tangent. An empty tensor gives an empty one."""
    return torch.tanh(input_tensor, out=out_tensor)


def layer_weights(make: Maker) -> Arguments:
    """Rows X (..., k), a weight that keeps X @ W1 of the size of X, scales and shifts (m, n) or
    (n,).
    """
    leading = [size for name, size in make.case.sizes.items() if name not in ("k", "n")]
    k, n = make.size("k"), make.size("n")
    weight = make.laid_out(lambda *dims: make.randn(*dims).mul_(k**-0.5).to(make.dtype), k, n)
    per_row = make.case.options.get("affine") == "full"
    shape = (*leading, n) if per_row else (n,)
    affine = (make.tensor(*shape, family="shifted"), make.tensor(*shape, family="mixed"))
    keywords = {"out": make.out(*leading, n)} if make.case.options.get("out") else {}
    return Arguments((make.tensor(*leading, k), weight, *affine), keywords)


def combined_magnitude(input, weight1, weight2, bias, *, out=None):
    """The dot product's terms carried through both slopes, the terms 1 of tanh, the shift."""
    gate = torch.sigmoid(input @ weight1)
    squashed = torch.tanh(gate)
    dot = input.abs() @ weight1.abs()
    inner = (1 - squashed**2) * gate * (1 - gate) * dot
    return weight2.abs() * (inner + 1) + bias.abs()


@activation(
    "combined_activation",
    inputs=layer_weights,
    cases=(
        small("one", "normal", m=1, k=1, n=1),
        with_options(small("odd", "heavy_tail", m=37, k=53, n=29), affine="full"),
        small("tiles", "mixed", m=64, k=128, n=32),
        small("transposed", "normal", layout="transposed", m=33, k=65, n=48),
        with_options(small("half", "normal", "float16", m=45, k=97, n=31), affine="full"),
        with_options(small("batch", "scaled", batch=3, m=17, k=19, n=23), affine="full"),
        with_options(small("out", "shifted", m=41, k=67, n=59), out=True),
        timed("large", "mixed", m=8192, k=2048, n=2048),
        timed("half", "mixed", "float16", m=16384, k=2048, n=2048),
        with_options(timed("odd", "mixed", m=8191, k=1021, n=2039), affine="full"),
    ),
    check=Close(magnitude=combined_magnitude, narrow_intermediates=True),
    flops=total(matmul("batch", "m", "k", "n"), product(10, "batch", "m", "n")),
    mutates=("out",),
)
def combined_activation(input, weight1, weight2, bias, *, out=None):
    """tanh(sigmoid(X @ W1)) * W2 + b for X (..., k) and W1 (k, n); W2 and b broadcast with the
    result (..., n). `out` is written and returned.
    """
    result = torch.tanh(torch.sigmoid(input @ weight1)) * weight2 + bias
    return result if out is None else out.copy_(result)
