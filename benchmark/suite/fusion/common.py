"""What chains have in common: arguments of linear layers, and how rounding errors pass through
the links of a chain.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.spec import Arguments, Case

FREE = (
    "no stream of numbers is asked for: each element is kept with probability 1 - p, independently "
    "of the others and of the last call"
)
NO_OUT = "`out` stays None: what chance leaves is judged in the result"


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
    name, narrow = ("half", "float16") if half else ("second", "float32")
    checked = (
        small("odd", "normal", m=37, k=53, n=29),
        small("batch", "shifted", batch=3, m=11, k=33, n=24),
        small("integers", "integers", m=19, k=48, n=40),
        small(name, "normal", narrow, m=32, k=65, n=48),
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
        timed(name, "normal", narrow, m=8192, k=4096, n=4096),
    )


def conv_arguments(make: Maker) -> Arguments:
    """Images (batch, channels, height, width), filters (filters, channels / groups, kernel,
    kernel_w) and (filters,) biases by keyword, left out by `bias=False`.
    """
    image, weight, bias = conv_tensors(make)
    keywords = make.options("bias")
    return Arguments((image, weight), keywords if bias is None else {"bias": bias} | keywords)


def conv_tensors(make: Maker):
    """Images, filters and biases (or None) of a convolution's case."""
    sizes = make.case.sizes
    options: Any = make.case.options
    height, width = sizes["kernel"], sizes.get("kernel_w", sizes["kernel"])
    depth = sizes["channels"] // options.get("groups", options.get("conv_groups", 1))
    image = make.tensor(*(sizes[name] for name in ("batch", "channels", "height", "width")))
    weight = weights(make, sizes["filters"], depth, height, width, fan=depth * height * width)
    biased = options.get("bias", True)
    return image, weight, make.tensor(sizes["filters"], family="normal") if biased else None


def conv_cases(*variants: dict, prefix: str = "", half: bool = True, batch: int = 1):
    """The usual cases of a convolution and what follows it; strides and the like are called
    `prefix` + name, the variants are dealt over four of the small ones. Timed batches are `batch`
    times as large as usual.
    """
    name, narrow = ("half", "float16") if half else ("second", "float32")
    spaced = {f"{prefix}stride": 2, f"{prefix}padding": 1}
    grouped = {f"{prefix}groups": 2, f"{prefix}dilation": 2}
    deep = {f"{prefix}groups": 5, f"{prefix}padding": 2}
    padded = {f"{prefix}padding": 1}
    checked = (
        _conv("strided", "shifted", (1, 4, 19, 15, 6, 3), **spaced),
        _conv("grouped", "normal", (2, 6, 14, 11, 4, 3), **grouped),
        _conv("depthwise", "heavy_tail", (1, 5, 12, 9, 10, 5), **deep),
        _conv("integers", "integers", (2, 3, 9, 11, 7, 3), **padded),
    )
    dealt = [with_options(case, **variants[i % len(variants)]) for i, case in enumerate(checked)]
    one, odd = (1, 1, 4, 4, 1, 1), (2, 3, 13, 17, 5, 3)
    return (
        _conv("one", "normal", one),
        _conv("odd", "normal", odd),
        *dealt,
        with_options(
            small(
                "uneven",
                "normal",
                layout="transposed",
                **(_sizes(1, 8, 9, 14, 20, 3) | {"kernel_w": 2}),
            ),
            bias=False,
        ),
        with_options(small(name, "normal", narrow, **_sizes(2, 16, 8, 9, 17, 3)), **padded),
        with_options(
            timed("large", "normal", **_sizes(16 * batch, 64, 112, 112, 128, 3)), **padded
        ),
        timed("image", "normal", **_sizes(4, 3, 960, 1024, 32, 3)),
        with_options(
            timed(name, "normal", narrow, **_sizes(64 * batch, 128, 56, 56, 256, 3)), **padded
        ),
    )


def _conv(name: str, family: str, sizes: tuple[int, ...], **options: object):
    return with_options(small(name, family, **_sizes(*sizes)), **options)


def _sizes(*sizes: int) -> dict[str, Any]:
    names = ("batch", "channels", "height", "width", "filters", "kernel")
    return dict(zip(names, sizes, strict=True))


def conv_shape(make: Maker) -> tuple[int, ...]:
    """Shape of the convolution's result, for strides and the like that are whole numbers."""
    sizes = make.case.sizes
    options: Any = make.case.options
    stride, padding = options.get("stride", 1), options.get("padding", 0)
    kernel = sizes["kernel"], sizes.get("kernel_w", sizes["kernel"])
    reach = [options.get("dilation", 1) * (size - 1) + 1 for size in kernel]
    places = [
        (sizes[name] + 2 * padding - r) // stride + 1
        for name, r in zip(("height", "width"), reach, strict=True)
    ]
    return (sizes["batch"], sizes["filters"], *places)


@dataclass(frozen=True)
class ConvFlops:
    """Two operations for each weight and place of the result; `upscale`: what pixel shuffling
    takes by default, with so many filters to the square.
    """

    upscale: int = 1

    def __call__(self, case: Case) -> float:
        sizes = case.sizes
        options: Any = case.options
        prefix = "conv_" if any(name.startswith("conv_") for name in options) else ""
        step: Any = options.get(f"{prefix}stride", 1)
        stride = math.prod(step) if isinstance(step, list) else step**2
        depth = sizes["channels"] / options.get(f"{prefix}groups", 1)
        filters = sizes["filters"] * options.get("upscale_factor", self.upscale) ** 2
        kernel = sizes["kernel"] * sizes.get("kernel_w", sizes["kernel"])
        places = sizes["batch"] * sizes["height"] * sizes["width"] / stride
        return 2 * places * filters * depth * kernel


def conv_size(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """sum |x||w| + |b| behind each element of a convolution."""
    size = None if bias is None else bias.abs()
    return F.conv2d(input.abs(), weight.abs(), size, stride, padding, dilation, groups)


def conv_rounded(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """|sum x w|, rounded before the bias is added; without one that is the result."""
    values = F.conv2d(input, weight, None, stride, padding, dilation, groups)
    return torch.zeros_like(values) if bias is None else values.abs()


def batch_norm_size(values, size, mean, variance, weight, bias, training, eps):
    """Errors of `size` in the values after batch normalization with scale and shift."""
    dims = [d for d in range(values.dim()) if d != 1]
    if training:
        size = layer_norm_size(values, size + values.abs(), dims, eps)
    else:
        scale = torch.rsqrt(variance + eps)
        size = (size + values.abs() + per_channel(mean, values).abs()) * per_channel(scale, values)
    if weight is not None:
        size = size * per_channel(weight, values).abs()
    return size if bias is None else size + per_channel(bias, values).abs()


def running_statistics_sizes(values, running_mean, running_var, momentum):
    """Sizes of the terms behind the running mean and variance, (C,) each, that training on values
    (N, C, ...) leaves: |old| + m mean|x| and |old| + m n / (n - 1) mean(x^2).

    Sums of x and of x^2 are off by roundings of mean|x| and of mean(x^2), whatever the results:
    those are small where x or the two halves of the update cancel. mean(x^2) is what E[x^2] -
    E[x]^2 subtracts from; Welford's updates are off by roundings of mean(|x - mean| |mean|), which
    is no larger. All of |old| counts, as m (mean - old) may be added to it.
    """
    dims = [d for d in range(values.dim()) if d != 1]
    count = values.numel() / values.shape[1]
    squares = values.square().mean(dims) * count / (count - 1)
    return (
        running_mean.abs() + momentum * values.abs().mean(dims),
        running_var.abs() + momentum * squares,
    )


def per_channel(vector, values):
    """A (C,) vector in a shape that broadcasts with (N, C, ...) values."""
    return vector.reshape(-1, *[1] * (values.dim() - 2))
