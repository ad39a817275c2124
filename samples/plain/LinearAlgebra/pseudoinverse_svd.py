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
def pseudoinverse_kernel(
    a_ptr,
    y_ptr,
    m,
    n,
    rcond,
    a_batch,
    a_row,
    a_column,
    y_row,
    y_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """One matrix with m >= n in registers: V S^-2 (A V)^T over singular values above the cutoff."""
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
    kept = values > rcond * tl.max(values, 0)
    inverse = tl.where(kept, 1.0 / tl.where(kept, values, 1.0), 0.0)
    y = tl.dot(v * inverse[None, :], tl.trans(a * inverse[None, :]), input_precision="ieee")
    c = tl.arange(0, BLOCK_N)
    tl.store(
        y_ptr + batch * m * n + c[:, None] * y_row + i[None, :] * y_column,
        y,
        mask=(c[:, None] < n) & (i[None, :] < m),
    )


def pseudoinverse_svd(A, full_matrices=True, rcond=1e-15, out=None):
    rows, columns = A.shape[-2:]
    y = torch.empty((*A.shape[:-2], columns, rows), device=A.device, dtype=A.dtype)
    a = A.reshape(-1, rows, columns)
    target = y.view(-1, columns, rows)
    if rows < columns:
        a, target = a.mT, target.mT
    m, n = a.shape[-2:]
    pseudoinverse_kernel[(a.shape[0],)](
        a,
        target,
        m,
        n,
        rcond,
        *a.stride(),
        target.stride(1),
        target.stride(2),
        BLOCK_M=max(16, triton.next_power_of_2(m)),
        BLOCK_N=max(16, triton.next_power_of_2(n)),
        num_warps=1,
    )
    return y if out is None else out.copy_(y)
