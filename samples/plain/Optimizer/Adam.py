import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(
    p_ptr,
    g_ptr,
    m_ptr,
    v_ptr,
    n,
    rate,
    correction,
    beta1,
    beta2,
    eps,
    decay,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    p = tl.load(p_ptr + offsets, mask=inside, other=0.0)
    g = tl.load(g_ptr + offsets, mask=inside, other=0.0)
    m = tl.load(m_ptr + offsets, mask=inside, other=0.0)
    v = tl.load(v_ptr + offsets, mask=inside, other=1.0)
    g += decay * p
    m = beta1 * m + (1.0 - beta1) * g
    v = beta2 * v + (1.0 - beta2) * g * g
    p -= rate * m / (tl.sqrt(v / correction) + eps)
    tl.store(m_ptr + offsets, m, mask=inside)
    tl.store(v_ptr + offsets, v, mask=inside)
    tl.store(p_ptr + offsets, p, mask=inside)


def Adam(params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0):
    beta1, beta2 = betas
    results = []
    for param, grad, exp_avg, exp_avg_sq, step in params:
        p, g, m, v = (t.contiguous() for t in (param, grad, exp_avg, exp_avg_sq))
        n = p.numel()
        if n:
            step_kernel[(triton.cdiv(n, 1024),)](
                p,
                g,
                m,
                v,
                n,
                lr / (1 - beta1**step),
                1 - beta2**step,
                beta1,
                beta2,
                eps,
                float(weight_decay),
                BLOCK=1024,
            )
        for own, worked in ((param, p), (exp_avg, m), (exp_avg_sq, v)):
            if own.data_ptr() != worked.data_ptr():
                own.copy_(worked)
        results.append((param, exp_avg, exp_avg_sq))
    return results
