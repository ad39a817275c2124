import torch
import triton
import triton.language as tl


@triton.jit
def quantize_kernel(
    x_ptr,
    q_ptr,
    scale_ptr,
    lines,
    n,
    groups_stride,
    line_stride,
    step,
    BLOCK_L: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Lines of n numbers, `step` apart, to int8 lines side by side and a scale for each."""
    group = tl.program_id(1).to(tl.int64)
    line = tl.program_id(0).to(tl.int64) * BLOCK_L + tl.arange(0, BLOCK_L)
    x_ptr += group * groups_stride + line[:, None] * line_stride
    largest = tl.zeros((BLOCK_L,), dtype=tl.float32)
    for start in range(0, n, BLOCK_N):
        i = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        inside = (line[:, None] < lines) & (i[None, :] < n)
        x = tl.load(x_ptr + i[None, :] * step, mask=inside, other=0.0).to(tl.float32)
        largest = tl.maximum(largest, tl.max(tl.abs(x), 1))
    scale = tl.where(largest > 0, tl.div_rn(largest, tl.full((BLOCK_L,), 7.0, tl.float32)), 1.0)
    tl.store(scale_ptr + group * lines + line, scale, mask=line < lines)
    q_ptr += (group * lines + line[:, None]) * n
    divisor = tl.broadcast_to(scale[:, None], (BLOCK_L, BLOCK_N))
    for start in range(0, n, BLOCK_N):
        i = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        inside = (line[:, None] < lines) & (i[None, :] < n)
        x = tl.load(x_ptr + i[None, :] * step, mask=inside, other=0.0).to(tl.float32)
        # Adding 1.5 * 2**23 leaves no fraction: the addition itself rounds half to even.
        q = (tl.div_rn(x, divisor) + 12582912.0) - 12582912.0
        q = tl.minimum(tl.maximum(q, -8.0), 7.0)
        tl.store(q_ptr + i[None, :], q.to(tl.int8), mask=inside)


def quantize(x: torch.Tensor, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 (groups, lines, n) and float32 (groups, lines) of x (groups, ., .), lines along dim."""
    across = 3 - dim
    groups, lines, n = x.shape[0], x.shape[across], x.shape[dim]
    q = torch.empty((groups, lines, n), device=x.device, dtype=torch.int8)
    scale = torch.empty((groups, lines), device=x.device, dtype=torch.float32)
    along = x.stride(dim) <= x.stride(across)
    block_l, block_n = (4, 512) if along else (64, 32)
    quantize_kernel[(triton.cdiv(lines, block_l), groups)](
        x,
        q,
        scale,
        lines,
        n,
        x.stride(0),
        x.stride(across),
        x.stride(dim),
        BLOCK_L=block_l,
        BLOCK_N=block_n,
    )
    return q, scale


@triton.jit
def linear_kernel(
    x_ptr,
    q_ptr,
    scale_ptr,
    bias_ptr,
    y_ptr,
    M,
    N,
    K,
    x_row,
    x_step,
    BIASED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """y = (x @ q^T) scale + bias: the integers are exact in float16, the scale comes last."""
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        x = tl.load(
            x_ptr + rows[:, None] * x_row + inner[None, :] * x_step,
            mask=(rows[:, None] < M) & (inner[None, :] < K),
            other=0.0,
        )
        q = tl.load(
            q_ptr + columns[None, :] * K + inner[:, None],
            mask=(inner[:, None] < K) & (columns[None, :] < N),
            other=0,
        )
        total = tl.dot(x, q.to(x.dtype), total)
    total *= tl.load(scale_ptr + columns, mask=columns < N, other=0.0)[None, :]
    if BIASED:
        total += tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(y_ptr + rows[:, None] * N + columns[None, :], total.to(y_ptr.dtype.element_ty), inside)


def linear_w4a16(input, weight, bias=None) -> torch.Tensor:
    N, K = weight.shape
    x = input.reshape(-1, K)
    M = x.shape[0]
    q, scale = quantize(weight[None], 2)
    bias = None if bias is None else bias.contiguous()
    y = torch.empty((M, N), device=x.device, dtype=x.dtype)
    block_m, block_n = (16, 32) if M <= 16 else (32, 64) if M <= 64 else (128, 128)
    linear_kernel[(triton.cdiv(M, block_m), triton.cdiv(N, block_n))](
        x,
        q,
        scale,
        bias,
        y,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        BIASED=bias is not None,
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=64,
    )
    return y.reshape(*input.shape[:-1], N)
