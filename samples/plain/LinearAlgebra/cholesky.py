import torch
import triton
import triton.language as tl


@triton.jit
def factor_diagonal(l_ptr, start, n, BLOCK: tl.constexpr):
    """Factor the block at (start, start) of one matrix in registers, column by column."""
    l_ptr += tl.program_id(0).to(tl.int64) * n * n
    i = tl.arange(0, BLOCK)
    row, column = start + i[:, None], start + i[None, :]
    inside = (row < n) & (column < n)
    eye = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    a = tl.load(l_ptr + row * n + column, mask=inside, other=0.0)
    a = tl.where(inside, a, eye.to(a.dtype))
    for j in range(BLOCK):
        pivot = tl.sum(tl.sum(tl.where((i[:, None] == j) & (i[None, :] == j), a, 0.0), 1), 0)
        root = tl.sqrt(pivot)
        left = tl.sum(tl.where(i[None, :] == j, a, 0.0), 1)
        left = tl.where(i > j, left / root, 0.0)
        a -= left[:, None] * left[None, :]
        finished = tl.where(i == j, root, left)
        a = tl.where(i[None, :] == j, finished[:, None], a)
    a = tl.where(i[:, None] >= i[None, :], a, 0.0)
    tl.store(l_ptr + row * n + column, a, mask=inside)


@triton.jit
def solve_panel(l_ptr, start, n, BLOCK: tl.constexpr):
    """Rows below the diagonal block: X L^T = A, column by column of the block."""
    l_ptr += tl.program_id(0).to(tl.int64) * n * n
    i = tl.arange(0, BLOCK)
    row = start + BLOCK + tl.program_id(1) * BLOCK + i
    panel = l_ptr + row[:, None] * n + start + i[None, :]
    inside = (row[:, None] < n) & (start + i[None, :] < n)
    a = tl.load(panel, mask=inside, other=0.0)
    for j in range(BLOCK):
        factor = tl.load(l_ptr + (start + i) * n + start + j, mask=i >= j, other=0.0)
        pivot = tl.sum(tl.where(i == j, factor, 0.0), 0)
        x = tl.sum(tl.where(i[None, :] == j, a, 0.0), 1) / pivot
        below = tl.where(i > j, factor, 0.0)
        a = tl.where(i[None, :] == j, x[:, None], a - x[:, None] * below[None, :])
    tl.store(panel, a, mask=inside)


@triton.jit
def update_trailing(l_ptr, start, n, BLOCK: tl.constexpr):
    """A -= X X^T on one block right of and below the panel."""
    l_ptr += tl.program_id(0).to(tl.int64) * n * n
    i = tl.arange(0, BLOCK)
    row = start + BLOCK + tl.program_id(1) * BLOCK + i
    column = start + BLOCK + tl.program_id(2) * BLOCK + i
    if tl.program_id(1) >= tl.program_id(2):
        x = tl.load(l_ptr + row[:, None] * n + start + i[None, :], mask=row[:, None] < n, other=0.0)
        y = tl.load(
            l_ptr + column[None, :] * n + start + i[:, None], mask=column[None, :] < n, other=0.0
        )
        inside = (row[:, None] < n) & (column[None, :] < n)
        target = l_ptr + row[:, None] * n + column[None, :]
        a = tl.load(target, mask=inside, other=0.0)
        tl.store(target, a - tl.dot(x, y, input_precision="ieee", out_dtype=a.dtype), mask=inside)


@triton.jit
def finish(l_ptr, y_ptr, n, UPPER: tl.constexpr, BLOCK: tl.constexpr):
    """Write the factor, or its transpose, with zeros in the other triangle."""
    base = tl.program_id(0).to(tl.int64) * n * n
    i = tl.arange(0, BLOCK)
    row = tl.program_id(1) * BLOCK + i[:, None]
    column = tl.program_id(2) * BLOCK + i[None, :]
    inside = (row < n) & (column < n)
    value = tl.load(l_ptr + base + row * n + column, mask=inside & (row >= column), other=0.0)
    place = column * n + row if UPPER else row * n + column
    tl.store(y_ptr + base + place, value, mask=inside)


def cholesky(A: torch.Tensor, upper: bool = False, out: torch.Tensor = None) -> torch.Tensor:
    n = A.shape[-1]
    work = A.reshape(-1, n, n).clone(memory_format=torch.contiguous_format)
    result = torch.empty_like(work)
    batch, block = work.shape[0], 32
    for start in range(0, n, block):
        below = triton.cdiv(n - start - block, block)
        factor_diagonal[(batch,)](work, start, n, BLOCK=block)
        if below > 0:
            solve_panel[(batch, below)](work, start, n, BLOCK=block)
            update_trailing[(batch, below, below)](work, start, n, BLOCK=block)
    blocks = triton.cdiv(n, block)
    finish[(batch, blocks, blocks)](work, result, n, UPPER=upper, BLOCK=block)
    result = result.reshape(A.shape)
    return result if out is None else out.copy_(result)
