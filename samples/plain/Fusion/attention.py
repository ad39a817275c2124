import torch
import triton
import triton.language as tl


@triton.jit
def attention_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    y_ptr,
    S,
    D,
    scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64) * S * D
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, BLOCK_D)
    places = head + rows[:, None] * D + d[None, :]
    inside = (rows[:, None] < S) & (d[None, :] < D)
    q = tl.load(q_ptr + places, mask=inside, other=0.0)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    y = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    end = S
    if CAUSAL:
        end = tl.minimum(S, (tl.program_id(0) + 1) * BLOCK_M)
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(
            k_ptr + head + columns[None, :] * D + d[:, None],
            mask=(columns[None, :] < S) & (d[:, None] < D),
            other=0.0,
        )
        v = tl.load(
            v_ptr + head + columns[:, None] * D + d[None, :],
            mask=(columns[:, None] < S) & (d[None, :] < D),
            other=0.0,
        )
        scores = tl.dot(q, k, input_precision="ieee") * scale
        seen = columns[None, :] < S
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(share, 1)
        y = y * shrink[:, None] + tl.dot(share.to(v.dtype), v, input_precision="ieee")
        top = higher
    y = y / total[:, None]
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def attention(q, k, v, causal=False, softmax_scale=None, *, out=None):
    B, H, S, D = q.shape
    scale = D**-0.5 if softmax_scale is None else softmax_scale
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    y = torch.empty_like(q)
    block = 64 if q.dtype == torch.float16 else 32
    attention_kernel[(triton.cdiv(S, block), B * H)](
        q,
        k,
        v,
        y,
        S,
        D,
        float(scale),
        CAUSAL=causal,
        BLOCK_M=block,
        BLOCK_N=block,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
    )
    return y if out is None else out.copy_(y)
