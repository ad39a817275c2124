"""Average pooling with elementwise operators."""

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.fusion.common import through
from benchmark.suite.inputs import one_tensor, small, timed, with_options
from benchmark.suite.registry import category

fusion = category("Fusion")


def cos_avg_pool1d_size(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
):
    """1 behind each cosine, averaged."""
    ones = torch.ones_like(input)
    return F.avg_pool1d(ones, kernel_size, stride, padding, ceil_mode, count_include_pad)


@fusion(
    "fused_cos_avg_pool1d",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", batch=1, channels=1, length=1), kernel_size=1),
        with_options(small("odd", "wide", batch=3, channels=7, length=101), kernel_size=3),
        with_options(
            small("overlapping", "scaled", batch=2, channels=5, length=257),
            kernel_size=4,
            stride=2,
            padding=1,
        ),
        with_options(
            small("ceil", "normal", batch=2, channels=9, length=64),
            kernel_size=5,
            stride=3,
            ceil_mode=True,
        ),
        with_options(
            small("inside", "wide", batch=2, channels=6, length=120),
            kernel_size=7,
            padding=3,
            count_include_pad=False,
        ),
        with_options(
            small("ceil-padded", "wide", batch=2, channels=6, length=119),
            kernel_size=6,
            stride=4,
            padding=2,
            ceil_mode=True,
        ),
        with_options(
            small("transposed", "shifted", layout="transposed", batch=2, channels=8, length=90),
            kernel_size=2,
        ),
        with_options(timed("large", "wide", batch=64, channels=256, length=4096), kernel_size=3),
        with_options(
            timed("overlapping", "scaled", batch=64, channels=128, length=4099),
            kernel_size=9,
            stride=2,
            padding=4,
        ),
        with_options(timed("long", "wide", batch=8, channels=4, length=1 << 20), kernel_size=16),
    ),
    check=Close(magnitude=cos_avg_pool1d_size),
    flops=per_element(18),
)
def fused_cos_avg_pool1d(
    input: torch.Tensor,
    kernel_size: int,
    stride: int | None = None,
    padding: int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
):
    """Averages of cos(x) in windows along the last dimension of (N, C, L), `stride` (the kernel
    size unless given) apart. Padding counts as zeros, or not at all; `ceil_mode` keeps a last
    window that sticks out, divided by what lies inside the padded input.
    """
    step = kernel_size if stride is None else stride
    return F.avg_pool1d(torch.cos(input), kernel_size, step, padding, ceil_mode, count_include_pad)


def sigmoid_pool_size(input, output_size):
    """Mean |x| of each window through the sigmoid."""
    pooled = F.adaptive_avg_pool2d(input, output_size)
    return through(torch.sigmoid, pooled, F.adaptive_avg_pool2d(input.abs(), output_size))


@fusion(
    "fused_sigmoid_adaptive_avg_pool2d",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", batch=1, channels=1, h=1, w=1), output_size=1),
        with_options(small("square", "shifted", batch=2, channels=3, h=16, w=16), output_size=4),
        with_options(small("odd", "scaled", batch=2, channels=3, h=17, w=23), output_size=[5, 7]),
        with_options(small("global", "heavy_tail", batch=3, channels=5, h=13, w=31), output_size=1),
        with_options(small("wider", "normal", batch=1, channels=4, h=5, w=6), output_size=[7, 9]),
        with_options(small("flat", "wide", channels=6, h=12, w=20), output_size=[3, 20]),
        with_options(
            small("transposed", "scaled", layout="transposed", batch=2, channels=4, h=24, w=18),
            output_size=[5, 6],
        ),
        with_options(timed("large", "scaled", batch=32, channels=128, h=112, w=112), output_size=7),
        with_options(timed("global", "scaled", batch=64, channels=512, h=56, w=56), output_size=1),
        with_options(
            timed("odd", "scaled", batch=16, channels=64, h=255, w=255), output_size=[100, 60]
        ),
    ),
    check=Close(magnitude=sigmoid_pool_size),
    flops=per_element(1),
)
def fused_sigmoid_adaptive_avg_pool2d(input: torch.Tensor, output_size: int | tuple[int, int]):
    """sigmoid of averages of (N, C, H, W) or (C, H, W) images: row i of the result is about the
    rows from floor(i H / h) to ceil((i + 1) H / h), columns likewise, for a size (h, w) or a number
    for both.
    """
    return torch.sigmoid(F.adaptive_avg_pool2d(input, output_size))
