import torch
import triton
import triton.language as tl


@triton.jit
def invert_kernel(
    a_ptr, x_ptr, n, a_batch, a_row, a_column, PIVOT: tl.constexpr, BLOCK: tl.constexpr
):
    """Gauss-Jordan elimination of (A | I) in registers; rows stay where they are, the pivots'
    places say which row of the inverse each of them holds in the end."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = (i[:, None] < n) & (i[None, :] < n)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + i[None, :] * a_column, mask=inside, other=0.0
    )
    b = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    free = i < n
    place = i
    pivots = tl.full((BLOCK,), 1.0, dtype=tl.float32)
    for j in range(n):
        column = tl.sum(tl.where(i[None, :] == j, a, 0.0), 1)
        if PIVOT:
            chosen = i == tl.argmax(tl.where(free, tl.abs(column), -1.0), 0)
        else:
            chosen = i == j
        pivot = tl.sum(tl.where(chosen, column, 0.0), 0)
        row = tl.sum(tl.where(chosen[:, None], a, 0.0), 0)
        right = tl.sum(tl.where(chosen[:, None], b, 0.0), 0)
        factor = tl.where(chosen, 0.0, column / pivot)
        a -= factor[:, None] * tl.where(i > j, row, 0.0)[None, :]
        b -= factor[:, None] * right[None, :]
        free = free & (i != tl.sum(tl.where(chosen, i, 0), 0))
        place = tl.where(chosen, j, place)
        pivots = tl.where(chosen, pivot, pivots)
    target = x_ptr + batch * n * n + place[:, None] * n + i[None, :]
    tl.store(target, b / pivots[:, None], mask=inside)


def invert_matrix_lu(A, *, pivot=True, out=None):
    n = A.shape[-1]
    a = A.reshape(-1, n, n)
    x = torch.empty(a.shape, device=A.device, dtype=A.dtype)
    invert_kernel[(a.shape[0],)](
        a,
        x,
        n,
        *a.stride(),
        PIVOT=pivot,
        BLOCK=max(4, triton.next_power_of_2(n)),
        num_warps=4 if n > 32 else 1,
    )
    x = x.reshape(A.shape)
    return x if out is None else out.copy_(x)
