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
    scale = tl.where(largest > 0, tl.div_rn(largest, tl.full((BLOCK_L,), 127.0, tl.float32)), 1.0)
    tl.store(scale_ptr + group * lines + line, scale, mask=line < lines)
    q_ptr += (group * lines + line[:, None]) * n
    divisor = tl.broadcast_to(scale[:, None], (BLOCK_L, BLOCK_N))
    for start in range(0, n, BLOCK_N):
        i = (start + tl.arange(0, BLOCK_N)).to(tl.int64)
        inside = (line[:, None] < lines) & (i[None, :] < n)
        x = tl.load(x_ptr + i[None, :] * step, mask=inside, other=0.0).to(tl.float32)
        # Adding 1.5 * 2**23 leaves no fraction: the addition itself rounds half to even.
        q = (tl.div_rn(x, divisor) + 12582912.0) - 12582912.0
        q = tl.minimum(tl.maximum(q, -128.0), 127.0)
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
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    q_scale_ptr,
    k_scale_ptr,
    v_scale_ptr,
    y_ptr,
    S,
    D,
    factor,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """One block of queries against all keys, softmax kept up to date on the way."""
    batch = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    base = batch * S * D
    inside = (rows[:, None] < S) & (d[None, :] < D)
    q = tl.load(q_ptr + base + rows[:, None] * D + d[None, :], mask=inside, other=0)
    q_scale = tl.load(q_scale_ptr + batch * S + rows, mask=rows < S, other=0.0) * factor
    largest = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    y = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    for start in range(0, S, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k = tl.load(
            k_ptr + base + keys[None, :] * D + d[:, None],
            mask=(keys[None, :] < S) & (d[:, None] < D),
            other=0,
        )
        k_scale = tl.load(k_scale_ptr + batch * S + keys, mask=keys < S, other=0.0)
        sums = tl.dot(q, k, out_dtype=tl.int32)
        scores = sums.to(tl.float32) * (q_scale[:, None] * k_scale[None, :])
        scores = tl.where(keys[None, :] < S, scores, float("-inf"))
        new = tl.maximum(largest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        kept = tl.exp(largest - new)
        total = total * kept + tl.sum(p, 1)
        v = tl.load(
            v_ptr + base + keys[:, None] * D + d[None, :],
            mask=(keys[:, None] < S) & (d[None, :] < D),
            other=0,
        )
        v_scale = tl.load(v_scale_ptr + batch * S + keys, mask=keys < S, other=0.0)
        y = tl.dot(
            p, v.to(tl.float32) * v_scale[:, None], y * kept[:, None], input_precision="ieee"
        )
        largest = new
    tl.store(y_ptr + base + rows[:, None] * D + d[None, :], y / total[:, None], mask=inside)


def attention_w8a8(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    batch, S, D = query.shape
    (q, q_scale), (k, k_scale), (v, v_scale) = (quantize(x, 2) for x in (query, key, value))
    y = torch.empty((batch, S, D), device=query.device, dtype=torch.float32)
    attention_kernel[(triton.cdiv(S, 64), batch)](
        q,
        k,
        v,
        q_scale,
        k_scale,
        v_scale,
        y,
        S,
        D,
        D**-0.5,
        BLOCK_M=64,
        BLOCK_N=32,
        BLOCK_D=max(32, triton.next_power_of_2(D)),
        num_warps=8,
    )
    return y
