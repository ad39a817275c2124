import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, length, step, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of one chunk of one row."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK):
        places = chunk * CHUNK + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * step + places, mask=places < length, other=0.0).to(
            tl.float32
        )
    tl.store(y_ptr + row * tl.num_programs(1) + chunk, tl.sum(total, 0))


def sum_rows(x):
    """Row sums in float32, in as many steps as the length needs."""
    while x.shape[1] > 1:
        length = x.shape[1]
        chunk = min(triton.next_power_of_2(length), 8192)
        chunks = triton.cdiv(length, chunk)
        y = torch.empty((x.shape[0], chunks), device=x.device, dtype=torch.float32)
        sum_kernel[(x.shape[0], chunks)](x, y, length, length, CHUNK=chunk, BLOCK=min(chunk, 1024))
        x = y
    return x[:, 0]


@triton.jit
def cross_entropy_kernel(
    z_ptr,
    t_ptr,
    w_ptr,
    loss_ptr,
    share_ptr,
    classes,
    inner,
    ignored,
    smoothing,
    HAS_W: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Weighted loss of one place and its weight; classes lie `inner` apart."""
    place = tl.program_id(0).to(tl.int64)
    base = place // inner * classes * inner + place % inner
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, classes, BLOCK):
        c = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + base + c * inner, mask=c < classes, other=-float("inf"))
        top = tl.maximum(top, z.to(tl.float32))
    highest = tl.max(top, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    spread = tl.zeros((BLOCK,), tl.float32)
    weights = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, classes, BLOCK):
        c = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + base + c * inner, mask=c < classes, other=0.0).to(tl.float32) - highest
        total += tl.where(c < classes, tl.exp(z), 0.0)
        if HAS_W:
            w = tl.load(w_ptr + c, mask=c < classes, other=0.0).to(tl.float32)
        else:
            w = tl.where(c < classes, 1.0, 0.0)
        spread += w * z
        weights += w
    logarithm = tl.log(tl.sum(total, 0))
    target = tl.load(t_ptr + place)
    kept = target != ignored
    safe = tl.where(kept, target, 0)
    z = tl.load(z_ptr + base + safe * inner).to(tl.float32) - highest
    w = tl.load(w_ptr + safe).to(tl.float32) if HAS_W else 1.0
    loss = (1.0 - smoothing) * w * (logarithm - z)
    loss += smoothing / classes * (logarithm * tl.sum(weights, 0) - tl.sum(spread, 0))
    tl.store(loss_ptr + place, tl.where(kept, loss, 0.0))
    tl.store(share_ptr + place, tl.where(kept, w, 0.0))


@triton.jit
def ratio_kernel(a_ptr, b_ptr, y_ptr, MEAN: tl.constexpr):
    y = tl.load(a_ptr)
    if MEAN:
        y /= tl.load(b_ptr)
    tl.store(y_ptr, y)


def cross_entropy(z, target, weight, ignore_index, reduction, smoothing):
    classes, inner = z.shape[1], z[0, 0].numel()
    target = target.contiguous()
    loss = torch.empty(target.shape, device=z.device, dtype=torch.float32)
    share = torch.empty_like(loss)
    w = z if weight is None else weight.contiguous()
    cross_entropy_kernel[(target.numel(),)](
        z,
        target,
        w,
        loss,
        share,
        classes,
        inner,
        ignore_index,
        float(smoothing),
        HAS_W=weight is not None,
        BLOCK=min(triton.next_power_of_2(classes), 1024),
    )
    if reduction == "none":
        return loss
    y = torch.empty((), device=z.device, dtype=torch.float32)
    ratio_kernel[(1,)](
        sum_rows(loss.reshape(1, -1)).contiguous(),
        sum_rows(share.reshape(1, -1)).contiguous(),
        y,
        MEAN=reduction == "mean",
    )
    return y


@triton.jit
def softmax_layer_norm_kernel(z_ptr, y_ptr, length, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    inside = c < length
    z = tl.load(z_ptr + row * length + c, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(z - tl.max(z, 0))
    share = e / tl.sum(e, 0)
    gap = tl.where(inside, share - tl.sum(share, 0) / length, 0.0)
    y = gap / tl.sqrt(tl.sum(gap * gap, 0) / length + eps)
    tl.store(y_ptr + row * length + c, y, mask=inside)


def fused_cross_entropy_softmax_layernorm(
    logits,
    targets,
    normalized_shape,
    weight=None,
    ignore_index=-100,
    reduction="mean",
    label_smoothing=0.0,
    eps=1e-05,
    *,
    out=None,
):
    z = logits.contiguous()
    y = torch.empty_like(z)
    block = triton.next_power_of_2(z.shape[1])
    softmax_layer_norm_kernel[(z.shape[0],)](z, y, z.shape[1], eps, BLOCK=block, num_warps=8)
    loss = cross_entropy(z, targets, weight, ignore_index, reduction, label_smoothing)
    return loss, y if out is None else out.copy_(y)
