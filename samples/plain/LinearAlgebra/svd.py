import torch
import triton
import triton.language as tl


@triton.jit
def orthogonalize(a, v, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """One-sided Jacobi: rotates pairs of columns of a, and of v alike, until a's are orthogonal.

    In each of BLOCK_N - 1 rounds all columns are paired, as in a tournament.
    """
    j = tl.arange(0, BLOCK_N)
    one = tl.full((BLOCK_N,), 1.0, dtype=tl.float32)
    worst = 1.0
    sweep = 0
    while (sweep < 15) & (worst > 1e-6):
        worst = worst * 0.0
        for r in range(BLOCK_N - 1):
            partner = (r + BLOCK_N - 1 - j) % (BLOCK_N - 1)
            partner = tl.where(partner == j, BLOCK_N - 1, partner)
            lone = (r * (BLOCK_N // 2)) % (BLOCK_N - 1)
            partner = tl.where(j == BLOCK_N - 1, lone, partner)
            b = tl.gather(a, tl.broadcast_to(partner[None, :], (BLOCK_M, BLOCK_N)), 1)
            w = tl.gather(v, tl.broadcast_to(partner[None, :], (BLOCK_N, BLOCK_N)), 1)
            own = tl.sum(a * a, 0)
            other = tl.sum(b * b, 0)
            inner = tl.sum(a * b, 0)
            size = tl.sqrt(own * other)
            turns = tl.abs(inner) > 1e-8 * size
            zeta = (other - own) / (2.0 * tl.where(turns, inner, 1.0))
            positive = (zeta > 0) | ((zeta == 0) & (j < partner))
            t = 1.0 / (tl.abs(zeta) + tl.sqrt(1.0 + zeta * zeta))
            t = tl.where(turns, tl.where(positive, t, -t), 0.0)
            cosine = tl.div_rn(one, tl.sqrt_rn(1.0 + t * t))
            a = a * cosine[None, :] - b * (cosine * t)[None, :]
            v = v * cosine[None, :] - w * (cosine * t)[None, :]
            angle = tl.where(turns, tl.abs(inner) / tl.where(turns, size, 1.0), 0.0)
            worst = tl.maximum(worst, tl.max(angle, 0))
        sweep += 1
    # Roundings of the rotations add up in the length of the columns: take them out.
    length = tl.sqrt_rn(tl.sum(v * v, 0))
    return a / length[None, :], v / length[None, :]


@triton.jit
def svd_kernel(
    a_ptr,
    u_ptr,
    s_ptr,
    v_ptr,
    m,
    n,
    u_columns,
    a_batch,
    a_row,
    a_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One matrix with m >= n in registers: A V = U S; columns are written in the order of S."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK_M)
    j = tl.arange(0, BLOCK_N)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + j[None, :] * a_column,
        mask=(i[:, None] < m) & (j[None, :] < n),
        other=0.0,
    )
    eye = tl.arange(0, BLOCK_N)[:, None] == j[None, :]
    a, v = orthogonalize(a, tl.where(eye, 1.0, 0.0), BLOCK_M, BLOCK_N)
    values = tl.sqrt_rn(tl.sum(a * a, 0))
    values = tl.where(j < n, values, -1.0)
    ahead = (values[:, None] > values[None, :]) | (
        (values[:, None] == values[None, :]) & (j[:, None] < j[None, :])
    )
    rank = tl.sum(ahead.to(tl.int32), 0)
    tl.store(s_ptr + batch * n + rank, values, mask=j < n)
    tl.store(
        u_ptr + batch * m * u_columns + i[:, None] * u_columns + rank[None, :],
        a / tl.where(j < n, values, 1.0)[None, :],
        mask=(i[:, None] < m) & (j[None, :] < n),
    )
    c = tl.arange(0, BLOCK_N)
    tl.store(
        v_ptr + batch * n * n + c[:, None] * n + rank[None, :],
        v,
        mask=(c[:, None] < n) & (j[None, :] < n),
    )


@triton.jit
def complete_kernel(u_ptr, m, n, BLOCK: tl.constexpr):
    """Columns n to m of U: the unit vector that U covers least, made orthogonal twice."""
    u_ptr += tl.program_id(0).to(tl.int64) * m * m
    i = tl.arange(0, BLOCK)
    place = i[:, None] * m + i[None, :]
    u = tl.load(u_ptr + place, mask=(i[:, None] < m) & (i[None, :] < n), other=0.0)
    for column in range(n, m):
        covered = tl.where(i < m, tl.sum(u * u, 1), 2.0)
        w = tl.where(i == tl.argmin(covered, 0), 1.0, 0.0)
        for _ in range(2):
            inner = tl.sum(u * w[:, None], 0)
            w -= tl.sum(u * inner[None, :], 1)
            w = w / tl.sqrt_rn(tl.sum(w * w, 0))
        u = tl.where(i[None, :] == column, w[:, None], u)
    tl.store(u_ptr + place, u, mask=(i[:, None] < m) & (i[None, :] >= n) & (i[None, :] < m))


def svd(A, full_matrices=True):
    wide = A.shape[-2] < A.shape[-1]
    tall = A.mT if wide else A
    m, n = tall.shape[-2:]
    leading, a = A.shape[:-2], tall.reshape(-1, m, n)
    columns = m if full_matrices else n
    left = torch.empty((*leading, m, columns), device=A.device, dtype=A.dtype)
    S = torch.empty((*leading, n), device=A.device, dtype=A.dtype)
    right = torch.empty((*leading, n, n), device=A.device, dtype=A.dtype)
    svd_kernel[(a.shape[0],)](
        a,
        left,
        S,
        right,
        m,
        n,
        columns,
        *a.stride(),
        BLOCK_M=max(4, triton.next_power_of_2(m)),
        BLOCK_N=max(4, triton.next_power_of_2(n)),
        num_warps=1,
    )
    if columns > n:
        complete_kernel[(a.shape[0],)](
            left, m, n, BLOCK=max(4, triton.next_power_of_2(m)), num_warps=1
        )
    return (right, S, left.mT) if wide else (left, S, right.mT)
