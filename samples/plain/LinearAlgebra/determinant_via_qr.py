import torch
import triton
import triton.language as tl


@triton.jit
def determinant_kernel(a_ptr, y_ptr, n, a_batch, a_row, a_column, BLOCK: tl.constexpr):
    """Householder's n - 1 reflections of one matrix in registers: each has determinant -1."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + i[None, :] * a_column,
        mask=(i[:, None] < n) & (i[None, :] < n),
        other=0.0,
    )
    value = 1.0
    for j in range(n - 1):
        column = tl.sum(tl.where(i[None, :] == j, a, 0.0), 1)
        v = tl.where(i >= j, column, 0.0)
        norm = tl.sqrt(tl.sum(v * v, 0))
        head = tl.sum(tl.where(i == j, v, 0.0), 0)
        new = tl.where(head > 0, -norm, norm)
        v = tl.where(i == j, head - new, v)
        square = tl.sum(v * v, 0)
        scale = tl.where(square > 0, 2.0 / square, 0.0)
        product = tl.sum(v[:, None] * a, 0)
        a -= scale * v[:, None] * product[None, :]
        value = value * tl.where(square > 0, -new, new)
    last = (i[:, None] == n - 1) & (i[None, :] == n - 1)
    value = value * tl.sum(tl.sum(tl.where(last, a, 0.0), 1), 0)
    tl.store(y_ptr + batch, value)


def determinant_via_qr(A, *, mode="reduced", out=None):
    n = A.shape[-1]
    a = A.reshape(-1, n, n)
    y = torch.empty(a.shape[0], device=A.device, dtype=A.dtype)
    determinant_kernel[(a.shape[0],)](
        a,
        y,
        n,
        *a.stride(),
        BLOCK=max(4, triton.next_power_of_2(n)),
        num_warps=4 if n > 32 else 1,
    )
    y = y.reshape(A.shape[:-2])
    return y if out is None else out.copy_(y)
