import torch
import triton
import triton.language as tl


@triton.jit
def determinant_kernel(
    a_ptr, y_ptr, n, a_batch, a_row, a_column, PIVOT: tl.constexpr, BLOCK: tl.constexpr
):
    """Elimination of one matrix in registers; rows stay where they are, and the parity of the
    pivots' places is the permutation's sign."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + i[None, :] * a_column,
        mask=(i[:, None] < n) & (i[None, :] < n),
        other=0.0,
    )
    free = i < n
    place = i
    value = 1.0
    for j in range(n):
        column = tl.sum(tl.where(i[None, :] == j, a, 0.0), 1)
        if PIVOT:
            chosen = i == tl.argmax(tl.where(free, tl.abs(column), -1.0), 0)
        else:
            chosen = i == j
        pivot = tl.sum(tl.where(chosen, column, 0.0), 0)
        row = tl.sum(tl.where(chosen[:, None], a, 0.0), 0)
        free = free & (i != tl.sum(tl.where(chosen, i, 0), 0))
        factor = tl.where(free, column / pivot, 0.0)
        a -= factor[:, None] * tl.where(i > j, row, 0.0)[None, :]
        place = tl.where(chosen, j, place)
        value = value * pivot
    crossed = (i[:, None] < i[None, :]) & (place[:, None] > place[None, :])
    odd = tl.sum(tl.sum(crossed.to(tl.int32), 1), 0) % 2
    tl.store(y_ptr + batch, tl.where(odd == 1, -value, value))


def determinants(A: torch.Tensor, pivot: bool = True) -> torch.Tensor:
    n = A.shape[-1]
    a = A.reshape(-1, n, n)
    y = torch.empty(a.shape[0], device=A.device, dtype=A.dtype)
    determinant_kernel[(a.shape[0],)](
        a,
        y,
        n,
        *a.stride(),
        PIVOT=pivot,
        BLOCK=max(4, triton.next_power_of_2(n)),
        num_warps=4 if n > 32 else 1,
    )
    return y.reshape(A.shape[:-2])


def det(A):
    return determinants(A)
