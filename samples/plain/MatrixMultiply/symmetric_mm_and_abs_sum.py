import torch
import triton
import triton.language as tl


@triton.jit
def tile_sum_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    part_ptr,
    M,
    N,
    K,
    alpha,
    beta,
    a_row,
    a_column,
    b_row,
    b_column,
    c_row,
    c_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """sum |alpha a @ b + beta c| over one tile."""
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
    c = tl.load(
        c_ptr + rows[:, None] * c_row + columns[None, :] * c_column,
        mask=(rows[:, None] < M) & (columns[None, :] < N),
        other=0.0,
    )
    tile = tl.abs(alpha * total + beta * c)  # zero outside, where a, b and c are
    part = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(part_ptr + part, tl.sum(tl.sum(tile, 1), 0))


@triton.jit
def sum_kernel(part_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """The sum of all parts: one program."""
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        index = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + index, mask=index < n, other=0.0)
    tl.store(y_ptr, tl.sum(total, 0).to(y_ptr.dtype.element_ty))


def symmetric_mm_and_abs_sum(A, C, alpha: float, beta: float) -> torch.Tensor:
    n, m = A.shape
    tiles = triton.cdiv(n, 64)
    parts = torch.empty(tiles * tiles, device=A.device, dtype=torch.float32)
    result = torch.empty((), device=A.device, dtype=A.dtype)
    tile_sum_kernel[(tiles, tiles)](
        A,
        A,
        C,
        parts,
        n,
        n,
        m,
        float(alpha),
        float(beta),
        A.stride(0),
        A.stride(1),
        A.stride(1),
        A.stride(0),
        C.stride(0),
        C.stride(1),
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    sum_kernel[(1,)](parts, result, tiles * tiles, BLOCK=1024)
    return result
