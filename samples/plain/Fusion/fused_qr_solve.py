import torch
import triton
import triton.language as tl


@triton.jit
def reflector_kernel(a_ptr, v_ptr, column, m, width, BLOCK: tl.constexpr):
    """The Householder vector of a column, from the diagonal on, scaled so that H = I - v v^T."""
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(
            a_ptr + i.to(tl.int64) * width + column, mask=(i >= column) & (i < m), other=0.0
        )
        total += x * x
    square = tl.sum(total, 0)
    head = tl.load(a_ptr + (column + tl.zeros((), tl.int64)) * width + column)
    norm = tl.where(head < 0, -tl.sqrt(square), tl.sqrt(square))
    half = square + norm * head  # v^T v / 2 of the unscaled vector
    scale = tl.where(half > 0, 1.0 / tl.sqrt(tl.where(half > 0, half, 1.0)), 0.0)
    for start in range(0, m, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(
            a_ptr + i.to(tl.int64) * width + column, mask=(i >= column) & (i < m), other=0.0
        )
        x = tl.where(i == column, head + norm, x)
        tl.store(v_ptr + i, x * scale, mask=i < m)


@triton.jit
def dot_kernel(
    a_ptr,
    v_ptr,
    part_ptr,
    column,
    m,
    width,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """v^T A of one chunk of rows."""
    c = column + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = column + tl.program_id(1) * CHUNK
    dot = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, ROWS):
        i = begin + start + tl.arange(0, ROWS)
        inside = (i[:, None] < m) & (c[None, :] < width)
        v = tl.load(v_ptr + i, mask=i < m, other=0.0)
        a = tl.load(a_ptr + i[:, None].to(tl.int64) * width + c[None, :], mask=inside, other=0.0)
        dot += tl.sum(v[:, None] * a, 0)
    tl.store(part_ptr + tl.program_id(1) * width + c, dot, mask=c < width)


@triton.jit
def reflect_kernel(
    a_ptr,
    v_ptr,
    part_ptr,
    column,
    m,
    width,
    CHUNK: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A -= v (v^T A) on one chunk of rows."""
    c = column + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    begin = column + tl.program_id(1) * CHUNK
    dot = tl.zeros((BLOCK,), tl.float32)
    for chunk in range(tl.num_programs(1)):
        dot += tl.load(part_ptr + chunk * width + c, mask=c < width, other=0.0)
    for start in range(0, CHUNK, ROWS):
        i = begin + start + tl.arange(0, ROWS)
        inside = (i[:, None] < m) & (c[None, :] < width)
        places = a_ptr + i[:, None].to(tl.int64) * width + c[None, :]
        v = tl.load(v_ptr + i, mask=i < m, other=0.0)
        a = tl.load(places, mask=inside, other=0.0)
        tl.store(places, a - v[:, None] * dot[None, :], mask=inside)


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


def fused_qr_solve(A, b):
    m, n = A.shape
    both = torch.cat((A, b), 1)  # R and Q^T b side by side
    width = both.shape[1]
    v = torch.zeros((m,), device=A.device, dtype=torch.float32)
    chunk = max(64, min(1024, triton.next_power_of_2(m)))
    part = torch.empty((triton.cdiv(m, chunk), width), device=A.device, dtype=torch.float32)
    for column in range(n):
        reflector_kernel[(1,)](both, v, column, m, width, BLOCK=1024)
        grid = (triton.cdiv(width - column, 32), triton.cdiv(m - column, chunk))
        dot_kernel[grid](both, v, part, column, m, width, CHUNK=chunk, ROWS=64, BLOCK=32)
        reflect_kernel[grid](both, v, part, column, m, width, CHUNK=chunk, ROWS=64, BLOCK=32)
    x = both[:n, n:].contiguous()
    substitute(both, x, width, 1, upper=True)
    return x
