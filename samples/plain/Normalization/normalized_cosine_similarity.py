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
def cosine_kernel(
    x_ptr,
    y_ptr,
    out_ptr,
    length,
    inner,
    eps_similarity,
    p,
    eps_norm,
    P: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """A block of vectors: first their norms, then the cosine of the normalized ones."""
    c = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    base = tl.program_id(0).to(tl.int64) * length * inner
    size_x = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    size_y = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    for start in range(0, length, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        inside = (row[:, None] < length) & (c[None, :] < inner)
        place = base + row[:, None] * inner + c[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + place, mask=inside, other=0.0).to(tl.float32)
        size_x += tl.where(inside, power(x, p, P), 0.0)
        size_y += tl.where(inside, power(y, p, P), 0.0)
    norm_x = tl.maximum(root(tl.sum(size_x, 0), p, P), eps_norm)
    norm_y = tl.maximum(root(tl.sum(size_y, 0), p, P), eps_norm)
    dot = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    square_x = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    square_y = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    for start in range(0, length, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        inside = (row[:, None] < length) & (c[None, :] < inner)
        place = base + row[:, None] * inner + c[None, :]
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32) / norm_x[None, :]
        y = tl.load(y_ptr + place, mask=inside, other=0.0).to(tl.float32) / norm_y[None, :]
        dot += x * y
        square_x += x * x
        square_y += y * y
    below = tl.maximum(tl.sqrt(tl.sum(square_x, 0)), eps_similarity)
    below *= tl.maximum(tl.sqrt(tl.sum(square_y, 0)), eps_similarity)
    cosine = tl.sum(dot, 0) / below
    place = tl.program_id(0).to(tl.int64) * inner + c
    tl.store(out_ptr + place, cosine.to(out_ptr.dtype.element_ty), mask=c < inner)


def normalized_cosine_similarity(x1, x2, dim=1, eps_similarity=1e-08, p_norm=2, eps_norm=1e-12):
    x, y = x1.contiguous(), x2.contiguous()
    dim %= x.dim()
    length, inner = x.shape[dim], 1
    for size in x.shape[dim + 1 :]:
        inner *= size
    outer = x.numel() // (length * inner)
    shape = [size for d, size in enumerate(x.shape) if d != dim]
    out = torch.empty(shape, device=x.device, dtype=x.dtype)
    block_i = min(32, triton.next_power_of_2(inner))
    cosine_kernel[(outer, triton.cdiv(inner, block_i))](
        x,
        y,
        out,
        length,
        inner,
        float(eps_similarity),
        float(p_norm),
        float(eps_norm),
        P={1: 1, 2: 2}.get(p_norm, 0),
        BLOCK_L=1024 // block_i,
        BLOCK_I=block_i,
    )
    return out
