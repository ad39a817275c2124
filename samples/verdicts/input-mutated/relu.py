"""Planted: always works in place, also where the contract asks for a new tensor."""

import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.maximum(x, 0), mask=mask)


def relu(input, inplace=False):
    n = input.numel()
    if n:
        x = input.contiguous()
        relu_kernel[(triton.cdiv(n, 1024),)](x, x, n, BLOCK=1024)
        if x is not input:
            input.copy_(x)
    return input
