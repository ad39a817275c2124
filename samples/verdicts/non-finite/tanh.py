"""An honest mistake, planted: (e^2x - 1) / (e^2x + 1) is infinity over infinity for large x."""

import torch
import triton
import triton.language as tl


@triton.jit
def tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(
        y_ptr + offsets,
        (tl.exp(2 * x.to(tl.float32)) - 1) / (tl.exp(2 * x.to(tl.float32)) + 1),
        mask=mask,
    )


def tanh(input_tensor, out_tensor=None):
    x = input_tensor.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        tanh_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y if out_tensor is None else out_tensor.copy_(y)
