import torch
import triton
import triton.language as tl


@triton.jit
def hurwitz(s, q):
    """Sum over k >= 0 of (q + k)^-s: eight terms, then the Euler-Maclaurin formula."""
    total = tl.exp2(-s * tl.log2(q))
    for k in tl.static_range(1, 8):
        total += tl.exp2(-s * tl.log2(q + k))
    a = q + 8.0
    power = tl.exp2(-s * tl.log2(a))
    total += power * (a / (s - 1.0) + 0.5)
    u = 1.0 / a
    term = s * u * power
    total += term * 0.08333333333333333
    term *= (s + 1.0) * (s + 2.0) * u * u
    total -= term * 0.001388888888888889
    term *= (s + 3.0) * (s + 4.0) * u * u
    total += term * 3.306878306878307e-05
    term *= (s + 5.0) * (s + 6.0) * u * u
    return total - term * 8.267195767195768e-07


@triton.jit
def polygamma_kernel(x_ptr, y_ptr, n, s, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1.0).to(tl.float32)
    y = factor * hurwitz(s, x)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def polygamma(n, input, *, out=None):
    x = input.contiguous()
    y = torch.empty_like(x) if out is None else out
    factor = 1.0 if n % 2 else -1.0
    for k in range(2, n + 1):
        factor *= k
    count = x.numel()
    if count:
        grid = (triton.cdiv(count, 1024),)
        polygamma_kernel[grid](x, y, count, float(n + 1), factor, BLOCK=1024)
    return y
