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
def product_kernel(
    a_ptr,
    x_ptr,
    part_ptr,
    n,
    scale,
    p,
    P: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """The sum of |scale (A x)_i|^p over a block of rows."""
    row = tl.program_id(0) * BLOCK_R + tl.arange(0, BLOCK_R)
    total = tl.zeros((BLOCK_R, BLOCK_C), tl.float32)
    for start in range(0, n, BLOCK_C):
        c = start + tl.arange(0, BLOCK_C)
        a = tl.load(
            a_ptr + row[:, None].to(tl.int64) * n + c[None, :],
            mask=(row[:, None] < n) & (c[None, :] < n),
            other=0.0,
        )
        x = tl.load(x_ptr + c, mask=c < n, other=0.0)
        total += a.to(tl.float32) * x.to(tl.float32)[None, :]
    y = scale * tl.sum(total, 1)
    tl.store(part_ptr + tl.program_id(0), tl.sum(tl.where(row < n, power(y, p, P), 0.0), 0))


@triton.jit
def root_kernel(part_ptr, y_ptr, count, p, P: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, count, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + at, mask=at < count, other=0.0)
    tl.store(y_ptr, root(tl.sum(total, 0), p, P).to(y_ptr.dtype.element_ty))


def symmetric_matrix_vector_norm(A, x, alpha, beta, p=2.0):
    a, v = A.contiguous(), x.contiguous()
    n = a.shape[0]
    count = triton.cdiv(n, 8)
    parts = torch.empty(count, device=a.device, dtype=torch.float32)
    y = torch.empty((), device=a.device, dtype=a.dtype)
    P = {1: 1, 2: 2}.get(p, 0)
    product_kernel[(count,)](
        a, v, parts, n, (1.0 + beta) * alpha, float(p), P=P, BLOCK_R=8, BLOCK_C=256
    )
    root_kernel[(1,)](parts, y, count, float(p), P=P, BLOCK=1024)
    return y
