import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        return x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def bmm_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    K,
    a_batch,
    a_row,
    a_column,
    b_batch,
    b_row,
    b_column,
    p,
    seed,
    TANH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(2).to(tl.int64)
    y = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a = tl.load(
            a_ptr + batch * a_batch + rows[:, None] * a_row + inner[None, :] * a_column,
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + batch * b_batch + inner[:, None] * b_row + columns[None, :] * b_column,
            mask=(inner[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        y = tl.dot(a, b, y, input_precision="ieee")
    places = (batch * M + rows[:, None]) * N + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    if p > 0:
        y = tl.where(tl.rand(seed, places) < p, 0.0, y / (1.0 - p))
    y = gelu(y, TANH)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def product(a, b, p, seed, tanh):
    B, M, K = a.shape
    N = b.shape[2]
    y = torch.empty((B, M, N), device=a.device, dtype=a.dtype)
    bmm_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64), B)](
        a,
        b,
        y,
        M,
        N,
        K,
        *a.stride(),
        *b.stride(),
        p,
        seed,
        tanh,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    return y


def fused_bmm_dropout_gelu(
    input1, input2, p=0.5, training=True, inplace=False, approximate="none", *, out=None
):
    rate = p if training else 0.0
    y = product(input1, input2, rate, fresh_seed(), approximate == "tanh")
    return y if out is None else out.copy_(y)
