import torch
import triton
import triton.language as tl


@triton.jit
def step_kernel(
    p_ptr,
    g_ptr,
    b_ptr,
    n,
    lr,
    momentum,
    decay,
    share,
    MOMENTUM: tl.constexpr,
    FRESH: tl.constexpr,
    NESTEROV: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    p = tl.load(p_ptr + offsets, mask=inside, other=0.0)
    g = tl.load(g_ptr + offsets, mask=inside, other=0.0)
    g += decay * p
    if MOMENTUM:
        if FRESH:
            b = g
        else:
            b = momentum * tl.load(b_ptr + offsets, mask=inside, other=0.0) + share * g
        tl.store(b_ptr + offsets, b, mask=inside)
        if NESTEROV:
            g += momentum * b
        else:
            g = b
    p -= lr * g
    tl.store(p_ptr + offsets, p, mask=inside)


def sgd_step(
    param,
    grad,
    momentum_buffer=None,
    lr=0.1,
    momentum=0.9,
    weight_decay=0.0,
    dampening=0.0,
    nesterov=False,
):
    p, g = param.contiguous(), grad.contiguous()
    moves, fresh = momentum != 0, momentum_buffer is None
    if not moves:
        b = g
    else:
        b = torch.empty_like(p) if fresh else momentum_buffer.contiguous()
    n = p.numel()
    if n:
        step_kernel[(triton.cdiv(n, 1024),)](
            p,
            g,
            b,
            n,
            float(lr),
            float(momentum),
            float(weight_decay),
            1.0 - dampening,
            MOMENTUM=moves,
            FRESH=fresh,
            NESTEROV=nesterov,
            BLOCK=1024,
        )
    if param.data_ptr() != p.data_ptr():
        param.copy_(p)
    if not moves:
        return param, momentum_buffer
    if fresh:
        return param, b
    if momentum_buffer.data_ptr() != b.data_ptr():
        momentum_buffer.copy_(b)
    return param, momentum_buffer
