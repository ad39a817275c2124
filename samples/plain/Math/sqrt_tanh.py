import torch
import triton
import triton.language as tl


@triton.jit
def sqrt_tanh_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    # a polynomial where 1 - 2 / (exp(2 s) + 1) would cancel
    s = tl.sqrt(x)
    p = 0.0023707656405
    p = p * x + -0.0084100708015
    p = p * x + 0.021788321997
    p = p * x + -0.053961551781
    p = p * x + 0.13333312867
    p = p * x + -0.33333333231
    large = 1.0 - 2.0 / (tl.exp(2.0 * s) + 1.0)
    y = tl.where(s < 0.6, s + s * x * p, large)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def sqrt_tanh(input: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x = input.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        sqrt_tanh_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
