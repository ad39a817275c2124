"""What chains have in common: arguments of linear layers, and how rounding errors pass through
the links of a chain.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.spec import Arguments


def written(result, out):
    """The result, copied into `out` where the caller gave one."""
    return result if out is None else out.copy_(result)


def through(function, values, size):
    """Errors of `size` in the values become errors of |f'(values)| size in f(values)."""
    with torch.enable_grad():
        leaf = values.detach().requires_grad_(True)
        (slope,) = torch.autograd.grad(function(leaf).sum(), leaf)
    return slope.abs() * size


def weights(make: Maker, *shape: int, fan: int):
    """Weights that keep the deviation of the input: normal over sqrt(fan), eighths for integer
    inputs (products and sums stay exact).
    """
    if make.case.family == "integers":
        return (make.randint(-4, 5, *shape) / 8).to(make.dtype)
    return make.tensor(*shape, family="normal") * fan**-0.5


def linear_size(input, weight, bias=None):
    """sum |x||w| + |b| behind each element of a linear layer."""
    return F.linear(input.abs(), weight.abs(), None if bias is None else bias.abs())


def layer_norm_size(values, size, dims, eps):
    """Errors of `size` in the values after a normalization by mean and deviation over `dims`."""
    centred = values - values.mean(dims, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(dims, keepdim=True) + eps)
    shown = (centred * scale).abs()
    return scale * (
        size + size.mean(dims, keepdim=True) + shown * (shown * size).mean(dims, keepdim=True)
    )


def log_softmax_size(values, size, dim):
    """Errors of `size` in the values after log_softmax, and its own: it subtracts the maximum and
    the logarithm of the sum.
    """
    share = torch.softmax(values, dim)
    total = torch.logsumexp(values, dim, keepdim=True).abs()
    top = values.abs().amax(dim, keepdim=True)
    return size + (share * size).sum(dim, keepdim=True) + values.abs() + total + top


def linear_arguments(make: Maker) -> Arguments:
    """(batch, m, k) inputs, (n, k) weights and (n,) biases, the last left out by `bias=False`."""
    sizes = make.case.sizes
    n, k = sizes["n"], sizes["k"]
    leading = [sizes[name] for name in ("batch", "m") if name in sizes]
    tensors = [make.tensor(*leading, k), weights(make, n, k, fan=k)]
    if make.case.options.get("bias", True):
        tensors.append(make.tensor(n, family="normal"))
    return Arguments(tuple(tensors), make.options("bias"))


def linear_cases(*variants: dict, half: bool = True):
    """The usual cases of a linear layer and what follows it; the variants are dealt over the small
    ones that have a bias and an odd place.
    """
    narrow = "float16" if half else "float32"
    checked = (
        small("odd", "normal", m=37, k=53, n=29),
        small("batch", "shifted", batch=3, m=11, k=33, n=24),
        small("integers", "integers", m=19, k=48, n=40),
        small("half", "normal", narrow, m=32, k=65, n=48),
        small("heavy", "heavy_tail", m=64, k=96, n=64),
    )
    dealt = [with_options(case, **variants[i % len(variants)]) for i, case in enumerate(checked)]
    return (
        small("one", "normal", m=1, k=1, n=1),
        small("transposed", "normal", layout="transposed", m=33, k=112, n=56),
        with_options(small("no-bias", "normal", m=17, k=64, n=41), bias=False),
        *dealt,
        timed("large", "normal", m=8192, k=4096, n=2048),
        timed("deep", "shifted", m=2048, k=16384, n=2048),
        timed("half", "normal", narrow, m=8192, k=4096, n=4096),
    )
