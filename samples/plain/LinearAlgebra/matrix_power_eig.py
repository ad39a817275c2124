import torch
import triton
import triton.language as tl


@triton.jit
def orthogonalize(a, v, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """One-sided Jacobi: rotates pairs of columns of a, and of v alike, until a's are orthogonal.

    In each of BLOCK_N - 1 rounds all columns are paired, as in a tournament.
    """
    j = tl.arange(0, BLOCK_N)
    one = tl.full((BLOCK_N,), 1.0, dtype=tl.float32)
    worst = 1.0
    sweep = 0
    while (sweep < 15) & (worst > 1e-6):
        worst = worst * 0.0
        for r in range(BLOCK_N - 1):
            partner = (r + BLOCK_N - 1 - j) % (BLOCK_N - 1)
            partner = tl.where(partner == j, BLOCK_N - 1, partner)
            lone = (r * (BLOCK_N // 2)) % (BLOCK_N - 1)
            partner = tl.where(j == BLOCK_N - 1, lone, partner)
            b = tl.gather(a, tl.broadcast_to(partner[None, :], (BLOCK_M, BLOCK_N)), 1)
            w = tl.gather(v, tl.broadcast_to(partner[None, :], (BLOCK_N, BLOCK_N)), 1)
            own = tl.sum(a * a, 0)
            other = tl.sum(b * b, 0)
            inner = tl.sum(a * b, 0)
            size = tl.sqrt(own * other)
            turns = tl.abs(inner) > 1e-8 * size
            zeta = (other - own) / (2.0 * tl.where(turns, inner, 1.0))
            positive = (zeta > 0) | ((zeta == 0) & (j < partner))
            t = 1.0 / (tl.abs(zeta) + tl.sqrt(1.0 + zeta * zeta))
            t = tl.where(turns, tl.where(positive, t, -t), 0.0)
            cosine = tl.div_rn(one, tl.sqrt_rn(1.0 + t * t))
            a = a * cosine[None, :] - b * (cosine * t)[None, :]
            v = v * cosine[None, :] - w * (cosine * t)[None, :]
            angle = tl.where(turns, tl.abs(inner) / tl.where(turns, size, 1.0), 0.0)
            worst = tl.maximum(worst, tl.max(angle, 0))
        sweep += 1
    # Roundings of the rotations add up in the length of the columns: take them out.
    length = tl.sqrt_rn(tl.sum(v * v, 0))
    return a / length[None, :], v / length[None, :]


@triton.jit
def power_kernel(
    a_ptr, y_ptr, n, k, a_batch, a_row, a_column, ODD: tl.constexpr, BLOCK: tl.constexpr
):
    """One matrix in registers. A + c I is positive definite for a c above every row's sum: its
    singular vectors are A's eigenvectors."""
    batch = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    inside = (i[:, None] < n) & (i[None, :] < n)
    a = tl.load(
        a_ptr + batch * a_batch + i[:, None] * a_row + i[None, :] * a_column, mask=inside, other=0.0
    )
    eye = tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    shift = 1.5 * tl.max(tl.sum(tl.abs(a), 1), 0)
    _, v = orthogonalize(a + shift * eye, eye, BLOCK, BLOCK)
    values = tl.sum(v * tl.dot(a, v, input_precision="ieee"), 0)
    values = tl.where(i < n, values, 1.0)
    power = tl.exp(k * tl.log(tl.abs(values)))
    if ODD:
        power = tl.where(values < 0, -power, power)
    y = tl.dot(v * power[None, :], tl.trans(v), input_precision="ieee")
    tl.store(y_ptr + batch * n * n + i[:, None] * n + i[None, :], y, mask=inside)


def matrix_power_eig(A, k: float, *, out=None) -> torch.Tensor:
    n = A.shape[-1]
    a = A.reshape(-1, n, n)
    y = torch.empty(a.shape, device=A.device, dtype=A.dtype)
    power_kernel[(a.shape[0],)](
        a,
        y,
        n,
        float(k),
        *a.stride(),
        ODD=float(k) % 2 == 1,
        BLOCK=max(16, triton.next_power_of_2(n)),
        num_warps=4,
    )
    y = y.reshape(A.shape)
    return y if out is None else out.copy_(y)
