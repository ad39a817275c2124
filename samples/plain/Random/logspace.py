import math

import torch
import triton
import triton.language as tl


@triton.jit
def logspace_kernel(y_ptr, plan_ptr, steps, half, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """From the start in the lower half, back from the end in the upper: both ends are met."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    start = tl.load(plan_ptr).to(WIDE)
    step = tl.load(plan_ptr + 1).to(WIDE)
    end = tl.load(plan_ptr + 2).to(WIDE)
    logarithm = tl.load(plan_ptr + 3).to(WIDE)
    i = offsets.to(WIDE)
    back = (steps - 1 - offsets).to(WIDE)
    exponent = tl.where(offsets < half, start + step * i, end - step * back)
    y = tl.exp2(exponent * logarithm)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=offsets < steps)


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
    y = torch.empty(steps, dtype=dtype, device=device)
    step = (end - start) / max(steps - 1, 1)
    # as a tensor: numbers reach a kernel as float32
    plan = torch.tensor([start, step, end, math.log2(base)], dtype=torch.float64).to(y.device)
    wide = tl.float64 if y.dtype == torch.float64 else tl.float32
    if steps:
        logspace_kernel[(triton.cdiv(steps, 1024),)](
            y, plan, steps, max(steps // 2, 1), WIDE=wide, BLOCK=1024
        )
    return y.requires_grad_(requires_grad)
