import torch
import triton
import triton.language as tl


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
def solve_and_add_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    x_ptr,
    n,
    k,
    alpha,
    a_batch,
    a_row,
    a_column,
    b_batch,
    b_row,
    b_column,
    y_batch,
    y_row,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """Some columns of one triangular system, alpha y added to each."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_N)
    c = tl.program_id(1) * BLOCK_K + tl.arange(0, BLOCK_K)
    inside = (i[:, None] < n) & (c[None, :] < k)
    b = b_ptr + batch * b_batch + i[:, None] * b_row + c[None, :] * b_column
    x = tl.load(b, mask=inside, other=0.0)
    x = back_substitution(x, a_ptr + batch * a_batch, n, a_row, a_column, BLOCK_N, BLOCK_K)
    y = tl.load(y_ptr + batch * y_batch + i * y_row, mask=i < n, other=0.0)
    x += alpha * y[:, None]
    tl.store(x_ptr + batch * n * k + i[:, None] * k + c[None, :], x, mask=inside)


def solve_and_add_scaled_vector(A, b, y, alpha: float) -> torch.Tensor:
    n, k = b.shape[-2:]
    a, right, added = A.reshape(-1, n, n), b.reshape(-1, n, k), y.reshape(-1, n)
    x = torch.empty(right.shape, device=b.device, dtype=b.dtype)
    block_k = min(16, triton.next_power_of_2(k))
    solve_and_add_kernel[(a.shape[0], triton.cdiv(k, block_k))](
        a,
        right,
        added,
        x,
        n,
        k,
        float(alpha),
        *a.stride(),
        *right.stride(),
        *added.stride(),
        BLOCK_N=triton.next_power_of_2(n),
        BLOCK_K=block_k,
        num_warps=2,
    )
    return x.reshape(b.shape)
