import torch
import triton
import triton.language as tl


@triton.jit
def mul_sub_kernel(
    x_ptr,
    m_ptr,
    s_ptr,
    y_ptr,
    m_value,
    s_value,
    alpha,
    n,
    M_TENSOR: tl.constexpr,
    S_TENSOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    if M_TENSOR:
        x *= tl.load(m_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    else:
        x *= m_value
    if S_TENSOR:
        x -= alpha * tl.load(s_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    else:
        x -= alpha * s_value
    tl.store(y_ptr + offsets, x.to(y_ptr.dtype.element_ty), mask=inside)


def fused_mul_sub(input, other_mul, other_sub, alpha=1, out=None):
    operands = [t for t in (input, other_mul, other_sub) if isinstance(t, torch.Tensor)]
    shape = torch.broadcast_shapes(*(t.shape for t in operands))
    x, m, s = (
        t.expand(shape).contiguous() if isinstance(t, torch.Tensor) else t
        for t in (input, other_mul, other_sub)
    )
    y = torch.empty(shape, device=x.device, dtype=x.dtype)
    m_tensor, s_tensor = isinstance(m, torch.Tensor), isinstance(s, torch.Tensor)
    n = y.numel()
    if n:
        mul_sub_kernel[(triton.cdiv(n, 1024),)](
            x,
            m if m_tensor else x,
            s if s_tensor else x,
            y,
            0.0 if m_tensor else float(m),
            0.0 if s_tensor else float(s),
            float(alpha),
            n,
            M_TENSOR=m_tensor,
            S_TENSOR=s_tensor,
            BLOCK=1024,
        )
    return y if out is None else out.copy_(y)
