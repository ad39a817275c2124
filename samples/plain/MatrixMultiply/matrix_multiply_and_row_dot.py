import torch
import triton
import triton.language as tl


@triton.jit
def two_rows_kernel(
    a_ptr,
    b_ptr,
    part_ptr,
    M,
    P,
    SHARE,
    a_row,
    a_column,
    b_row,
    b_column,
    BLOCK_M: tl.constexpr,
    BLOCK_P: tl.constexpr,
):
    """Both rows' sums over one share of the inner dimension, for one block of columns."""
    columns = tl.program_id(0) * BLOCK_P + tl.arange(0, BLOCK_P)
    first = tl.zeros((BLOCK_P,), dtype=tl.float32)
    second = tl.zeros((BLOCK_P,), dtype=tl.float32)
    begin = tl.program_id(1) * SHARE
    for start in range(begin, begin + SHARE, BLOCK_M):
        inner = (start + tl.arange(0, BLOCK_M)).to(tl.int64)
        b = tl.load(
            b_ptr + inner[:, None] * b_row + columns[None, :] * b_column,
            mask=(inner[:, None] < M) & (columns[None, :] < P),
            other=0.0,
        ).to(tl.float32)
        a = tl.load(a_ptr + inner * a_column, mask=inner < M, other=0.0).to(tl.float32)
        first += tl.sum(a[:, None] * b, 0)
        a = tl.load(a_ptr + a_row + inner * a_column, mask=inner < M, other=0.0).to(tl.float32)
        second += tl.sum(a[:, None] * b, 0)
    part_ptr += tl.program_id(1) * 2 * P
    tl.store(part_ptr + columns, first, mask=columns < P)
    tl.store(part_ptr + P + columns, second, mask=columns < P)


@triton.jit
def dot_kernel(
    part_ptr, c_ptr, y_ptr, P, SHARES, alpha, beta, c_row, c_column, BLOCK: tl.constexpr
):
    """Add the shares, finish the rows, multiply and add: one program."""
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, P, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < P
        first = tl.zeros((BLOCK,), dtype=tl.float32)
        second = tl.zeros((BLOCK,), dtype=tl.float32)
        for share in range(SHARES):
            part = part_ptr + share * 2 * P + columns
            first += tl.load(part, mask=inside, other=0.0)
            second += tl.load(part + P, mask=inside, other=0.0)
        c = c_ptr + columns * c_column
        first = alpha * first + beta * tl.load(c, mask=inside, other=0.0).to(tl.float32)
        second = alpha * second + beta * tl.load(c + c_row, mask=inside, other=0.0).to(tl.float32)
        total += first * second
    tl.store(y_ptr, tl.sum(total, 0).to(y_ptr.dtype.element_ty))


def matrix_multiply_and_row_dot(A, B, alpha: float, beta: float, C) -> torch.Tensor:
    M, P = B.shape
    share = 512
    shares = triton.cdiv(M, share)
    parts = torch.empty((shares, 2, P), device=A.device, dtype=torch.float32)
    y = torch.empty((), device=A.device, dtype=A.dtype)
    two_rows_kernel[(triton.cdiv(P, 128), shares)](
        A,
        B,
        parts,
        M,
        P,
        share,
        A.stride(0),
        A.stride(1),
        B.stride(0),
        B.stride(1),
        BLOCK_M=32,
        BLOCK_P=128,
    )
    dot_kernel[(1,)](
        parts, C, y, P, shares, float(alpha), float(beta), C.stride(0), C.stride(1), BLOCK=1024
    )
    return y
