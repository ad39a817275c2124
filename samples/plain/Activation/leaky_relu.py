import torch
import triton
import triton.language as tl


@triton.jit
def leaky_relu_kernel(x_ptr, y_ptr, slope, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    y = tl.where(x > 0, x, x * slope)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    x = input.contiguous()
    y = x if inplace else torch.empty_like(x)
    n = x.numel()
    if n:
        leaky_relu_kernel[(triton.cdiv(n, 2048),)](x, y, float(negative_slope), n, BLOCK=2048)
    if not inplace:
        return y
    if y.data_ptr() != input.data_ptr():
        input.copy_(y)
    return input
