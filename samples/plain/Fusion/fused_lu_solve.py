import torch
import triton
import triton.language as tl

WIDTH = 16  # columns of a panel
PANEL = 32768  # elements of a panel that one program holds in registers


@triton.jit
def panel_kernel(
    a_ptr,
    source_ptr,
    target_ptr,
    start,
    n,
    stride,
    width,
    BLOCK_M: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """Factors the columns from start on, in registers, with partial pivoting. Rows stay where they
    are and move when they are written: source says which row comes to each of the first places,
    target where the first rows go."""
    i = tl.arange(0, BLOCK_M)
    c = tl.arange(0, WIDTH)
    m = n - start
    inside = (i[:, None] < m) & (c[None, :] < width)
    columns = a_ptr + start + c[None, :]
    a = tl.load(columns + (start + i).to(tl.int64)[:, None] * stride, mask=inside, other=0.0)
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
    # All of the panel must be read before any of its rows moves.
    tl.debug_barrier()
    tl.store(columns + (start + place).to(tl.int64)[:, None] * stride, a, mask=inside)
    tl.store(source_ptr + place, i, mask=place < width)
    tl.store(target_ptr + i, place, mask=i < width)


@triton.jit
def exchange_kernel(
    a_ptr,
    source_ptr,
    target_ptr,
    start,
    stride,
    width,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Moves the rows right of a panel as the panel's, then solves with its unit lower triangle for
    the rows of U."""
    i = tl.arange(0, WIDTH)
    c = start + width + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(source_ptr + i, mask=i < width, other=0)
    target = tl.load(target_ptr + i, mask=i < width, other=0)
    rows = (start + i).to(tl.int64)
    inside = (i[:, None] < width) & (c[None, :] < stride)
    top = a_ptr + rows[:, None] * stride + c[None, :]
    come = a_ptr + (start + source).to(tl.int64)[:, None] * stride + c[None, :]
    go = a_ptr + (start + target).to(tl.int64)[:, None] * stride + c[None, :]
    old = tl.load(top, mask=inside, other=0.0)
    u = tl.load(come, mask=inside, other=0.0)
    # All rows must be read before any is overwritten.
    tl.debug_barrier()
    tl.store(go, old, mask=inside & (target[:, None] >= width))
    for j in range(width):
        factor = tl.load(a_ptr + rows * stride + start + j, mask=i < width, other=0.0)
        row = tl.sum(tl.where(i[:, None] == j, u, 0.0), 0)
        u = tl.where(i[:, None] > j, u - factor[:, None] * row[None, :], u)
    tl.store(top, u, mask=inside)


@triton.jit
def update_kernel(
    a_ptr, start, n, stride, width, K: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """A -= L U below and right of a panel."""
    rows = (start + width + tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    c = start + width + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, K)
    left = tl.load(
        a_ptr + rows[:, None] * stride + start + k[None, :],
        mask=(rows[:, None] < n) & (k[None, :] < width),
        other=0.0,
    )
    upper = tl.load(
        a_ptr + (start + k).to(tl.int64)[:, None] * stride + c[None, :],
        mask=(k[:, None] < width) & (c[None, :] < stride),
        other=0.0,
    )
    places = a_ptr + rows[:, None] * stride + c[None, :]
    inside = (rows[:, None] < n) & (c[None, :] < stride)
    a = tl.load(places, mask=inside, other=0.0)
    tl.store(places, a - tl.dot(left, upper, input_precision="ieee"), mask=inside)


@triton.jit
def solve_block_kernel(
    a_ptr, x_ptr, start, n, stride, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Solves an upper triangular block of ROWS unknowns for BLOCK right-hand sides, in place."""
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.arange(0, ROWS)
    rows = (start + i).to(tl.int64)
    inside = (rows[:, None] < n) & (c[None, :] < columns)
    x = tl.load(x_ptr + rows[:, None] * columns + c[None, :], mask=inside, other=0.0)
    for j in range(ROWS):
        k = ROWS - 1 - j
        column = start + k
        u = tl.load(a_ptr + rows * stride + column, mask=(rows < n) & (column < n), other=0.0)
        value = tl.sum(tl.where(i[:, None] == k, x, 0.0), 0)
        value /= tl.where(column < n, tl.sum(tl.where(i == k, u, 0.0), 0), 1.0)
        x = tl.where(i[:, None] < k, x - u[:, None] * value[None, :], x)
        x = tl.where(i[:, None] == k, value[None, :], x)
    tl.store(x_ptr + rows[:, None] * columns + c[None, :], x, mask=inside)


@triton.jit
def subtract_kernel(
    a_ptr, x_ptr, start, n, stride, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Takes the unknowns of a block out of the rows above it."""
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = (start + tl.arange(0, ROWS)).to(tl.int64)
    u = tl.load(
        a_ptr + rows[:, None] * stride + k[None, :],
        mask=(rows[:, None] < start) & (k[None, :] < n),
        other=0.0,
    )
    known = tl.load(
        x_ptr + k[:, None] * columns + c[None, :],
        mask=(k[:, None] < n) & (c[None, :] < columns),
        other=0.0,
    )
    places = x_ptr + rows[:, None] * columns + c[None, :]
    inside = (rows[:, None] < start) & (c[None, :] < columns)
    x = tl.load(places, mask=inside, other=0.0)
    tl.store(places, x - tl.dot(u, known, input_precision="ieee"), mask=inside)


def eliminate(a, n):
    """Gaussian elimination of the first n columns of [A | b] in place, panel by panel."""
    stride = a.shape[1]
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
            stride,
            width,
            BLOCK_M=block,
            WIDTH=most,
            num_warps=max(1, min(16, block * most // 1024)),
        )
        below, right = n - start - width, stride - start - width
        exchange_kernel[(triton.cdiv(right, 64),)](
            a, source, target, start, stride, width, WIDTH=most, BLOCK=64
        )
        if below:
            grid = (triton.cdiv(below, 64), triton.cdiv(right, 64))
            update_kernel[grid](a, start, n, stride, width, K=max(16, most), ROWS=64, BLOCK=64)
        start += width


def substitute(a, x):
    """Solves with the upper triangle of [A | b] in place, block by block."""
    n, columns = x.shape
    stride, side = a.shape[1], triton.cdiv(columns, 32)
    for block in reversed(range(triton.cdiv(n, 32))):
        start = block * 32
        solve_block_kernel[(side,)](a, x, start, n, stride, columns, ROWS=32, BLOCK=32)
        if block:
            subtract_kernel[(block, side)](a, x, start, n, stride, columns, ROWS=32, BLOCK=32)


def fused_lu_solve(A, b):
    n = A.shape[0]
    a = torch.cat((A, b.reshape(n, -1)), 1)  # elimination on b too is its forward substitution
    eliminate(a, n)
    x = a[:, n:].contiguous()
    substitute(a, x)
    return x.reshape(b.shape)
