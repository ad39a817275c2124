"""Convolutions of images."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import RoundedBetween
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments, Case

convolution = category("Convolution")


def asked(case: Case, name: str) -> int:
    """An option of the case, or its default: padding 0, the others 1."""
    value = case.options.get(name, 0 if name == "padding" else 1)
    assert isinstance(value, int)
    return value


def output_pixels(case: Case, side: str, kernel: str) -> int:
    """Pixels of the output along one side."""
    reach = asked(case, "dilation") * (case.sizes[kernel] - 1) + 1
    return (case.sizes[side] + 2 * asked(case, "padding") - reach) // asked(case, "stride") + 1


@dataclass(frozen=True)
class TapFlops:
    """Two operations for each tap of each pixel: of the output, or if transposed of the input."""

    transposed: bool

    def __call__(self, case: Case) -> float:
        taps = 2 * math.prod(case.sizes[name] for name in ("n", "c", "out", "kh", "kw"))
        if self.transposed:
            pixels = case.sizes["h"] * case.sizes["w"]
        else:
            pixels = output_pixels(case, "h", "kh") * output_pixels(case, "w", "kw")
        return taps * pixels / asked(case, "groups")


def image_and_filters(make: Maker) -> Arguments:
    """Images (n, c, h, w), filters (out, c / groups, kh, kw), and on request a bias (out)."""
    return filtered(make, make.size("out"), make.size("c") // asked(make.case, "groups"))


def image_and_transposed_filters(make: Maker) -> Arguments:
    """Images (n, c, h, w), filters (c, out / groups, kh, kw), and on request a bias (out)."""
    return filtered(make, make.size("c"), make.size("out") // asked(make.case, "groups"))


def filtered(make: Maker, first: int, second: int) -> Arguments:
    images = make.tensor(*(make.size(name) for name in ("n", "c", "h", "w")))
    filters = make.tensor(first, second, make.size("kh"), make.size("kw"))
    keywords = make.options("bias")
    if make.case.options.get("bias"):
        keywords["bias"] = make.tensor(make.size("out"), family="shifted")
    return Arguments((images, filters), keywords)


def size_of(bias):
    """|b|, if there is one."""
    return None if bias is None else bias.abs()


def conv_magnitude(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """sum |x||w| + |b| behind each pixel."""
    terms = input.abs(), weight.abs(), size_of(bias)
    return F.conv2d(terms[0], terms[1], terms[2], stride, padding, dilation, groups)


def conv_rounded(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """|sum x w|, rounded before the bias is added; without one that is the result."""
    values = F.conv2d(input, weight, None, stride, padding, dilation, groups)
    return torch.zeros_like(values) if bias is None else values.abs()


@convolution(
    "conv2d",
    inputs=image_and_filters,
    cases=(
        with_options(small("one", "normal", n=1, c=1, h=1, w=1, out=1, kh=1, kw=1), bias=True),
        with_options(
            small("odd", "heavy_tail", n=2, c=5, h=17, w=19, out=7, kh=3, kw=3),
            bias=True,
            padding=1,
        ),
        with_options(small("stride", "shifted", n=1, c=3, h=23, w=29, out=8, kh=3, kw=5), stride=2),
        with_options(
            small("dilation", "mixed", n=2, c=4, h=17, w=14, out=6, kh=3, kw=2),
            dilation=3,
            padding=2,
        ),
        with_options(
            small("groups", "normal", n=2, c=12, h=13, w=11, out=18, kh=3, kw=3),
            groups=3,
            bias=True,
            padding=1,
            stride=2,
        ),
        with_options(
            small("depthwise", "normal", n=1, c=7, h=12, w=13, out=7, kh=3, kw=3),
            groups=7,
            padding=1,
        ),
        with_options(
            small(
                "transposed",
                "normal",
                layout="transposed",
                n=1,
                c=33,
                h=9,
                w=12,
                out=17,
                kh=1,
                kw=1,
            ),
            bias=True,
        ),
        with_options(
            small("half", "normal", "float16", n=2, c=16, h=14, w=15, out=20, kh=3, kw=3),
            bias=True,
            padding=1,
        ),
        with_options(
            timed("large", "mixed", n=64, c=64, h=112, w=112, out=128, kh=3, kw=3),
            bias=True,
            stride=2,
            padding=1,
        ),
        with_options(
            timed("half", "mixed", "float16", n=128, c=128, h=56, w=56, out=128, kh=3, kw=3),
            bias=True,
            padding=1,
        ),
        with_options(
            timed("odd", "mixed", n=32, c=96, h=93, w=91, out=96, kh=3, kw=3),
            groups=4,
            dilation=2,
            padding=2,
        ),
    ),
    check=RoundedBetween(magnitude=conv_magnitude, rounded=conv_rounded),
    flops=TapFlops(transposed=False),
    differences=(
        "float32 means float32 in the reference too: cuDNN's TF32, which PyTorch leaves on, is off",
    ),
)
def conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
):
    """Cross-correlation of images (N, C, H, W) with filters (O, C / groups, kH, kW), plus a bias
    (O): output pixel (i, j) sums x[i stride + k dilation - padding, ...] w[k, ...]; outside the
    image x is 0. Group g of the output's channels sees group g of the input's.
    """
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


def transpose_magnitude(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """sum |x||w| + |b| behind each pixel."""
    terms = input.abs(), weight.abs(), size_of(bias)
    return F.conv_transpose2d(
        terms[0], terms[1], terms[2], stride, padding, output_padding, groups, dilation
    )


def transpose_rounded(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """|sum x w|, rounded before the bias is added; without one that is the result."""
    values = F.conv_transpose2d(
        input, weight, None, stride, padding, output_padding, groups, dilation
    )
    return torch.zeros_like(values) if bias is None else values.abs()


@convolution(
    "conv_transpose2d",
    inputs=image_and_transposed_filters,
    cases=(
        with_options(small("one", "normal", n=1, c=1, h=1, w=1, out=1, kh=1, kw=1), bias=True),
        small("odd", "heavy_tail", n=2, c=5, h=9, w=11, out=7, kh=3, kw=3),
        with_options(
            small("stride", "shifted", n=1, c=6, h=8, w=7, out=5, kh=3, kw=4),
            stride=2,
            padding=1,
            output_padding=1,
            bias=True,
        ),
        with_options(
            small("dilation", "mixed", n=2, c=4, h=7, w=9, out=6, kh=3, kw=2), dilation=3, padding=1
        ),
        with_options(
            small("groups", "normal", n=2, c=12, h=6, w=5, out=18, kh=3, kw=3),
            groups=3,
            bias=True,
            stride=3,
            output_padding=2,
        ),
        with_options(
            small("gaps", "normal", n=1, c=3, h=9, w=8, out=4, kh=2, kw=1), stride=3, bias=True
        ),
        with_options(
            small(
                "transposed", "normal", layout="transposed", n=1, c=33, h=6, w=8, out=17, kh=2, kw=2
            ),
            stride=2,
        ),
        with_options(
            small("half", "normal", "float16", n=2, c=16, h=7, w=8, out=20, kh=4, kw=4),
            bias=True,
            stride=2,
            padding=1,
        ),
        with_options(
            timed("large", "mixed", n=32, c=128, h=56, w=56, out=64, kh=4, kw=4),
            bias=True,
            stride=2,
            padding=1,
        ),
        with_options(
            timed("half", "mixed", "float16", n=64, c=128, h=64, w=64, out=64, kh=4, kw=4),
            bias=True,
            stride=2,
            padding=1,
        ),
        with_options(
            timed("odd", "mixed", n=16, c=96, h=61, w=67, out=48, kh=5, kw=5),
            groups=3,
            stride=3,
            padding=1,
            output_padding=1,
        ),
    ),
    check=RoundedBetween(magnitude=transpose_magnitude, rounded=transpose_rounded),
    flops=TapFlops(transposed=True),
    differences=(
        "float32 means float32 in the reference too: cuDNN's TF32, which PyTorch leaves on, is off",
    ),
)
def conv_transpose2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
    output_padding: int = 0,
    groups: int = 1,
    dilation: int = 1,
):
    """Transposed convolution of images (N, C, H, W) with filters (C, O / groups, kH, kW), plus a
    bias (O): input pixel i adds x[i] w[k] to output pixel i stride + k dilation - padding. The
    output has (H - 1) stride - 2 padding + dilation (kH - 1) + output_padding + 1 rows, columns
    alike.
    """
    return F.conv_transpose2d(
        input, weight, bias, stride, padding, output_padding, groups, dilation
    )
