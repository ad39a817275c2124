import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(
    p_ptr,
    g_ptr,
    v_ptr,
    n,
    lr,
    alpha,
    eps,
    decay,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    p = tl.load(p_ptr + offsets, mask=inside, other=0.0)
    g = tl.load(g_ptr + offsets, mask=inside, other=0.0)
    v = tl.load(v_ptr + offsets, mask=inside, other=1.0)
    g += decay * p
    v = alpha * v + (1.0 - alpha) * g * g
    p -= lr * g / (tl.sqrt(v) + eps)
    tl.store(v_ptr + offsets, v, mask=inside)
    tl.store(p_ptr + offsets, p, mask=inside)


def rmsprop_step(param, grad, square_avg, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0.0):
    p, g, v = (t.contiguous() for t in (param, grad, square_avg))
    n = p.numel()
    if n:
        step_kernel[(triton.cdiv(n, 1024),)](
            p, g, v, n, lr, alpha, eps, float(weight_decay), BLOCK=1024
        )
    for own, worked in ((param, p), (square_avg, v)):
        if own.data_ptr() != worked.data_ptr():
            own.copy_(worked)
    return param, square_avg
