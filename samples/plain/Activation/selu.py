import torch
import triton
import triton.language as tl


@triton.jit
def selu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    negative = 1.6732632423543772 * (tl.exp(tl.where(x > 0, 0.0, x)) - 1.0)
    y = 1.0507009873554805 * tl.where(x > 0, x, negative)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def selu(input: torch.Tensor, inplace: bool = False) -> torch.Tensor:
    x = input.contiguous()
    y = x if inplace else torch.empty_like(x)
    n = x.numel()
    if n:
        selu_kernel[(triton.cdiv(n, 2048),)](x, y, n, BLOCK=2048)
    if not inplace:
        return y
    if y.data_ptr() != input.data_ptr():
        input.copy_(y)
    return input
