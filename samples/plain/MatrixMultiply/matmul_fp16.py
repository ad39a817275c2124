import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    a_batch,
    a_row,
    a_column,
    b_batch,
    b_row,
    b_column,
    c_batch,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(2).to(tl.int64)
    a_ptr += batch * a_batch
    b_ptr += batch * b_batch
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
    tl.store(
        c_ptr + batch * c_batch + rows[:, None] * N + columns[None, :],
        total.to(c_ptr.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


def matmul_fp16(input: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    a = input if input.dim() > 1 else input[None, :]
    b = other if other.dim() > 1 else other[:, None]
    leading = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    M, K, N = a.shape[-2], a.shape[-1], b.shape[-1]
    a = a.expand(*leading, M, K).reshape(-1, M, K)
    b = b.expand(*leading, K, N).reshape(-1, K, N)
    c = torch.empty((a.shape[0], M, N), device=a.device, dtype=a.dtype)
    block_m, block_n, block_k = 128, 128, 64
    grid = (triton.cdiv(M, block_m), triton.cdiv(N, block_n), a.shape[0])
    if c.numel():
        matmul_kernel[grid](
            a,
            b,
            c,
            M,
            N,
            K,
            a.stride(0),
            a.stride(1),
            a.stride(2),
            b.stride(0),
            b.stride(1),
            b.stride(2),
            c.stride(0),
            BLOCK_M=block_m,
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            num_warps=8,
        )
    shape = list(leading)
    shape += [M] if input.dim() > 1 else []
    shape += [N] if other.dim() > 1 else []
    return c.reshape(shape)
