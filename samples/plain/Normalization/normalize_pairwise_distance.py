import torch
import triton
import triton.language as tl


@triton.jit
def power(x, p, P: tl.constexpr):
    """|x|^p; P is p where that is 1 or 2, else 0."""
    size = tl.abs(x)
    if P == 1:
        return size
    if P == 2:
        return size * size
    return tl.exp2(p * tl.log2(size))


@triton.jit
def root(x, p, P: tl.constexpr):
    if P == 1:
        return x
    if P == 2:
        return tl.sqrt(x)
    return tl.exp2(tl.log2(x) / p)


@triton.jit
def distance_kernel(
    x_ptr,
    y_ptr,
    d_ptr,
    rows,
    columns,
    p,
    eps,
    P: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    total = tl.zeros((BLOCK_R,), tl.float32)
    for start in range(0, columns, BLOCK_C):
        c = start + tl.arange(0, BLOCK_C)
        inside = (row[:, None] < rows) & (c[None, :] < columns)
        place = row[:, None].to(tl.int64) * columns + c[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + place, mask=inside, other=0.0).to(tl.float32)
        total += tl.sum(tl.where(inside, power(x - y + eps, p, P), 0.0), 1)
    tl.store(d_ptr + row, root(total, p, P), mask=row < rows)


@triton.jit
def normalize_kernel(
    d_ptr,
    y_ptr,
    length,
    inner,
    p,
    eps,
    P: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    c = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    base = tl.program_id(0).to(tl.int64) * length * inner
    total = tl.zeros((BLOCK_I,), tl.float32)
    for start in range(0, length, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        inside = (row[:, None] < length) & (c[None, :] < inner)
        d = tl.load(d_ptr + base + row[:, None] * inner + c[None, :], mask=inside, other=0.0)
        total += tl.sum(tl.where(inside, power(d, p, P), 0.0), 0)
    norm = tl.maximum(root(total, p, P), eps)
    for start in range(0, length, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        inside = (row[:, None] < length) & (c[None, :] < inner)
        place = base + row[:, None] * inner + c[None, :]
        d = tl.load(d_ptr + place, mask=inside, other=0.0)
        tl.store(y_ptr + place, (d / norm[None, :]).to(y_ptr.dtype.element_ty), mask=inside)


def normalize_pairwise_distance(
    x1, x2, p_distance=2.0, eps_distance=1e-06, keepdim=False, p_norm=2, dim_norm=1, eps_norm=1e-12
):
    x, y = x1.contiguous(), x2.contiguous()
    columns = x.shape[-1]
    rows = x.numel() // columns
    shape = [*x.shape[:-1], 1] if keepdim else list(x.shape[:-1])
    d = torch.empty(shape, device=x.device, dtype=torch.float32)
    block_c = min(1024, triton.next_power_of_2(columns))
    block_r = max(1, 2048 // block_c)
    exact = {1: 1, 2: 2}
    distance_kernel[(triton.cdiv(rows, block_r),)](
        x,
        y,
        d,
        rows,
        columns,
        float(p_distance),
        float(eps_distance),
        P=exact.get(p_distance, 0),
        BLOCK_R=block_r,
        BLOCK_C=block_c,
    )
    dim = dim_norm % d.dim()
    length, inner = shape[dim], 1
    for size in shape[dim + 1 :]:
        inner *= size
    result = torch.empty(shape, device=x.device, dtype=x.dtype)
    block_i = min(64, triton.next_power_of_2(inner))
    normalize_kernel[(rows // (length * inner), triton.cdiv(inner, block_i))](
        d,
        result,
        length,
        inner,
        float(p_norm),
        float(eps_norm),
        P=exact.get(p_norm, 0),
        BLOCK_L=1024 // block_i,
        BLOCK_I=block_i,
    )
    return result
