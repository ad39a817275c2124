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
def solve_block_kernel(
    l_ptr,
    x_ptr,
    start,
    n,
    columns,
    row_step,
    column_step,
    UPPER: tl.constexpr,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Solves a triangular block of ROWS unknowns for BLOCK right-hand sides, in place."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, ROWS)
    rows = (start + i).to(tl.int64)
    inside = (rows[:, None] < n) & (c[None, :] < columns)
    x = tl.load(x_ptr + rows[:, None] * columns + c[None, :], mask=inside, other=0.0)
    for j in range(ROWS):
        k = ROWS - 1 - j if UPPER else j
        column = start + k
        a = tl.load(
            l_ptr + rows * row_step + column * column_step,
            mask=(rows < n) & (column < n),
            other=0.0,
        )
        value = tl.sum(tl.where(i[:, None] == k, x, 0.0), 0)
        if not UNIT:
            value /= tl.where(column < n, tl.sum(tl.where(i == k, a, 0.0), 0), 1.0)
        left = i < k if UPPER else i > k
        x = tl.where(left[:, None], x - a[:, None] * value[None, :], x)
        x = tl.where(i[:, None] == k, value[None, :], x)
    tl.store(x_ptr + rows[:, None] * columns + c[None, :], x, mask=inside)


@triton.jit
def subtract_kernel(
    l_ptr,
    x_ptr,
    start,
    first,
    last,
    n,
    columns,
    row_step,
    column_step,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Takes the unknowns of a block out of the rows from first to last."""
    rows = (first + tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = (start + tl.arange(0, ROWS)).to(tl.int64)
    a = tl.load(
        l_ptr + rows[:, None] * row_step + k[None, :] * column_step,
        mask=(rows[:, None] < last) & (k[None, :] < n),
        other=0.0,
    )
    known = tl.load(
        x_ptr + k[:, None] * columns + c[None, :],
        mask=(k[:, None] < n) & (c[None, :] < columns),
        other=0.0,
    )
    places = x_ptr + rows[:, None] * columns + c[None, :]
    inside = (rows[:, None] < last) & (c[None, :] < columns)
    x = tl.load(places, mask=inside, other=0.0)
    tl.store(places, x - tl.dot(a, known, input_precision="ieee"), mask=inside)


def substitute(a, x, row_step, column_step, upper, unit=False):
    """Solves a triangular system in place, block by block."""
    n, columns = x.shape
    side, blocks = triton.cdiv(columns, 32), triton.cdiv(n, 32)
    for block in range(blocks):
        start = (blocks - 1 - block if upper else block) * 32
        solve_block_kernel[(side,)](
            a,
            x,
            start,
            n,
            columns,
            row_step,
            column_step,
            UPPER=upper,
            UNIT=unit,
            ROWS=32,
            BLOCK=32,
        )
        first, last = (0, start) if upper else (start + 32, n)
        if last > first:
            subtract_kernel[(triton.cdiv(last - first, 32), side)](
                a, x, start, first, last, n, columns, row_step, column_step, ROWS=32, BLOCK=32
            )


def fused_cholesky_solve(A, b):
    n = A.shape[0]
    work = A.clone(memory_format=torch.contiguous_format)
    block = 32
    for start in range(0, n, block):
        below = triton.cdiv(n - start - block, block)
        factor_diagonal[(1,)](work, start, n, BLOCK=block)
        if below > 0:
            solve_panel[(1, below)](work, start, n, BLOCK=block)
            update_trailing[(1, below, below)](work, start, n, BLOCK=block)
    x = b.clone(memory_format=torch.contiguous_format)
    substitute(work, x, n, 1, upper=False)
    substitute(work, x, 1, n, upper=True)  # L^T: rows and columns change places
    return x
