import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


@triton.jit
def mul_add_logsoftmax_kernel(
    a_ptr, b_ptr, o_ptr, y_ptr, length, inner, p, seed, BLOCK: tl.constexpr
):
    """One line along a dimension; its elements lie `inner` apart."""
    line = tl.program_id(0).to(tl.int64)
    base = line // inner * length * inner + line % inner
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        places = base + i * inner
        inside = i < length
        a = tl.load(a_ptr + places, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + places, mask=inside, other=0.0).to(tl.float32)
        o = tl.load(o_ptr + places, mask=inside, other=-float("inf")).to(tl.float32)
        top = tl.maximum(top, a * b + o)
    highest = tl.max(top, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        places = base + i * inner
        inside = i < length
        a = tl.load(a_ptr + places, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + places, mask=inside, other=0.0).to(tl.float32)
        o = tl.load(o_ptr + places, mask=inside, other=-float("inf")).to(tl.float32)
        total += tl.exp(a * b + o - highest)
    shift = highest + tl.log(tl.sum(total, 0))
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        places = base + i * inner
        inside = i < length
        a = tl.load(a_ptr + places, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + places, mask=inside, other=0.0).to(tl.float32)
        o = tl.load(o_ptr + places, mask=inside, other=0.0).to(tl.float32)
        y = a * b + o - shift
        if p > 0:
            y = tl.where(tl.rand(seed, places) < p, 0.0, y / (1.0 - p))
        tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


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
    y = torch.empty((B, M, N), device=a.device, dtype=a.dtype)
    bmm_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64), B)](
        a, b, y, M, N, K, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32
    )
    return y


def fused_mul_add_logsoftmax_dropout_bmm(
    input1, input2, other, mat2, p=0.5, training=True, inplace=False, dim=-1, *, out=None
):
    shape = torch.broadcast_shapes(input1.shape, input2.shape, other.shape)
    a, b, o = (t.expand(shape).contiguous() for t in (input1, input2, other))
    logs = torch.empty_like(a)
    dim = dim % 3
    inner = 1
    for size in shape[dim + 1 :]:
        inner *= size
    length = shape[dim]
    mul_add_logsoftmax_kernel[(a.numel() // length,)](
        a,
        b,
        o,
        logs,
        length,
        inner,
        p if training else 0.0,
        fresh_seed(),
        BLOCK=min(triton.next_power_of_2(length), 1024),
    )
    y = product(logs, mat2)
    return y if out is None else out.copy_(y)
