import torch
import triton
import triton.language as tl


@triton.jit
def abs_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0)
    y = tl.where(x < 0, -x, x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def abs(input_tensor: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x = input_tensor.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        abs_kernel[(triton.cdiv(n, 4096),)](x, y, n, BLOCK=4096)
    return y
