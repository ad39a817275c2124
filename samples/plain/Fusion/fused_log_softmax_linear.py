import torch
import triton
import triton.language as tl


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    M,
    N,
    K,
    x_row,
    x_column,
    w_row,
    w_column,
    HAS_BIAS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    y = tl.zeros((BLOCK_M, BLOCK_N), dtype=WIDE)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows[:, None].to(tl.int64) * x_row + inner[None, :] * x_column,
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        w = tl.load(
            w_ptr + columns[None, :].to(tl.int64) * w_row + inner[:, None] * w_column,
            mask=(columns[None, :] < N) & (inner[:, None] < K),
            other=0.0,
        )
        y = tl.dot(x, w, y, input_precision="ieee", out_dtype=WIDE)
    if HAS_BIAS:
        y += tl.load(b_ptr + columns, mask=columns < N, other=0.0).to(WIDE)[None, :]
    places = rows[:, None].to(tl.int64) * N + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def log_softmax_kernel(z_ptr, y_ptr, length, inner, BLOCK: tl.constexpr):
    """One line along a dimension; lines lie `inner` apart."""
    line = tl.program_id(0).to(tl.int64)
    base = line // inner * length * inner + line % inner
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + base + offsets * inner, mask=offsets < length, other=-float("inf"))
        z = z.to(tl.float32)
        higher = tl.maximum(top, z)
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - safe) + tl.exp(z - safe)
        top = higher
    highest = tl.max(top, 0)
    total = tl.sum(total * tl.exp(top - highest), 0)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + base + offsets * inner, mask=offsets < length, other=0.0)
        y = z.to(tl.float32) - highest - tl.log(total)
        tl.store(
            y_ptr + base + offsets * inner, y.to(y_ptr.dtype.element_ty), mask=offsets < length
        )


def fused_log_softmax_linear(input, weight, bias=None, dim=-1, dtype=None):
    x = input.reshape(-1, input.shape[-1])
    M, K, N = x.shape[0], x.shape[1], weight.shape[0]
    y = torch.empty(
        (M, N),
        device=x.device,
        dtype=torch.float64 if input.dtype == torch.float64 else torch.float32,
    )
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    linear_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        x,
        weight,
        x if bias is None else bias.contiguous(),
        y,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        weight.stride(1),
        HAS_BIAS=bias is not None,
        WIDE=wide,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    z = y.reshape(*input.shape[:-1], N)
    result = torch.empty_like(z, dtype=dtype or input.dtype)
    dim = dim % z.dim()
    inner = 1
    for size in z.shape[dim + 1 :]:
        inner *= size
    length = z.shape[dim]
    block = min(triton.next_power_of_2(length), 1024)
    log_softmax_kernel[(z.numel() // length,)](z, result, length, inner, BLOCK=block)
    return result
