"""Fourier transforms and their shift, softmax."""

import math

import torch

from benchmark.suite.checks import Close, Exact
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, one_tensor, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

mathematics = category("Math")


def transformed_dims(
    input: torch.Tensor, s: tuple[int, ...] | None, dim: int | tuple[int, ...] | None
) -> tuple[int, ...]:
    """The dimensions that fftn transforms: those named, else the last as many as sizes, else
    all.
    """
    if dim is not None:
        return (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(range(-len(s), 0)) if s is not None else tuple(range(input.dim()))


def fft_magnitude(input, s=None, dim=None, norm=None, out=None):
    """The root mean square of the spectrum, along the transformed dimensions: a fast transform adds
    roundings of this size, however small the coefficient.
    """
    spectrum = torch.fft.fftn(input, s=s, dim=dim, norm=norm)
    dims = transformed_dims(input, s, dim)
    return spectrum.abs().square().mean(dims, keepdim=True).sqrt().expand(spectrum.shape)


def signal(make: Maker) -> Arguments:
    """A real or complex tensor and the options; `out` is complex, of the shape asked for."""
    keywords = make.options("out")
    shape = list(make.case.shape)
    if make.case.options.get("out"):
        keywords["out"] = make.out(*shape, dtype=torch.complex64)
    return Arguments((make.tensor(*shape),), keywords)


def fft_flops(case: Case) -> float:
    """5 N log2 N for each transform of N numbers."""
    options, shape = case.options, case.shape
    sizes = options.get("s") or shape
    dims = options.get("dim", range(len(shape)))
    length = math.prod(sizes if options.get("s") else [shape[d] for d in dims])
    return 5 * math.log2(length) * per_element(1)(case)


@mathematics(
    "fftn",
    inputs=signal,
    cases=(
        small("one", "normal", "complex64", n=1),
        small("real", "normal", rows=16, columns=48),
        small("prime", "heavy_tail", "complex64", n=251),
        with_options(small("cut", "mixed", rows=37, columns=53), s=[16, 60]),
        with_options(small("first", "shifted", "complex64", rows=30, columns=17), dim=[0]),
        with_options(
            small("ortho", "normal", "complex64", a=5, b=12, c=28), dim=[0, 2], norm="ortho"
        ),
        with_options(
            small("forward", "scaled", layout="transposed", rows=24, columns=35), norm="forward"
        ),
        with_options(small("last", "normal", rows=7, columns=210), s=[128]),
        with_options(small("out", "normal", "complex64", rows=32, columns=64), out=True),
        timed("line", "mixed", "complex64", n=1 << 23),
        with_options(timed("planes", "mixed", batch=16, rows=1024, columns=2048), dim=[1, 2]),
        timed("cube", "mixed", "complex64", a=256, b=320, c=240),
    ),
    check=Close(magnitude=fft_magnitude),
    flops=fft_flops,
    mutates=("out",),
    differences=(
        "complex results have a tolerance: the published test compared them with none, which only "
        "cuFFT itself could pass",
    ),
)
def fftn(input, s=None, dim=None, norm=None, out=None):
    """Discrete Fourier transform along the dimensions `dim` (all; with `s` the last `len(s)`):
    X[k] = sum over j of x[j] exp(-2 pi i j k / n) along each. `s` cuts or pads with zeros first.
    `norm` divides by n (`forward`), by sqrt(n) (`ortho`) or not at all (`backward`, the default).
    Input float32 or complex64, output complex64; written to `out` where given.
    """
    return torch.fft.fftn(input, s=s, dim=dim, norm=norm, out=out)


@mathematics(
    "ifftshift",
    inputs=one_tensor,
    cases=(
        small("one", "normal", n=1),
        small("line", "normal", n=1009),
        small("plane", "heavy_tail", rows=37, columns=53),
        with_options(small("rows", "special", rows=18, columns=131), dim=0),
        with_options(small("last", "scaled", a=5, b=31, c=37), dim=-1),
        with_options(small("two", "mixed", a=7, b=16, c=33), dim=[1, 2]),
        with_options(small("outer", "mixed", a=3, b=7, c=11, d=13), dim=[0, 3]),
        small("half", "normal", "float16", layout="transposed", rows=31, columns=65),
        small("integers", "integers", "int64", a=9, b=19, c=21),
        timed("line", "mixed", n=1 << 26),
        with_options(timed("planes", "mixed", batch=64, rows=1024, columns=1023), dim=[1, 2]),
        with_options(timed("rows", "mixed", "float16", rows=8191, columns=16384), dim=0),
    ),
    check=Exact(),
    flops=per_element(1),
)
def ifftshift(input, dim=None):
    """The tensor rolled back by half of each dimension in `dim` (a number or several; all by
    default): out[i] = input[(i + floor(n / 2)) mod n]. Undoes fftshift, for odd sizes too.
    """
    return torch.fft.ifftshift(input, dim=dim)


def softmax_magnitude(input, dim, dtype=None):
    """p (1 + max - x): what a rounding of the exponent does to exp(x - max)."""
    gap = input.amax(dim, keepdim=True) - input
    return torch.softmax(input, dim) * (1 + gap)


@mathematics(
    "softmax",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", n=1), dim=0),
        with_options(small("odd", "heavy_tail", rows=17, columns=781), dim=1),
        with_options(small("first", "shifted", rows=211, columns=7), dim=0),
        with_options(small("large", "large", rows=31, columns=129), dim=-1),
        with_options(small("middle", "scaled", a=5, b=31, c=37), dim=1),
        with_options(small("half", "normal", "float16", rows=15, columns=257), dim=1),
        with_options(small("double", "mixed", rows=9, columns=129), dim=-1, dtype="float64"),
        with_options(small("transposed", "ties", layout="transposed", rows=33, columns=48), dim=1),
        with_options(
            small("widened", "scaled", "float16", rows=12, columns=65), dim=0, dtype="float32"
        ),
        with_options(timed("rows", "mixed", rows=16384, columns=4096), dim=1),
        with_options(timed("long", "mixed", rows=128, columns=524288), dim=-1),
        with_options(timed("columns", "mixed", rows=4096, columns=16384), dim=0),
    ),
    check=Close(magnitude=softmax_magnitude),
    flops=per_element(5),
)
def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype | None = None):
    """exp(x) / sum exp(x) along `dim`, safe from overflow (the largest x is subtracted first). With
    `dtype` the input is converted to it before, and the output has it.
    """
    return torch.softmax(input, dim, dtype=dtype)
