import torch
import triton
import triton.language as tl


@triton.jit
def log_softmax_kernel(z_ptr, y_ptr, length, inner, BLOCK: tl.constexpr):
    """One line along a dimension; lines lie `inner` apart."""
    line = tl.program_id(0).to(tl.int64)
    base = line // inner * length * inner + line % inner
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + base + offsets * inner, mask=offsets < length, other=-float("inf"))
        z = z.to(tl.float32)
        higher = tl.maximum(top, z)
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - safe) + tl.exp(z - safe)
        top = higher
    highest = tl.max(top, 0)
    total = tl.sum(total * tl.exp(top - highest), 0)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + base + offsets * inner, mask=offsets < length, other=0.0)
        y = z.to(tl.float32) - highest - tl.log(total)
        tl.store(
            y_ptr + base + offsets * inner, y.to(y_ptr.dtype.element_ty), mask=offsets < length
        )


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


def fused_cross_entropy_log_softmax(
    input, target, dim=1, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
):
    x = input.contiguous()
    logs = torch.empty_like(x)
    dim = dim % x.dim()
    inner = 1
    for size in x.shape[dim + 1 :]:
        inner *= size
    length = x.shape[dim]
    log_softmax_kernel[(x.numel() // length,)](
        x, logs, length, inner, BLOCK=min(triton.next_power_of_2(length), 1024)
    )
    return cross_entropy(logs, target, weight, ignore_index, reduction, label_smoothing)
