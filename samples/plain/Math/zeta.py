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
def zeta_kernel(x_ptr, q_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=2.0).to(tl.float32)
    q = tl.load(q_ptr + offsets, mask=inside, other=1.0).to(tl.float32)
    y = hurwitz(tl.where(x > 1, x, 2.0), tl.where(q > 0, q, 1.0))
    y = tl.where(q > 0, y, tl.where(tl.floor(q) == q, float("inf"), float("nan")))
    y = tl.where(x == 1, float("inf"), tl.where(x < 1, float("nan"), y))
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def zeta(input: torch.Tensor, other: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x, q = torch.broadcast_tensors(input, other)
    x, q = x.contiguous(), q.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        zeta_kernel[(triton.cdiv(n, 1024),)](x, q, y, n, BLOCK=1024)
    return y
