"""Random numbers: any generator will do, the law is what counts."""

import torch

from benchmark.suite.checks import SameDistribution, Uniform
from benchmark.suite.cost import per_element
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.registry import category
from benchmark.suite.spec import Arguments

random_numbers = category("Random")


def sizes_and_device(make: Maker) -> Arguments:
    """The sizes as numbers, the device of the case, and the options."""
    return Arguments(make.case.shape, {"device": make.device} | make.options())


@random_numbers(
    "rand",
    inputs=sizes_and_device,
    cases=(
        small("one", "unit", n=1),
        small("odd", "unit", rows=37, columns=53),
        small("prime", "unit", n=4099),
        with_options(small("double", "unit", "float64", a=7, b=9, c=31), dtype="float64"),
        with_options(small("half", "unit", "float16", rows=33, columns=65), dtype="float16"),
        small("tiles", "unit", rows=64, columns=256),
        timed("large", "unit", rows=8192, columns=8192),
        with_options(timed("half", "unit", "float16", rows=8192, columns=8192), dtype="float16"),
        timed("odd", "unit", rows=8191, columns=4099),
    ),
    check=SameDistribution(Uniform()),
    flops=per_element(10),  # a Philox round of ten steps makes four numbers
    draws=3,
    differences=(
        "no stream of numbers is asked for, so `generator` stays None: a kernel can't reproduce "
        "torch's, so the law, the range and the independence of calls are judged",
        "`out`, `layout`, `requires_grad` and `pin_memory` stay at their defaults: they are about "
        "the tensor's home, not the numbers, and get lost on the way out of its process",
    ),
)
def rand(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """Numbers uniform on [0, 1) in a tensor of the given sizes; each call draws new ones."""
    return torch.rand(
        *size,
        generator=generator,
        out=out,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )
