import torch
import triton
import triton.language as tl


@triton.jit
def tril_mm_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    N,
    P,
    scale,
    a_row,
    a_column,
    b_row,
    b_column,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = scale tril(a) @ b: a row block ends its sum at its last diagonal element."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    end = tl.minimum(N, (tl.program_id(0) + 1) * BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, end, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None] * a_row + inner[None, :] * a_column,
            mask=(rows[:, None] < N) & (inner[None, :] <= rows[:, None]),
            other=0.0,
        )
        b = tl.load(
            b_ptr + inner[:, None] * b_row + columns[None, :] * b_column,
            mask=(inner[:, None] < N) & (columns[None, :] < P),
            other=0.0,
        )
        total = tl.dot(a, b, total, input_precision="ieee")
    inside = (rows[:, None] < N) & (columns[None, :] < P)
    y = (scale * total).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + rows[:, None] * P + columns[None, :], y, mask=inside)


def blocks(dtype: torch.dtype) -> dict:
    """Tile sizes: tensor cores take large ones, float32 keeps its sums in registers."""
    if dtype == torch.float32:
        return dict(BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, num_warps=4)
    return dict(BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, num_warps=8)


def tril_mm_and_scale(A: torch.Tensor, B: torch.Tensor, alpha: float, beta: float) -> torch.Tensor:
    N, P = B.shape
    y = torch.empty((N, P), device=A.device, dtype=A.dtype)
    tiles = blocks(A.dtype)
    grid = (triton.cdiv(N, tiles["BLOCK_M"]), triton.cdiv(P, tiles["BLOCK_N"]))
    tril_mm_kernel[grid](
        A,
        B,
        y,
        N,
        P,
        float(alpha * beta),
        A.stride(0),
        A.stride(1),
        B.stride(0),
        B.stride(1),
        **tiles,
    )
    return y
