"""Planted: asks for 32 TiB of workspace."""

import torch
import triton
import triton.language as tl


@triton.jit
def abs_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, tl.abs(x), mask=mask)


def abs(input_tensor, out=None):
    workspace = torch.empty(1 << 45, dtype=torch.uint8, device=input_tensor.device)
    x = input_tensor.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        abs_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    del workspace
    return y
