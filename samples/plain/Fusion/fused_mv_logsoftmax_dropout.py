import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


@triton.jit
def mv_kernel(
    a_ptr, v_ptr, z_ptr, M, K, a_row, a_column, v_step, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + rows[:, None].to(tl.int64) * a_row + inner[None, :] * a_column,
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        v = tl.load(v_ptr + inner * v_step, mask=inner < K, other=0.0)
        total += a.to(tl.float32) * v.to(tl.float32)[None, :]
    tl.store(z_ptr + rows, tl.sum(total, 1), mask=rows < M)


def product(a, v):
    M, K = a.shape
    z = torch.empty((M,), device=a.device, dtype=torch.float32)
    mv_kernel[(triton.cdiv(M, 8),)](a, v, z, M, K, *a.stride(), v.stride(0), BLOCK_M=8, BLOCK_K=512)
    return z


@triton.jit
def total_kernel(z_ptr, top_ptr, sum_ptr, n, BLOCK: tl.constexpr):
    """Maximum and sum of exponentials of one block."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(z_ptr + i, mask=i < n, other=-float("inf"))
    top = tl.max(z, 0)
    tl.store(top_ptr + tl.program_id(0), top)
    tl.store(sum_ptr + tl.program_id(0), tl.sum(tl.exp(z - top), 0))


@triton.jit
def logsoftmax_dropout_kernel(
    z_ptr, top_ptr, sum_ptr, y_ptr, n, parts, p, seed, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    j = tl.arange(0, PARTS)
    tops = tl.load(top_ptr + j, mask=j < parts, other=-float("inf"))
    sums = tl.load(sum_ptr + j, mask=j < parts, other=0.0)
    top = tl.max(tops, 0)
    shift = top + tl.log(tl.sum(sums * tl.exp(tops - top), 0))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(z_ptr + i, mask=i < n, other=0.0) - shift
    if p > 0:
        y = tl.where(tl.rand(seed, i) < p, 0.0, y / (1.0 - p))
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


def fused_mv_logsoftmax_dropout(
    input, vec, p=0.5, training=True, inplace=False, dim=0, *, out=None
):
    z = product(input, vec)
    y = torch.empty_like(z, dtype=input.dtype)
    n = z.numel()
    parts = triton.cdiv(n, 1024)
    top, total = torch.empty((2, parts), device=z.device, dtype=torch.float32)
    total_kernel[(parts,)](z, top, total, n, BLOCK=1024)
    logsoftmax_dropout_kernel[(parts,)](
        z,
        top,
        total,
        y,
        n,
        parts,
        p if training else 0.0,
        fresh_seed(),
        PARTS=triton.next_power_of_2(parts),
        BLOCK=1024,
    )
    return y if out is None else out.copy_(y)
