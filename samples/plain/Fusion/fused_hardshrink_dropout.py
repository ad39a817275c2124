import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


@triton.jit
def hardshrink_dropout_kernel(x_ptr, y_ptr, n, p, seed, lambd, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1).to(tl.float32)
    if p > 0:
        x = tl.where(tl.rand(seed, offsets) < p, 0.0, x / (1.0 - p))
    y = tl.where(tl.abs(x) > lambd, x, 0.0)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_hardshrink_dropout(input, p=0.5, training=True, inplace=False, lambd=0.5):
    x = input.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    rate = p if training else 0.0
    hardshrink_dropout_kernel[(triton.cdiv(n, 1024),)](
        x, y, n, rate, fresh_seed(), lambd, BLOCK=1024
    )
    return y
