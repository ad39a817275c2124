import torch
import triton
import triton.language as tl


@triton.jit
def forward_substitution(
    x, t_ptr, n, t_row, t_column, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Lower triangle T at t_ptr: x with T x = b for b in x, unknown by unknown from the first."""
    i = tl.arange(0, BLOCK_N)
    for j in range(n):
        column = tl.load(t_ptr + i * t_row + j * t_column, mask=(i >= j) & (i < n), other=0.0)
        pivot = tl.sum(tl.where(i == j, column, 0.0), 0)
        found = tl.sum(tl.where(i[:, None] == j, x, 0.0), 0) / pivot
        rest = x - tl.where(i > j, column, 0.0)[:, None] * found[None, :]
        x = tl.where(i[:, None] == j, found[None, :], rest)
    return x


@triton.jit
def back_substitution(x, t_ptr, n, t_row, t_column, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Upper triangle T at t_ptr: x with T x = b for b in x, unknown by unknown from the last."""
    i = tl.arange(0, BLOCK_N)
    for step in range(n):
        j = n - 1 - step
        column = tl.load(t_ptr + i * t_row + j * t_column, mask=i <= j, other=0.0)
        pivot = tl.sum(tl.where(i == j, column, 0.0), 0)
        found = tl.sum(tl.where(i[:, None] == j, x, 0.0), 0) / pivot
        rest = x - tl.where(i < j, column, 0.0)[:, None] * found[None, :]
        x = tl.where(i[:, None] == j, found[None, :], rest)
    return x


@triton.jit
def cholesky_solve_kernel(
    b_ptr,
    l_ptr,
    x_ptr,
    n,
    k,
    b_batch,
    b_row,
    b_column,
    l_batch,
    l_row,
    l_column,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Some columns of one system: L y = b, then L^T x = y."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_N)
    c = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    inside = (i[:, None] < n) & (c[None, :] < k)
    b = b_ptr + batch * b_batch + i[:, None] * b_row + c[None, :] * b_column
    x = tl.load(b, mask=inside, other=0.0)
    l_ptr += batch * l_batch
    x = forward_substitution(x, l_ptr, n, l_row, l_column, BLOCK_N, BLOCK_K)
    x = back_substitution(x, l_ptr, n, l_column, l_row, BLOCK_N, BLOCK_K)
    tl.store(x_ptr + batch * n * k + i[:, None] * k + c[None, :], x, mask=inside)


def cholesky_solve(B, L, upper=False, out=None):
    n, k = B.shape[-2:]
    b, factor = B.reshape(-1, n, k), L.reshape(-1, n, n)
    if upper:
        factor = factor.mT
    x = torch.empty(b.shape, device=B.device, dtype=B.dtype)
    block_k = min(16, triton.next_power_of_2(k))
    cholesky_solve_kernel[(b.shape[0], triton.cdiv(k, block_k))](
        b,
        factor,
        x,
        n,
        k,
        *b.stride(),
        *factor.stride(),
        BLOCK_N=triton.next_power_of_2(n),
        BLOCK_K=block_k,
        num_warps=2,
    )
    x = x.reshape(B.shape)
    return x if out is None else out.copy_(x)
