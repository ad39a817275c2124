import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


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
def softmax_dropout_kernel(z_ptr, y_ptr, length, p, seed, BLOCK: tl.constexpr):
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    places, inside = row * length + c, c < length
    z = tl.load(z_ptr + places, mask=inside, other=-float("inf"))
    e = tl.exp(z - tl.max(z, 0))
    y = e / tl.sum(e, 0)
    if p > 0:
        y = tl.where(tl.rand(seed, places) < p, 0.0, y / (1.0 - p))
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def add_layer_norm_kernel(z_ptr, r_ptr, y_ptr, length, step, eps, BLOCK: tl.constexpr):
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    places, inside = row * length + c, c < length
    z = tl.load(z_ptr + places, mask=inside, other=0.0)
    z += tl.load(r_ptr + row * step + c, mask=inside, other=0.0).to(tl.float32)
    gap = tl.where(inside, z - tl.sum(z, 0) / length, 0.0)
    y = gap / tl.sqrt(tl.sum(gap * gap, 0) / length + eps)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def product(x, w):
    """x (M, K) times w (K, N), in float32."""
    M, K, N = x.shape[0], x.shape[1], w.shape[1]
    y = torch.empty((M, N), device=x.device, dtype=torch.float32)
    linear_kernel[(triton.cdiv(M, 64), triton.cdiv(N, 64))](
        x,
        w,
        x,
        y,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        w.stride(1),
        w.stride(0),
        HAS_BIAS=False,
        WIDE=tl.float32,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    return y


def fused_transformer_block(
    input, weight1, weight2, residual, dropout_p=0.1, eps=1e-05, *, out=None
):
    x = input.reshape(-1, input.shape[-1])
    z = product(x, weight1)
    M, K = z.shape
    share = torch.empty_like(z, dtype=input.dtype)
    softmax_dropout_kernel[(M,)](
        z, share, K, float(dropout_p), fresh_seed(), BLOCK=triton.next_power_of_2(K)
    )
    z = product(share, weight2)
    N = z.shape[1]
    r, step = residual.contiguous(), 0
    if residual.dim() > 1:
        r, step = residual.expand(*input.shape[:-1], N).contiguous(), N
    y = torch.empty_like(z, dtype=input.dtype)
    add_layer_norm_kernel[(M,)](z, r, y, N, step, float(eps), BLOCK=triton.next_power_of_2(N))
    y = y.reshape(*input.shape[:-1], N)
    return y if out is None else out.copy_(y)
