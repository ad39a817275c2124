import torch
import triton
import triton.language as tl


@triton.jit
def erfc_sqrt_kernel(x_ptr, first_ptr, root_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    # 1 - erf(x) where that is not small, else exp(-x^2) times a polynomial in t = 4 / (4 + x)
    a = tl.maximum(x, 0.5)
    t = 4.0 / (4.0 + a)
    p = 0.043478080577
    p = p * t + -0.36099779337
    p = p * t + 1.1463773358
    p = p * t + -1.9259340214
    p = p * t + 2.2617718066
    p = p * t + -1.6961155618
    p = p * t + 1.0864017663
    p = p * t + -0.31896977573
    p = p * t + 0.24052109193
    p = p * t + 0.10128962383
    p = p * t + 0.14038792925
    p = p * t + 0.14072988415
    p = p * t + 0.1410595887
    # exp(-a^2) with the part of a^2 that rounding loses
    high = (a.to(tl.int32, bitcast=True) & -4096).to(tl.float32, bitcast=True)
    low = (high - a) * (high + a)
    tail = tl.exp(-high * high) * tl.exp(low) * t * p
    tail = tl.where(a > 10.6, 0.0, tail)
    y = tl.where(x < 0.5, 1.0 - tl.erf(x), tail)
    y = tl.where(x != x, x, y)
    tl.store(first_ptr + offsets, y.to(first_ptr.dtype.element_ty), mask=inside)
    tl.store(root_ptr + offsets, tl.sqrt(x).to(root_ptr.dtype.element_ty), mask=inside)


def erfc_sqrt(input: torch.Tensor):
    x = input.contiguous()
    first, root = torch.empty_like(x), torch.empty_like(x)
    n = x.numel()
    if n:
        erfc_sqrt_kernel[(triton.cdiv(n, 1024),)](x, first, root, n, BLOCK=1024)
    return first, root
