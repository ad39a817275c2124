import torch
import triton
import triton.language as tl


@triton.jit
def nll_kernel(
    x_ptr,
    t_ptr,
    w_ptr,
    y_ptr,
    places,
    C,
    inner,
    ignore_index,
    WEIGHTED: tl.constexpr,
    NONE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Each place's loss, or the sums of a block's losses and weights."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < places
    target = tl.load(t_ptr + place, mask=inside, other=0)
    counts = inside & (target != ignore_index)
    label = tl.where(counts, target, 0)
    at = ((place // inner) * C + label) * inner + place % inner
    chosen = tl.load(x_ptr + at, mask=counts, other=0.0).to(tl.float32)
    weight = tl.where(counts, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(w_ptr + label, mask=counts, other=0.0).to(tl.float32)
    if NONE:
        tl.store(y_ptr + place, (-weight * chosen).to(y_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(y_ptr + 2 * tl.program_id(0), tl.sum(-weight * chosen, 0))
        tl.store(y_ptr + 2 * tl.program_id(0) + 1, tl.sum(weight, 0))


@triton.jit
def total_kernel(parts_ptr, y_ptr, count, MEAN: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    weight = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(parts_ptr + 2 * offsets, mask=offsets < count, other=0.0)
        weight += tl.load(parts_ptr + 2 * offsets + 1, mask=offsets < count, other=0.0)
    result = tl.sum(total, 0)
    if MEAN:
        result /= tl.sum(weight, 0)
    tl.store(y_ptr, result.to(y_ptr.dtype.element_ty))


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    x, t = input.contiguous(), target.contiguous()
    C, places, none = x.shape[1], t.numel(), reduction == "none"
    inner = t[0].numel()
    weighted = weight is not None
    w = weight.contiguous() if weighted else x
    count = triton.cdiv(places, 1024)
    if none:
        parts = torch.empty(t.shape, device=x.device, dtype=x.dtype)
    else:
        parts = torch.empty((count, 2), device=x.device, dtype=torch.float32)
    nll_kernel[(count,)](
        x,
        t,
        w,
        parts,
        places,
        C,
        inner,
        ignore_index,
        WEIGHTED=weighted,
        NONE=none,
        BLOCK=1024,
    )
    if none:
        return parts
    y = torch.empty((), device=x.device, dtype=x.dtype)
    total_kernel[(1,)](parts, y, count, MEAN=reduction == "mean", BLOCK=1024)
    return y
