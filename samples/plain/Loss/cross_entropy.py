import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    x_ptr,
    t_ptr,
    w_ptr,
    loss_ptr,
    weight_ptr,
    C,
    inner,
    ignore_index,
    WEIGHTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One place (row, position): the running maximum and sum over its classes."""
    place = tl.program_id(0).to(tl.int64)
    row, position = place // inner, place % inner
    x_ptr += row * C * inner + position
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, C, BLOCK):
        c = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + c * inner, mask=c < C, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(top, x)
        safe = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp(top - safe) + tl.exp(x - safe)
        top = higher
    highest = tl.max(top, 0)
    normalizer = tl.log(tl.sum(total * tl.exp(top - highest), 0))
    target = tl.load(t_ptr + place)
    counts = target != ignore_index
    label = tl.where(counts, target, 0)
    chosen = tl.load(x_ptr + label * inner).to(tl.float32)
    weight = tl.where(counts, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(w_ptr + label).to(tl.float32)
    loss = weight * (highest - chosen + normalizer)
    tl.store(loss_ptr + place, loss.to(loss_ptr.dtype.element_ty))
    tl.store(weight_ptr + place, weight)


@triton.jit
def few_classes_kernel(
    x_ptr,
    t_ptr,
    w_ptr,
    loss_ptr,
    weight_ptr,
    places,
    C,
    inner,
    ignore_index,
    WEIGHTED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Many places at once, neighbours in memory, a loop over their few classes."""
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < places
    base = x_ptr + (place // inner) * C * inner + place % inner
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    for c in range(0, C):
        top = tl.maximum(top, tl.load(base + c * inner, mask=inside, other=0.0).to(tl.float32))
    total = tl.zeros((BLOCK,), tl.float32)
    for c in range(0, C):
        total += tl.exp(tl.load(base + c * inner, mask=inside, other=0.0).to(tl.float32) - top)
    target = tl.load(t_ptr + place, mask=inside, other=0)
    counts = inside & (target != ignore_index)
    label = tl.where(counts, target, 0)
    chosen = tl.load(base + label * inner, mask=inside, other=0.0).to(tl.float32)
    weight = tl.where(counts, 1.0, 0.0)
    if WEIGHTED:
        weight *= tl.load(w_ptr + label, mask=inside, other=0.0).to(tl.float32)
    loss = weight * (top - chosen + tl.log(total))
    tl.store(loss_ptr + place, loss.to(loss_ptr.dtype.element_ty), mask=inside)
    tl.store(weight_ptr + place, weight, mask=inside)


@triton.jit
def partial_kernel(loss_ptr, weight_ptr, parts_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < count
    total = tl.sum(tl.load(loss_ptr + offsets, mask=inside, other=0.0), 0)
    weight = tl.sum(tl.load(weight_ptr + offsets, mask=inside, other=0.0), 0)
    tl.store(parts_ptr + 2 * tl.program_id(0), total)
    tl.store(parts_ptr + 2 * tl.program_id(0) + 1, weight)


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


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean"):
    x, t = input.contiguous(), target.contiguous()
    C, places = x.shape[1], t.numel()
    inner = t[0].numel()
    weighted = weight is not None
    w = weight.contiguous() if weighted else x
    dtype = x.dtype if reduction == "none" else torch.float32
    losses = torch.empty(t.shape, device=x.device, dtype=dtype)
    weights = torch.empty(t.shape, device=x.device, dtype=torch.float32)
    if inner > 1:
        few_classes_kernel[(triton.cdiv(places, 256),)](
            x, t, w, losses, weights, places, C, inner, ignore_index, WEIGHTED=weighted, BLOCK=256
        )
    else:
        block = min(4096, triton.next_power_of_2(C))
        cross_entropy_kernel[(places,)](
            x, t, w, losses, weights, C, inner, ignore_index, WEIGHTED=weighted, BLOCK=block
        )
    if reduction == "none":
        return losses
    count = triton.cdiv(places, 2048)
    parts = torch.empty((count, 2), device=x.device, dtype=torch.float32)
    partial_kernel[(count,)](losses, weights, parts, places, BLOCK=2048)
    y = torch.empty((), device=x.device, dtype=x.dtype)
    total_kernel[(1,)](parts, y, count, MEAN=reduction == "mean", BLOCK=1024)
    return y
