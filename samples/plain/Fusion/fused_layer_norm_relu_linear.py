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
    y = tl.maximum(y, 0.0)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_kernel(z_ptr, y_ptr, length, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        total += tl.load(z_ptr + row * length + offsets, mask=offsets < length, other=0.0)
    mean = tl.sum(total, 0) / length
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + row * length + offsets, mask=offsets < length, other=0.0)
        total += tl.where(offsets < length, (z - mean) * (z - mean), 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(total, 0) / length + eps)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        z = tl.load(z_ptr + row * length + offsets, mask=offsets < length, other=0.0)
        y = (z - mean) * scale
        tl.store(
            y_ptr + row * length + offsets, y.to(y_ptr.dtype.element_ty), mask=offsets < length
        )


def fused_layer_norm_relu_linear(
    input, weight, bias=None, normalized_shape=None, eps=1e-05, elementwise_affine=True
):
    x = input.reshape(-1, input.shape[-1])
    M, K, N = x.shape[0], x.shape[1], weight.shape[0]
    y = torch.empty((M, N), device=x.device, dtype=torch.float32)
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
    result = torch.empty_like(y, dtype=input.dtype)
    block = min(triton.next_power_of_2(N), 1024)
    layer_norm_kernel[(M,)](y, result, N, eps, BLOCK=block)
    return result.reshape(*input.shape[:-1], N)
