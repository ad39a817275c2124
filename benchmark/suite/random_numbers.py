"""Random numbers: any generator will do, the law is what counts. And, as published, numbers spaced
evenly on a logarithmic scale.
"""

import math
import random

import torch

from benchmark.suite.checks import Close, SameDistribution, Uniform
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


def ends_and_steps(make: Maker) -> Arguments:
    """Two exponents drawn near those of the options `start` and `end`, the steps, and the device.

    They are Python numbers, so drawn from the generator's seed alone; on the meta device as given.
    """
    options = make.case.options
    seed = make.generator.initial_seed() if make.generator is not None else 0
    shift = random.Random(seed)  # noqa: S311 - test inputs, no secrets
    ends = [options[name] + shift.uniform(-0.25, 0.25) for name in ("start", "end")]
    keywords = make.options("start", "end") | {"device": make.device}
    return Arguments((*ends, make.size("steps")), keywords)


def logspace_truth(
    start,
    end,
    steps,
    base=10.0,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
):
    """The same numbers in float64, whatever the dtype asked for."""
    return torch.logspace(start, end, steps, base=base, dtype=torch.float64, device=device)


def logspace_magnitude(
    start,
    end,
    steps,
    base=10.0,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
):
    """The numbers times (|start| + |end|) |log base|: what rounding the exponent does."""
    exponents = (abs(start) + abs(end)) * abs(math.log(base))
    return logspace_truth(start, end, steps, base, device=device) * exponents


@random_numbers(
    "logspace",
    inputs=ends_and_steps,
    cases=(
        with_options(small("one", "normal", steps=1), start=1.0, end=3.0),
        with_options(small("five", "normal", steps=5), start=1.0, end=3.0),
        with_options(small("prime", "normal", steps=1009), start=0.0, end=4.0, base=2.0),
        with_options(
            small("double", "normal", "float64", steps=777), start=1.0, end=2.0, dtype="float64"
        ),
        with_options(small("falling", "normal", steps=4096), start=3.0, end=-5.0),
        with_options(small("fraction", "normal", steps=2311), start=-6.0, end=9.0, base=0.5),
        with_options(small("narrow", "normal", steps=515), start=-2.0, end=3.0, base=1.0625),
        with_options(small("natural", "normal", steps=5003), start=-20.0, end=30.0, base=math.e),
        with_options(timed("ten", "normal", steps=1 << 27), start=0.0, end=10.0),
        with_options(timed("two", "normal", steps=100_000_007), start=-30.0, end=40.0, base=2.0),
        with_options(
            timed("double", "normal", "float64", steps=1 << 25), start=0.0, end=5.0, dtype="float64"
        ),
    ),
    check=Close(magnitude=logspace_magnitude),
    flops=per_element(20),
    truth=logspace_truth,
    differences=(
        "`layout` and `requires_grad` stay at their defaults: they are about the tensor's home, "
        "not the numbers, and get lost on the way out of its process",
    ),
)
def logspace(
    start,
    end,
    steps,
    base=10.0,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
):
    """base^e for `steps` exponents e, evenly spaced from `start` to `end`, both included:
    e_i = start + i (end - start) / (steps - 1). Output: 1-D, float32 unless `dtype` is given.
    """
    return torch.logspace(
        start,
        end,
        steps,
        base=base,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
