import torch
import triton
import triton.language as tl


@triton.jit
def update_kernel(
    a_ptr,
    x_ptr,
    y_ptr,
    part_ptr,
    n,
    m,
    alpha,
    beta,
    a_row,
    a_column,
    x_step,
    y_step,
    BLOCK_N: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    """y = alpha a @ x + beta y for one block of rows, and its share of the dot product."""
    rows = (tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    total = tl.zeros((BLOCK_N, BLOCK_M), dtype=tl.float32)
    for start in range(0, m, BLOCK_M):
        columns = start + tl.arange(0, BLOCK_M)
        a = tl.load(
            a_ptr + rows[:, None] * a_row + columns[None, :] * a_column,
            mask=(rows[:, None] < n) & (columns[None, :] < m),
            other=0.0,
        )
        x = tl.load(x_ptr + columns * x_step, mask=columns < m, other=0.0)
        total += a.to(tl.float32) * x.to(tl.float32)[None, :]
    y = tl.load(y_ptr + rows * y_step, mask=rows < n, other=0.0)
    y = (alpha * tl.sum(total, 1) + beta * y.to(tl.float32)).to(y.dtype)
    tl.store(y_ptr + rows * y_step, y, mask=rows < n)
    x = tl.load(x_ptr + rows * x_step, mask=rows < n, other=0.0)
    tl.store(part_ptr + tl.program_id(0), tl.sum(x.to(tl.float32) * y.to(tl.float32), 0))


@triton.jit
def sum_kernel(part_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """The sum of all parts: one program."""
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n, BLOCK):
        index = start + tl.arange(0, BLOCK)
        total += tl.load(part_ptr + index, mask=index < n, other=0.0)
    tl.store(y_ptr, tl.sum(total, 0).to(y_ptr.dtype.element_ty))


def matrix_vector_dot(A, x, y, alpha: float, beta: float) -> torch.Tensor:
    n, m = A.shape
    programs = triton.cdiv(n, 8)
    parts = torch.empty(programs, device=A.device, dtype=torch.float32)
    result = torch.empty((), device=A.device, dtype=A.dtype)
    update_kernel[(programs,)](
        A,
        x,
        y,
        parts,
        n,
        m,
        float(alpha),
        float(beta),
        A.stride(0),
        A.stride(1),
        x.stride(0),
        y.stride(0),
        BLOCK_N=8,
        BLOCK_M=512,
    )
    sum_kernel[(1,)](parts, result, programs, BLOCK=1024)
    return result
