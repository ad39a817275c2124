"""Pooling: means over windows."""

import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import one_tensor, small, timed, with_options
from benchmark.suite.registry import category

pooling = category("Pooling")


def adaptive_magnitude(input, output_size):
    """mean |x| of each window."""
    return F.adaptive_avg_pool2d(input.abs(), output_size)


@pooling(
    "adaptive_avg_pool2d",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", n=1, c=1, h=1, w=1), output_size=1),
        with_options(small("square", "heavy_tail", n=2, c=3, h=23, w=29), output_size=5),
        with_options(small("uneven", "shifted", n=1, c=7, h=31, w=37), output_size=[5, 7]),
        with_options(small("unbatched", "mixed", c=16, h=8, w=9), output_size=[3, 4]),
        with_options(small("kept", "normal", n=2, c=5, h=19, w=17), output_size=[None, 6]),
        with_options(small("larger", "scaled", n=2, c=3, h=7, w=11), output_size=[16, 11]),
        with_options(
            small("transposed", "normal", layout="transposed", n=2, c=3, h=33, w=48),
            output_size=[1, 9],
        ),
        with_options(small("half", "normal", "float16", n=2, c=3, h=41, w=43), output_size=7),
        with_options(timed("large", "mixed", n=32, c=64, h=224, w=224), output_size=[112, 112]),
        with_options(timed("half", "mixed", "float16", n=64, c=64, h=224, w=224), output_size=7),
        with_options(timed("odd", "mixed", n=16, c=37, h=301, w=259), output_size=[100, 77]),
    ),
    check=Close(magnitude=adaptive_magnitude),
    flops=per_element(1),
)
def adaptive_avg_pool2d(input, output_size):
    """Mean of each of h x w windows of images (N, C, H, W) or (C, H, W): window i of h takes the
    rows from floor(i H / h) up to, not including, ceil((i + 1) H / h), columns alike.
    `output_size` is (h, w), or a number for both; None keeps the input's size.
    """
    return F.adaptive_avg_pool2d(input, output_size)


def window_magnitude(input, kernel_size, stride=None, padding=0):
    """mean |x| of each window."""
    return F.avg_pool1d(input.abs(), kernel_size, stride=stride, padding=padding)


@pooling(
    "avg_pool1d",
    inputs=one_tensor,
    cases=(
        with_options(small("one", "normal", n=1, c=1, length=1), kernel_size=1),
        with_options(small("two", "heavy_tail", n=2, c=5, length=781), kernel_size=2),
        with_options(small("overlap", "shifted", n=3, c=7, length=129), kernel_size=5, stride=2),
        with_options(
            small("padded", "shifted", n=2, c=4, length=61), kernel_size=3, stride=1, padding=1
        ),
        with_options(small("unbatched", "mixed", c=37, length=53), kernel_size=7, padding=3),
        with_options(small("gaps", "scaled", n=2, c=16, length=100), kernel_size=3, stride=5),
        with_options(
            small("transposed", "normal", layout="transposed", n=2, c=33, length=48), kernel_size=4
        ),
        with_options(
            small("half", "normal", "float16", n=3, c=11, length=257),
            kernel_size=9,
            stride=4,
            padding=4,
        ),
        with_options(timed("large", "mixed", n=64, c=512, length=2048), kernel_size=2),
        with_options(
            timed("half", "mixed", "float16", n=64, c=512, length=4096),
            kernel_size=3,
            stride=2,
            padding=1,
        ),
        with_options(
            timed("odd", "mixed", n=37, c=251, length=4099), kernel_size=7, stride=3, padding=3
        ),
    ),
    check=Close(magnitude=window_magnitude),
    flops=per_element(1),
)
def avg_pool1d(input, kernel_size, stride=None, padding=0):
    """Mean of windows of `kernel_size` along the last dimension of (N, C, L) or (C, L), one every
    `stride` (by default the kernel's size); `padding` zeros at both ends count as elements.
    """
    return F.avg_pool1d(input, kernel_size, stride=stride, padding=padding)
