import torch
import triton
import triton.language as tl


@triton.jit
def qr_kernel(
    a_ptr,
    q_ptr,
    r_ptr,
    m,
    n,
    steps,
    q_columns,
    r_rows,
    a_batch,
    a_row,
    a_column,
    WANTS_Q: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Householder's reflections of one matrix in registers, gathered in Q from the right."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_M)
    r = tl.arange(0, BLOCK_M)
    c = tl.arange(0, BLOCK_N)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + c[None, :] * a_column,
        mask=(i[:, None] < m) & (c[None, :] < n),
        other=0.0,
    )
    q = tl.where(i[:, None] == r[None, :], 1.0, 0.0)
    for j in range(steps):
        column = tl.sum(tl.where(c[None, :] == j, a, 0.0), 1)
        v = tl.where(i >= j, column, 0.0)
        norm = tl.sqrt(tl.sum(v * v, 0))
        head = tl.sum(tl.where(i == j, v, 0.0), 0)
        new = tl.where(head > 0, -norm, norm)
        v = tl.where(i == j, head - new, v)
        square = tl.sum(v * v, 0)
        scale = tl.where(square > 0, 2.0 / square, 0.0)
        product = tl.sum(v[:, None] * a, 0)
        a -= (scale * v)[:, None] * product[None, :]
        finished = tl.where(i == j, new, tl.where(i > j, 0.0, column))
        a = tl.where(c[None, :] == j, finished[:, None], a)
        if WANTS_Q:
            across = tl.sum(q * v[None, :], 1)
            q -= across[:, None] * (scale * v)[None, :]
    tl.store(
        r_ptr + batch * r_rows * n + i[:, None] * n + c[None, :],
        tl.where(i[:, None] <= c[None, :], a, 0.0),
        mask=(i[:, None] < r_rows) & (c[None, :] < n),
    )
    if WANTS_Q:
        tl.store(
            q_ptr + batch * m * q_columns + i[:, None] * q_columns + r[None, :],
            q,
            mask=(i[:, None] < m) & (r[None, :] < q_columns),
        )


def qr(A, mode="reduced", out=None):
    m, n = A.shape[-2:]
    k, leading = min(m, n), A.shape[:-2]
    rows = m if mode == "complete" else k
    a = A.reshape(-1, m, n)
    q_shape = (0,) if mode == "r" else (*leading, m, rows)
    Q = torch.empty(q_shape, device=A.device, dtype=A.dtype)
    R = torch.empty((*leading, rows, n), device=A.device, dtype=A.dtype)
    qr_kernel[(a.shape[0],)](
        a,
        Q,
        R,
        m,
        n,
        min(m - 1, n),
        rows,
        rows,
        *a.stride(),
        WANTS_Q=mode != "r",
        BLOCK_M=max(4, triton.next_power_of_2(m)),
        BLOCK_N=max(4, triton.next_power_of_2(n)),
        num_warps=4 if max(m, n) > 32 else 1,
    )
    if out is None:
        return Q, R
    return tuple(target.copy_(factor) for target, factor in zip(out, (Q, R)))
