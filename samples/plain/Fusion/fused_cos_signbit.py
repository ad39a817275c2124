import torch
import triton
import triton.language as tl


@triton.jit
def cos_signbit_kernel(x_ptr, y_ptr, n, s_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1).to(tl.float32)
    y = tl.cos(x)
    tl.store(s_ptr + offsets, y < 0, mask=inside)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_cos_signbit(input):
    x = input.contiguous()
    y, sign = torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)
    n = x.numel()
    cos_signbit_kernel[(triton.cdiv(n, 2048),)](x, y, n, sign, BLOCK=2048)
    return y, sign
