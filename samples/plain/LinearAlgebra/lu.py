import torch
import triton
import triton.language as tl


@triton.jit
def lu_kernel(
    a_ptr,
    p_ptr,
    l_ptr,
    u_ptr,
    m,
    n,
    k,
    a_batch,
    a_row,
    a_column,
    PIVOT: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Elimination of one matrix in registers. Rows stay where they are and keep their multipliers
    in place of zeros; they move when they are written."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_M)
    c = tl.arange(0, BLOCK_N)
    inside = (i[:, None] < m) & (c[None, :] < n)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + c[None, :] * a_column, mask=inside, other=0.0
    )
    free = i < m
    place = tl.full((BLOCK_M,), 0, dtype=tl.int32)
    for j in range(k):
        column = tl.sum(tl.where(c[None, :] == j, a, 0.0), 1)
        if PIVOT:
            chosen = i == tl.argmax(tl.where(free, tl.abs(column), -1.0), 0)
        else:
            chosen = i == j
        pivot = tl.sum(tl.where(chosen, column, 0.0), 0)
        row = tl.sum(tl.where(chosen[:, None], a, 0.0), 0)
        free = free & (i != tl.sum(tl.where(chosen, i, 0), 0))
        factor = tl.where(free, column / pivot, 0.0)
        a -= factor[:, None] * tl.where(c > j, row, 0.0)[None, :]
        a = tl.where((c[None, :] == j) & free[:, None], factor[:, None], a)
        place = tl.where(chosen, j, place)
    # Rows that were never a pivot (m > n) follow in their order.
    left = tl.cumsum(free.to(tl.int32), 0)
    place = tl.where(free, k + left - 1, place)
    lower = tl.where(c[None, :] < place[:, None], a, 0.0)
    lower = tl.where(c[None, :] == place[:, None], 1.0, lower)
    tl.store(
        l_ptr + batch * m * k + place[:, None] * k + c[None, :],
        lower,
        mask=(i[:, None] < m) & (c[None, :] < k),
    )
    upper = tl.where(c[None, :] >= place[:, None], a, 0.0)
    tl.store(
        u_ptr + batch * k * n + place[:, None] * n + c[None, :],
        upper,
        mask=inside & (place[:, None] < k),
    )
    if PIVOT:
        r = tl.arange(0, BLOCK_M)
        one = tl.where(r[None, :] == place[:, None], 1.0, 0.0)
        tl.store(
            p_ptr + batch * m * m + i[:, None] * m + r[None, :],
            one,
            mask=(i[:, None] < m) & (r[None, :] < m),
        )


def lu(A: torch.Tensor, pivot: bool = True, out=None):
    m, n = A.shape[-2:]
    k, leading = min(m, n), A.shape[:-2]
    a = A.reshape(-1, m, n)
    p_shape = (*leading, m, m) if pivot else (0,)
    P = torch.empty(p_shape, device=A.device, dtype=A.dtype)
    L = torch.empty((*leading, m, k), device=A.device, dtype=A.dtype)
    U = torch.empty((*leading, k, n), device=A.device, dtype=A.dtype)
    lu_kernel[(a.shape[0],)](
        a,
        P,
        L,
        U,
        m,
        n,
        k,
        *a.stride(),
        PIVOT=pivot,
        BLOCK_M=max(4, triton.next_power_of_2(m)),
        BLOCK_N=max(4, triton.next_power_of_2(n)),
        num_warps=4 if max(m, n) > 32 else 1,
    )
    if out is None:
        return P, L, U
    return tuple(target.copy_(factor) for target, factor in zip(out, (P, L, U)))
