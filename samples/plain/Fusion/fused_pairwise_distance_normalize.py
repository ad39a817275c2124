import torch
import triton
import triton.language as tl


@triton.jit
def power(x, p: tl.constexpr):
    """|x| to the power p."""
    x = tl.abs(x)
    if p == 2.0:
        x = x * x
    elif p != 1.0:
        x = tl.where(x > 0, tl.exp(p * tl.log(tl.where(x > 0, x, 1.0))), 0.0)
    return x


@triton.jit
def normalize_kernel(
    x_ptr, y_ptr, M, K, p: tl.constexpr, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Rows over their norms, written transposed."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = (rows[:, None] < M) & (c[None, :] < K)
        x = tl.load(x_ptr + rows[:, None] * K + c[None, :], mask=inside, other=0.0)
        total += power(x.to(tl.float32), p)
    norm = tl.maximum(
        power(tl.sum(total, 1), 1.0 / p) if p != 2.0 else tl.sqrt(tl.sum(total, 1)), eps
    )
    for start in range(0, K, BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = (rows[:, None] < M) & (c[None, :] < K)
        x = tl.load(x_ptr + rows[:, None] * K + c[None, :], mask=inside, other=0.0)
        tl.store(
            y_ptr + c[None, :] * M + rows[:, None], x.to(tl.float32) / norm[:, None], mask=inside
        )


@triton.jit
def distance_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    K,
    p: tl.constexpr,
    least,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(K):
        a = tl.load(a_ptr + k * M + rows, mask=rows < M, other=0.0)
        b = tl.load(b_ptr + k * N + columns, mask=columns < N, other=0.0)
        total += power(a[:, None] - b[None, :], p)
    y = tl.sqrt(total) if p == 2.0 else power(total, 1.0 / p)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    y = tl.maximum(y, least).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], y, mask=inside)


def normalized(x, p, eps):
    x = x.contiguous()
    M, K = x.shape
    y = torch.empty((K, M), device=x.device, dtype=torch.float32)
    normalize_kernel[(triton.cdiv(M, 16),)](
        x, y, M, K, p, eps, ROWS=16, BLOCK=min(triton.next_power_of_2(K), 128)
    )
    return y


def fused_pairwise_distance_normalize(
    x1, x2, p_norm=2.0, eps_norm=1e-12, eps_distance=1e-06, keepdim=False
):
    p = float(p_norm)
    a, b = normalized(x1, p, eps_norm), normalized(x2, p, eps_norm)
    (K, M), N = a.shape, b.shape[1]
    y = torch.empty((M, N), device=x1.device, dtype=x1.dtype)
    distance_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        a, b, y, M, N, K, p, eps_distance, BLOCK_M=64, BLOCK_N=64
    )
    return y.unsqueeze(-1) if keepdim else y
