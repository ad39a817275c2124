import torch
import triton
import triton.language as tl

WIDTH = 16  # columns of a panel
PANEL = 32768  # elements of a panel that one program holds in registers


@triton.jit
def exchange(top, source_ptr, target_ptr, inside, width, WIDTH: tl.constexpr):
    """The rows that come to the top; those that were there go where they must."""
    i = tl.arange(0, WIDTH)
    source = tl.load(source_ptr + i, mask=i < width, other=0)
    target = tl.load(target_ptr + i, mask=i < width, other=0)
    come = tl.load(top + source[:, None], mask=inside, other=0.0)
    go = tl.load(top + i[:, None], mask=inside, other=0.0)
    # All of them must be read before any is overwritten.
    tl.debug_barrier()
    tl.store(top + target[:, None], go, mask=inside & (target[:, None] >= width))
    return come


@triton.jit
def panel_kernel(
    a_ptr,
    source_ptr,
    target_ptr,
    start,
    n,
    width,
    BLOCK_M: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Factors the columns from start on, in registers, with partial pivoting. Rows stay where they
    are and move in the end: source says which row comes to each of the first places, target where
    the first rows go; no other row moves."""
    i = tl.arange(0, BLOCK_M)
    c = tl.arange(0, WIDTH)
    m = n - start
    inside = (i[:, None] < m) & (c[None, :] < width)
    top = a_ptr + (start + c).to(tl.int64)[None, :] * n + start
    a = tl.load(top + i[:, None], mask=inside, other=0.0)
    place = i
    for j in range(width):
        column = tl.sum(tl.where(c[None, :] == j, a, 0.0), 1)
        # NaN counts as 0, so that a row beyond the matrix is never chosen.
        size = tl.maximum(tl.abs(column), 0.0)
        chosen = i == tl.argmax(tl.where((place >= j) & (i < m), size, -1.0), 0)
        row = tl.sum(tl.where(chosen[:, None], a, 0.0), 0)
        pivot = tl.sum(tl.where(c == j, row, 0.0), 0)
        left = tl.sum(tl.where(chosen, place, 0), 0)
        place = tl.where(place == j, left, place)
        place = tl.where(chosen, j, place)
        below = place > j
        factor = column / pivot
        rest = below[:, None] & (c[None, :] > j)
        a = tl.where(rest, a - factor[:, None] * row[None, :], a)
        a = tl.where(below[:, None] & (c[None, :] == j), factor[:, None], a)
    tl.store(top + i[:, None], a, mask=inside)
    tl.store(source_ptr + place, i, mask=place < width)
    tl.store(target_ptr + i, place, mask=i < width)
    # What threads wrote must be seen by those that move rows.
    tl.debug_barrier()
    i = tl.arange(0, WIDTH)
    inside = (i[:, None] < width) & (c[None, :] < width)
    come = exchange(top, source_ptr, target_ptr, inside, width, WIDTH)
    tl.store(top + i[:, None], come, mask=inside)


@triton.jit
def exchange_kernel(
    a_ptr,
    source_ptr,
    target_ptr,
    start,
    n,
    columns,
    width,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Moves the rows right of a panel as the panel's, then solves with its unit lower triangle for
    the rows of U."""
    i = tl.arange(0, WIDTH)
    c = start + width + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (i[:, None] < width) & (c[None, :] < columns)
    top = a_ptr + c.to(tl.int64)[None, :] * n + start
    u = exchange(top, source_ptr, target_ptr, inside, width, WIDTH)
    panel = a_ptr + (start + tl.zeros((), tl.int64)) * n + start
    for j in range(width):
        factor = tl.load(panel + i, mask=i < width, other=0.0)
        panel += n
        row = tl.sum(tl.where(i[:, None] == j, u, 0.0), 0)
        u = tl.where(i[:, None] > j, u - factor[:, None] * row[None, :], u)
    tl.store(top + i[:, None], u, mask=inside)


@triton.jit
def update_kernel(
    a_ptr, start, n, columns, width, K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """A -= L U below and right of a panel."""
    rows = start + width + tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = (start + width + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    k = tl.arange(0, K)
    left = tl.load(
        a_ptr + (start + k).to(tl.int64)[None, :] * n + rows[:, None],
        mask=(rows[:, None] < n) & (k[None, :] < width),
        other=0.0,
    )
    upper = tl.load(
        a_ptr + c[None, :] * n + start + k[:, None],
        mask=(k[:, None] < width) & (c[None, :] < columns),
        other=0.0,
    )
    places = a_ptr + c[None, :] * n + rows[:, None]
    inside = (rows[:, None] < n) & (c[None, :] < columns)
    a = tl.load(places, mask=inside, other=0.0)
    tl.store(places, a - tl.dot(left, upper, input_precision="ieee"), mask=inside)


@triton.jit
def solve_block_kernel(a_ptr, x_ptr, start, n, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Solves an upper triangular block of ROWS unknowns for BLOCK right-hand sides, in place."""
    c = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    i = tl.arange(0, ROWS)
    rows = start + i
    inside = (rows[:, None] < n) & (c[None, :] < columns)
    places = x_ptr + c[None, :] * n + rows[:, None]
    x = tl.load(places, mask=inside, other=0.0)
    for j in range(ROWS):
        k = ROWS - 1 - j
        column = start + k + tl.zeros((), tl.int64)
        u = tl.load(a_ptr + column * n + rows, mask=(rows < n) & (column < n), other=0.0)
        value = tl.sum(tl.where(i[:, None] == k, x, 0.0), 0)
        value /= tl.where(column < n, tl.sum(tl.where(i == k, u, 0.0), 0), 1.0)
        x = tl.where(i[:, None] < k, x - u[:, None] * value[None, :], x)
        x = tl.where(i[:, None] == k, value[None, :], x)
    tl.store(places, x, mask=inside)


@triton.jit
def subtract_kernel(a_ptr, x_ptr, start, n, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Takes the unknowns of a block out of the rows above it."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    c = (tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    k = start + tl.arange(0, ROWS)
    u = tl.load(a_ptr + k.to(tl.int64)[None, :] * n + rows[:, None], mask=k[None, :] < n, other=0.0)
    known = tl.load(
        x_ptr + c[None, :] * n + k[:, None],
        mask=(k[:, None] < n) & (c[None, :] < columns),
        other=0.0,
    )
    places = x_ptr + c[None, :] * n + rows[:, None]
    inside = c[None, :] < columns
    x = tl.load(places, mask=inside, other=0.0)
    tl.store(places, x - tl.dot(u, known, input_precision="ieee"), mask=inside)


def eliminate(a):
    """Gaussian elimination of A in [A | b], a column per row of a, in place, panel by panel."""
    columns, n = a.shape
    source = torch.empty((WIDTH,), device=a.device, dtype=torch.int32)
    target = torch.empty_like(source)
    start = 0
    while start < n:
        block = max(16, triton.next_power_of_2(n - start))
        most = max(1, min(WIDTH, PANEL // block))
        width = min(most, n - start)
        panel_kernel[(1,)](
            a,
            source,
            target,
            start,
            n,
            width,
            BLOCK_M=block,
            WIDTH=most,
            num_warps=max(1, min(16, block // 32)),
        )
        below, right = n - start - width, columns - start - width
        exchange_kernel[(triton.cdiv(right, 32),)](
            a, source, target, start, n, columns, width, WIDTH=most, BLOCK=32
        )
        if below:
            grid = (triton.cdiv(below, 64), triton.cdiv(right, 64))
            update_kernel[grid](a, start, n, columns, width, K=max(16, most), ROWS=64, BLOCK=64)
        start += width


def substitute(a, x):
    """Solves with the upper triangle in a, block by block; x holds a right-hand side per row."""
    columns, n = x.shape
    side = triton.cdiv(columns, 32)
    for block in reversed(range(triton.cdiv(n, 32))):
        start = block * 32
        solve_block_kernel[(side,)](a, x, start, n, columns, ROWS=32, BLOCK=32)
        if block:
            subtract_kernel[(block, side)](a, x, start, n, columns, ROWS=32, BLOCK=32)


def fused_lu_solve(A, b):
    n = A.shape[0]
    # [A | b] column by column, for the panels' threads to hold whole rows. Elimination treats b as
    # any column, which is the forward substitution.
    a = torch.cat((A.mT, b.reshape(n, -1).mT), 0)
    eliminate(a)
    substitute(a, a[n:])
    return a[n:].mT.contiguous().reshape(b.shape)
