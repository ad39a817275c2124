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
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def product(a, b):
    B, M, K = a.shape
    N = b.shape[2]
    y = torch.empty((B, M, N), device=a.device, dtype=torch.float32)
    bmm_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64), B)](
        a, b, y, M, N, K, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32
    )
    return y


@triton.jit
def norm_gelu_kernel(
    z_ptr,
    o_ptr,
    y_ptr,
    length,
    eps,
    p,
    seed,
    other_step,
    TANH: tl.constexpr,
    SUB: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        c = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + row * length + c, mask=c < length, other=0.0)
        total += z * z
    root = tl.sqrt(tl.sum(total, 0) / length + eps)
    for start in range(0, length, BLOCK):
        c = start + tl.arange(0, BLOCK)
        places = row * length + c
        y = gelu(tl.load(z_ptr + places, mask=c < length, other=0.0) / root, TANH)
        if p > 0:
            y = tl.where(tl.rand(seed, places) < p, 0.0, y / (1.0 - p))
        if SUB:
            y -= tl.load(o_ptr + row * other_step + c, mask=c < length, other=0.0)
        tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=c < length)


def fused_bmm_rmsnorm_gelu_dropout_sub(
    input1,
    input2,
    other,
    normalized_shape,
    dropout_p=0.5,
    training=True,
    approximate="none",
    eps=1e-05,
    *,
    out=None,
):
    z = product(input1, input2)
    y = torch.empty_like(z, dtype=input1.dtype)
    n = z.shape[2]
    rate = dropout_p if training else 0.0
    o = other.contiguous() if other.dim() == 1 else other.expand(z.shape).contiguous()
    step = 0 if other.dim() == 1 else n
    norm_gelu_kernel[(z.shape[0] * z.shape[1],)](
        z,
        o,
        y,
        n,
        eps,
        rate,
        fresh_seed(),
        step,
        TANH=approximate == "tanh",
        SUB=True,
        BLOCK=min(triton.next_power_of_2(n), 1024),
    )
    return y if out is None else out.copy_(y)
