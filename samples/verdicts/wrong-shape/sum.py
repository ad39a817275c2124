"""Planted: keeps the reduced dimension whatever `keepdim` says."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, columns, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + offsets, mask=offsets < columns, other=0.0)
        total += tl.sum(x.to(tl.float32))
    tl.store(y_ptr + row, total)


def sum(input, dim, keepdim=False, dtype=None):
    dims = sorted(d % input.dim() for d in (dim if isinstance(dim, (list, tuple)) else [dim]))
    kept = [d for d in range(input.dim()) if d not in dims]
    x = input.permute(*kept, *dims).contiguous()
    shape = [1 if d in dims else size for d, size in enumerate(input.shape)]
    y = torch.empty(shape, dtype=dtype or input.dtype, device=input.device)
    if y.numel():
        sum_kernel[(y.numel(),)](x, y, x.numel() // y.numel(), BLOCK=1024)
    return y
