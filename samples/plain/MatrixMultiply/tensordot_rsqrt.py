import torch
import triton
import triton.language as tl


@triton.jit
def product_rsqrt_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    K,
    a_row,
    a_column,
    b_row,
    b_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None] * a_row + inner[None, :] * a_column,
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None] * b_row + columns[None, :] * b_column,
            mask=(inner[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], tl.rsqrt(total), mask=inside)


def tensordot_rsqrt(a: torch.Tensor, b: torch.Tensor, dims) -> torch.Tensor:
    if isinstance(dims, int):
        summed_a, summed_b = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        summed_a, summed_b = [d % a.dim() for d in dims[0]], [d % b.dim() for d in dims[1]]
    kept_a = [d for d in range(a.dim()) if d not in summed_a]
    kept_b = [d for d in range(b.dim()) if d not in summed_b]
    K = 1
    for d in summed_a:
        K *= a.shape[d]
    left = a.permute(kept_a + summed_a).reshape(-1, K)
    right = b.permute(summed_b + kept_b).reshape(K, -1)
    M, N = left.shape[0], right.shape[1]
    y = torch.empty((M, N), device=a.device, dtype=a.dtype)
    product_rsqrt_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        left,
        right,
        y,
        M,
        N,
        K,
        left.stride(0),
        left.stride(1),
        right.stride(0),
        right.stride(1),
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    return y.reshape([a.shape[d] for d in kept_a] + [b.shape[d] for d in kept_b])
