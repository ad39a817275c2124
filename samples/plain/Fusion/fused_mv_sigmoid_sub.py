import torch
import triton
import triton.language as tl


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
def sigmoid_sub_kernel(
    z_ptr, o_ptr, y_ptr, n, number, alpha, step, TENSOR: tl.constexpr, BLOCK: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    z = tl.load(z_ptr + i, mask=i < n, other=0.0)
    if TENSOR:
        other = tl.load(o_ptr + i * step, mask=i < n, other=0.0).to(tl.float32)
    else:
        other = number
    y = 1.0 / (1.0 + tl.exp(-z)) - alpha * other
    tl.store(y_ptr + i, y.to(y_ptr.dtype.element_ty), mask=i < n)


def fused_mv_sigmoid_sub(input, vec, other, alpha=1, *, out=None):
    z = product(input, vec)
    y = torch.empty_like(z, dtype=input.dtype)
    tensor, n = isinstance(other, torch.Tensor), z.numel()
    o = other.expand(n) if tensor else z
    sigmoid_sub_kernel[(triton.cdiv(n, 256),)](
        z,
        o,
        y,
        n,
        0.0 if tensor else float(other),
        float(alpha),
        o.stride(0),
        TENSOR=tensor,
        BLOCK=256,
    )
    return y if out is None else out.copy_(y)
