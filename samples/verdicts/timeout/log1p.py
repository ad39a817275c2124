"""Planted: waits for something that never comes."""

import torch
import triton
import triton.language as tl


@triton.jit
def log1p_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.log(1 + x.to(tl.float32)), mask=mask)


def log1p(input, out=None):
    while True:
        pass
