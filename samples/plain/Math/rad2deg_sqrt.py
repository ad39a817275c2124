import torch
import triton
import triton.language as tl


@triton.jit
def rad2deg_sqrt_kernel(x_ptr, first_ptr, root_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    y = x * 57.29577951308232
    tl.store(first_ptr + offsets, y.to(first_ptr.dtype.element_ty), mask=inside)
    tl.store(root_ptr + offsets, tl.sqrt(x).to(root_ptr.dtype.element_ty), mask=inside)


def rad2deg_sqrt(input: torch.Tensor):
    x = input.contiguous()
    first, root = torch.empty_like(x), torch.empty_like(x)
    n = x.numel()
    if n:
        rad2deg_sqrt_kernel[(triton.cdiv(n, 1024),)](x, first, root, n, BLOCK=1024)
    return first, root
