import torch
import triton
import triton.language as tl


@triton.jit
def pivot_kernel(a_ptr, p_ptr, column, n, BLOCK: tl.constexpr):
    """The row of the largest element of a column, from the diagonal on."""
    best = tl.full((BLOCK,), -1.0, tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        size = tl.abs(tl.load(a_ptr + i.to(tl.int64) * n + column, mask=i < n, other=0.0))
        size = tl.where((i >= column) & (i < n), size, -1.0)
        place = tl.where(size > best, i, place)
        best = tl.maximum(best, size)
    largest = tl.max(best, 0)
    tl.store(p_ptr, tl.min(tl.where(best == largest, place, 2147483647), 0))


@triton.jit
def swap_kernel(a_ptr, x_ptr, p_ptr, column, n, columns, BLOCK: tl.constexpr):
    """Exchanges two rows of the matrix and of the right-hand sides."""
    other = tl.load(p_ptr).to(tl.int64)
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = (column + tl.zeros((), tl.int64)) * n
    a, b = tl.load(a_ptr + base + i, mask=i < n), tl.load(a_ptr + other * n + i, mask=i < n)
    tl.store(a_ptr + base + i, b, mask=i < n)
    tl.store(a_ptr + other * n + i, a, mask=i < n)
    a = tl.load(x_ptr + column * columns + i, mask=i < columns)
    b = tl.load(x_ptr + other * columns + i, mask=i < columns)
    tl.store(x_ptr + column * columns + i, b, mask=i < columns)
    tl.store(x_ptr + other * columns + i, a, mask=i < columns)


@triton.jit
def eliminate_kernel(a_ptr, column, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """A -= l u below and right of the pivot; u is read, l kept for the next kernel."""
    rows = column + 1 + tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = column + 1 + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    pivot = tl.load(a_ptr + (column + tl.zeros((), tl.int64)) * (n + 1))
    left = tl.load(a_ptr + rows.to(tl.int64) * n + column, mask=rows < n, other=0.0) / pivot
    upper = tl.load(a_ptr + (column + tl.zeros((), tl.int64)) * n + c, mask=c < n, other=0.0)
    places = rows[:, None].to(tl.int64) * n + c[None, :]
    inside = (rows[:, None] < n) & (c[None, :] < n)
    a = tl.load(a_ptr + places, mask=inside, other=0.0)
    tl.store(a_ptr + places, a - left[:, None] * upper[None, :], mask=inside)


@triton.jit
def divide_kernel(a_ptr, column, n, BLOCK: tl.constexpr):
    rows = column + 1 + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pivot = tl.load(a_ptr + (column + tl.zeros((), tl.int64)) * (n + 1))
    places = rows.to(tl.int64) * n + column
    left = tl.load(a_ptr + places, mask=rows < n, other=0.0) / pivot
    tl.store(a_ptr + places, left, mask=rows < n)


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


def fused_lu_solve(A, b):
    n = A.shape[0]
    a = A.clone(memory_format=torch.contiguous_format)
    x = b.reshape(n, -1).clone(memory_format=torch.contiguous_format)
    columns = x.shape[1]
    p = torch.empty((1,), device=a.device, dtype=torch.int32)
    for column in range(n):
        pivot_kernel[(1,)](a, p, column, n, BLOCK=1024)
        swap_kernel[(triton.cdiv(max(n, columns), 1024),)](a, x, p, column, n, columns, BLOCK=1024)
        left = n - column - 1
        if left:
            grid = (triton.cdiv(left, 32), triton.cdiv(left, 64))
            eliminate_kernel[grid](a, column, n, ROWS=32, BLOCK=64)
            divide_kernel[(triton.cdiv(left, 256),)](a, column, n, BLOCK=256)
    substitute(a, x, n, 1, upper=False, unit=True)
    substitute(a, x, n, 1, upper=True)
    return x.reshape(b.shape)
