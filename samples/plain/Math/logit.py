import torch
import triton
import triton.language as tl


@triton.jit
def logit_kernel(x_ptr, y_ptr, n, low, high, CLAMP: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.5).to(tl.float32)
    if CLAMP:
        x = tl.where(x < low, low, tl.where(x > high, high, x))
    y = tl.log(x / (1.0 - x))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def logit(input: torch.Tensor, eps: float = None, out: torch.Tensor = None) -> torch.Tensor:
    x = input.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        logit_kernel[(triton.cdiv(n, 1024),)](
            x, y, n, eps or 0.0, 1.0 - (eps or 0.0), CLAMP=eps is not None, BLOCK=1024
        )
    return y
