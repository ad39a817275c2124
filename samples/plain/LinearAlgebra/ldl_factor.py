import torch
import triton
import triton.language as tl


@triton.jit
def at(vector, i, place):
    """One element of a vector."""
    return tl.sum(tl.where(i == place, vector, 0.0), 0)


@triton.jit
def ldl_kernel(a_ptr, ld_ptr, pivot_ptr, n, a_batch, a_row, a_column, BLOCK: tl.constexpr):
    """Bunch and Kaufman's pivots for one matrix in registers: a column, or two, is written when it
    is eliminated, so that later exchanges don't touch it."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = (i[:, None] < n) & (i[None, :] < n)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + i[None, :] * a_column, mask=inside, other=0.0
    )
    ld_ptr += batch * n * n
    pivot_ptr += batch * n
    empty = tl.zeros((BLOCK, BLOCK), tl.float32)
    tl.store(ld_ptr + i[:, None] * n + i[None, :], empty, mask=inside)
    tl.debug_barrier()
    k = 0
    while k < n:
        column = tl.sum(tl.where(i[None, :] == k, a, 0.0), 1)
        own = tl.abs(at(column, i, k))
        below = tl.where((i > k) & (i < n), tl.abs(column), -1.0)
        largest = tl.max(below, 0)
        r = tl.argmax(below, 0)
        row = tl.sum(tl.where(i[None, :] == r, a, 0.0), 1)
        others = tl.where((i >= k) & (i < n) & (i != r), tl.abs(row), 0.0)
        sigma = tl.max(others, 0)
        stays = (own >= 0.6403882 * largest) | (own * sigma >= 0.6403882 * largest * largest)
        single = stays | (tl.abs(at(row, i, r)) >= 0.6403882 * sigma)
        two = tl.where(single, 0, 1)
        target = tl.where(stays, k, r)
        kk = k + two
        # Exchange rows, then columns, kk and target.
        one = tl.sum(tl.where(i[:, None] == kk, a, 0.0), 0)
        other = tl.sum(tl.where(i[:, None] == target, a, 0.0), 0)
        a = tl.where(i[:, None] == target, one[None, :], a)
        a = tl.where(i[:, None] == kk, other[None, :], a)
        one = tl.sum(tl.where(i[None, :] == kk, a, 0.0), 1)
        other = tl.sum(tl.where(i[None, :] == target, a, 0.0), 1)
        a = tl.where(i[None, :] == target, one[:, None], a)
        a = tl.where(i[None, :] == kk, other[:, None], a)
        first = tl.sum(tl.where(i[None, :] == k, a, 0.0), 1)
        second = tl.sum(tl.where(i[None, :] == kk, a, 0.0), 1)
        d11 = at(first, i, k)
        d21 = at(first, i, kk)
        d22 = at(second, i, kk)
        c1 = tl.where((i > kk) & (i < n), first, 0.0)
        c2 = tl.where((i > kk) & (i < n), second, 0.0)
        # The inverse of D's block, 2 x 2 or 1 x 1; both through a divisor that is never 0.
        scale = tl.where(two == 1, d22 * (d11 / d21) - d21, tl.where(d11 == 0.0, 1.0, d11))
        l1 = tl.where(two == 1, ((d22 / d21) * c1 - c2) / scale, c1 / scale)
        l2 = tl.where(two == 1, ((d11 / d21) * c2 - c1) / scale, 0.0)
        a -= l1[:, None] * c1[None, :] + l2[:, None] * c2[None, :]
        done = tl.where(i == k, d11, l1)
        done = tl.where((i == kk) & (two == 1), d21, done)
        tl.store(ld_ptr + i * n + k, done, mask=(i >= k) & (i < n))
        done = tl.where(i == kk, d22, l2)
        tl.store(ld_ptr + i * n + kk, done, mask=(i >= kk) & (i < n) & (two == 1))
        pivot = tl.where(two == 1, -(target + 1), target + 1).to(tl.int32)
        tl.store(pivot_ptr + k, pivot)
        tl.store(pivot_ptr + kk, pivot)
        k += 1 + two


def ldl_factor(A, hermitian=False, out=None):
    n = A.shape[-1]
    a = A.reshape(-1, n, n)
    LD = torch.empty(a.shape, device=A.device, dtype=A.dtype)
    pivots = torch.empty(a.shape[:2], device=A.device, dtype=torch.int32)
    ldl_kernel[(a.shape[0],)](
        a,
        LD,
        pivots,
        n,
        *a.stride(),
        BLOCK=max(4, triton.next_power_of_2(n)),
        num_warps=4 if n > 32 else 1,
    )
    LD, pivots = LD.reshape(A.shape), pivots.reshape(A.shape[:-1])
    if out is None:
        return LD, pivots
    return out[0].copy_(LD), out[1].copy_(pivots)
