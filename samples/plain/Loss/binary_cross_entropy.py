import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(
    x_ptr, t_ptr, w_ptr, y_ptr, n, WEIGHTED: tl.constexpr, NONE: tl.constexpr, BLOCK: tl.constexpr
):
    """Each element's loss, or the sum of a block of them."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.5).to(tl.float32)
    t = tl.load(t_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    one = tl.maximum(tl.log(x), -100.0)
    other = tl.maximum(tl.log(1.0 - x), -100.0)
    value = -(t * one + (1.0 - t) * other)
    if WEIGHTED:
        value *= tl.load(w_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    if NONE:
        tl.store(y_ptr + offsets, value.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(y_ptr + tl.program_id(0), tl.sum(tl.where(inside, value, 0.0), 0))


@triton.jit
def total_kernel(parts_ptr, y_ptr, count, factor, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, count, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(parts_ptr + offsets, mask=offsets < count, other=0.0)
    tl.store(y_ptr, (tl.sum(total, 0) * factor).to(y_ptr.dtype.element_ty))


def binary_cross_entropy(input, target, weight=None, reduction="mean"):
    x, t = input.contiguous(), target.contiguous()
    weighted = weight is not None
    w = weight.expand(x.shape).contiguous() if weighted else x
    n, none = x.numel(), reduction == "none"
    if none:
        y = torch.empty_like(x)
        loss_kernel[(triton.cdiv(n, 2048),)](
            x, t, w, y, n, WEIGHTED=weighted, NONE=True, BLOCK=2048
        )
        return y
    count = triton.cdiv(n, 2048)
    parts = torch.empty(count, device=x.device, dtype=torch.float32)
    loss_kernel[(count,)](x, t, w, parts, n, WEIGHTED=weighted, NONE=False, BLOCK=2048)
    y = torch.empty((), device=x.device, dtype=x.dtype)
    total_kernel[(1,)](parts, y, count, 1.0 / n if reduction == "mean" else 1.0, BLOCK=2048)
    return y
