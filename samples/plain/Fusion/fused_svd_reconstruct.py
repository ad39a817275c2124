import torch
import triton
import triton.language as tl


@triton.jit
def rotate_kernel(w_ptr, turn, n, players, m, length, BLOCK: tl.constexpr):
    """One-sided Jacobi: makes two rows of [A^T | V] orthogonal in their first m elements.

    A round-robin tournament pairs the rows: the last stands still, the others go round.
    """
    pair, circle = tl.program_id(0), players - 1
    p = tl.where(pair == 0, circle, (turn + pair) % circle)
    q = (turn + circle - pair) % circle
    if (p < n) & (q < n):
        first, second = w_ptr + p.to(tl.int64) * length, w_ptr + q.to(tl.int64) * length
        aa = tl.zeros((BLOCK,), tl.float32)
        ab = tl.zeros((BLOCK,), tl.float32)
        bb = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, m, BLOCK):
            i = start + tl.arange(0, BLOCK)
            a = tl.load(first + i, mask=i < m, other=0.0)
            b = tl.load(second + i, mask=i < m, other=0.0)
            aa += a * a
            ab += a * b
            bb += b * b
        alpha, gamma, beta = tl.sum(aa, 0), tl.sum(ab, 0), tl.sum(bb, 0)
        if tl.abs(gamma) > 1e-9 * tl.sqrt(alpha * beta):
            zeta = (beta - alpha) / (2.0 * gamma)
            size = 1.0 / (tl.abs(zeta) + tl.sqrt(1.0 + zeta * zeta))
            tangent = tl.where(zeta < 0, -size, size)
            cosine = 1.0 / tl.sqrt(1.0 + tangent * tangent)
            sine = cosine * tangent
            for start in range(0, length, BLOCK):
                i = start + tl.arange(0, BLOCK)
                a = tl.load(first + i, mask=i < length, other=0.0)
                b = tl.load(second + i, mask=i < length, other=0.0)
                tl.store(first + i, cosine * a - sine * b, mask=i < length)
                tl.store(second + i, sine * a + cosine * b, mask=i < length)


@triton.jit
def singular_kernel(w_ptr, s_ptr, m, length, BLOCK: tl.constexpr):
    """Singular values are the lengths of the rows, which become those of U^T."""
    row = w_ptr + tl.program_id(0).to(tl.int64) * length
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        a = tl.load(row + i, mask=i < m, other=0.0)
        total += a * a
    value = tl.sqrt(tl.sum(total, 0))
    tl.store(s_ptr + tl.program_id(0), value)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        a = tl.load(row + i, mask=i < m, other=0.0)
        tl.store(row + i, a / tl.where(value > 0, value, 1.0), mask=i < m)


@triton.jit
def rebuild_kernel(
    w_ptr,
    s_ptr,
    y_ptr,
    m,
    n,
    length,
    y_row,
    y_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """U diag(S) V^T; U^T and V^T lie side by side."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    y = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, n, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        u = tl.load(
            w_ptr + k[None, :].to(tl.int64) * length + rows[:, None],
            mask=(rows[:, None] < m) & (k[None, :] < n),
            other=0.0,
        )
        u *= tl.load(s_ptr + k, mask=k < n, other=0.0)[None, :]
        v = tl.load(
            w_ptr + k[:, None].to(tl.int64) * length + m + columns[None, :],
            mask=(k[:, None] < n) & (columns[None, :] < n),
            other=0.0,
        )
        y = tl.dot(u, v, y, input_precision="ieee")
    places = y_ptr + rows[:, None].to(tl.int64) * y_row + columns[None, :] * y_column
    tl.store(places, y, mask=(rows[:, None] < m) & (columns[None, :] < n))


def fused_svd_reconstruct(A):
    y = torch.empty(A.shape, device=A.device, dtype=A.dtype)
    a, target = (A, y) if A.shape[0] >= A.shape[1] else (A.mT, y.mT)
    m, n = a.shape
    w = torch.cat((a.mT, torch.eye(n, device=a.device, dtype=a.dtype)), 1).contiguous()
    players = n + n % 2
    block = min(triton.next_power_of_2(m + n), 1024)
    for _ in range(6 if n > 1 else 0):
        for turn in range(players - 1):
            rotate_kernel[(players // 2,)](w, turn, n, players, m, m + n, BLOCK=block)
    s = torch.empty((n,), device=a.device, dtype=a.dtype)
    singular_kernel[(n,)](w, s, m, m + n, BLOCK=block)
    rebuild_kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](
        w, s, y, m, n, m + n, target.stride(0), target.stride(1), BLOCK_M=32, BLOCK_N=32, BLOCK_K=32
    )
    return y
