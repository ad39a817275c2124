import torch
import triton
import triton.language as tl


@triton.jit
def log1p_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    # log(1 + x), corrected for what is lost when 1 + x is rounded
    u = 1.0 + x
    lost = x - (u - 1.0)
    y = tl.log(u) + lost / tl.where(u > 0, u, 1.0)
    y = tl.where(u == 1.0, x, tl.where(u == float("inf"), x, tl.where(u > 0, y, tl.log(u))))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def log1p(input: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x = input.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        log1p_kernel[(triton.cdiv(n, 2048),)](x, y, n, BLOCK=2048)
    return y
