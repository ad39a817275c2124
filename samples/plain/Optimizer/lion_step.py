import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(
    p_ptr,
    g_ptr,
    m_ptr,
    n,
    lr,
    beta1,
    beta2,
    decay,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    p = tl.load(p_ptr + offsets, mask=inside, other=0.0)
    g = tl.load(g_ptr + offsets, mask=inside, other=0.0)
    m = tl.load(m_ptr + offsets, mask=inside, other=0.0)
    direction = beta1 * m + (1.0 - beta1) * g
    sign = tl.where(direction > 0, 1.0, tl.where(direction < 0, -1.0, 0.0))
    p = p * (1.0 - decay) - lr * sign
    m = beta2 * m + (1.0 - beta2) * g
    tl.store(m_ptr + offsets, m, mask=inside)
    tl.store(p_ptr + offsets, p, mask=inside)


def lion_step(param, grad, exp_avg, lr=0.0001, beta1=0.9, beta2=0.99, weight_decay=0.0):
    p, g, m = (t.contiguous() for t in (param, grad, exp_avg))
    n = p.numel()
    if n:
        step_kernel[(triton.cdiv(n, 1024),)](
            p, g, m, n, lr, beta1, beta2, lr * weight_decay, BLOCK=1024
        )
    for own, worked in ((param, p), (exp_avg, m)):
        if own.data_ptr() != worked.data_ptr():
            own.copy_(worked)
    return param, exp_avg
