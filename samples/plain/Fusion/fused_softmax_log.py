import torch
import triton
import triton.language as tl


@triton.jit
def softmax_log_kernel(x_ptr, y_ptr, length, inner, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """exp(log x - log of the sum) is x over the sum; elements of a line lie `inner` apart."""
    line = tl.program_id(0).to(tl.int64)
    base = line // inner * length * inner + line % inner
    total = tl.zeros((BLOCK,), WIDE)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + offsets * inner, mask=offsets < length, other=0.0)
        total += x.to(WIDE)
    whole = tl.sum(total, 0)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + offsets * inner, mask=offsets < length, other=0.0)
        y = x.to(WIDE) / whole
        tl.store(
            y_ptr + base + offsets * inner, y.to(y_ptr.dtype.element_ty), mask=offsets < length
        )


def fused_softmax_log(input, dim=-1, dtype=None):
    x = input.contiguous()
    y = torch.empty_like(x, dtype=dtype or x.dtype)
    dim = dim % x.dim()
    inner = 1
    for size in x.shape[dim + 1 :]:
        inner *= size
    length = x.shape[dim]
    softmax_log_kernel[(x.numel() // length,)](
        x,
        y,
        length,
        inner,
        WIDE=tl.float64 if y.dtype == torch.float64 else tl.float32,
        BLOCK=min(triton.next_power_of_2(length), 1024),
    )
    return y
