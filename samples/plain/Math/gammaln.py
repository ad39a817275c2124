import torch
import triton
import triton.language as tl


@triton.jit
def gammaln_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1.0).to(tl.float32)
    # left of 1/2 by reflection; up to 3 (w - 1)(w - 2) times a polynomial; beyond, Stirling's series at w + 4
    w = tl.where(x < 0.5, 1.0 - x, x)
    t = tl.minimum((w - 1.75) * 0.8, 1.0)
    p = -0.00047546272492
    p = p * t + 0.00068766523358
    p = p * t + 0.0016193178284
    p = p * t + -0.0023385631975
    p = p * t + -0.0028299703292
    p = p * t + 0.0040897990798
    p = p * t + 0.0024183482262
    p = p * t + -0.0034843889469
    p = p * t + -0.0019221286121
    p = p * t + 0.0027967715888
    p = p * t + -0.00035998148191
    p = p * t + 0.00058425220329
    p = p * t + -0.0022336218549
    p = p * t + 0.003426376476
    p = p * t + -0.0050412550223
    p = p * t + 0.0079708514662
    p = p * t + -0.012898360778
    p = p * t + 0.021428186437
    p = p * t + -0.037214735128
    p = p * t + 0.069563160847
    p = p * t + -0.14935198339
    p = p * t + 0.45013931227
    near = (w - 1.0) * (w - 2.0) * p
    b = tl.maximum(w, 3.0)
    shift = b < 7.0
    product = tl.where(shift, b * (b + 1.0) * (b + 2.0) * (b + 3.0), 1.0)
    b = tl.where(shift, b + 4.0, b)
    u = 1.0 / b
    v = u * u
    series = u * (0.08333333333333333 - v * (0.002777777777777778 - v * 0.0007936507936507937))
    far = (b - 0.5) * (tl.log(b) - 1.0) - 0.5 + 0.9189385332046727 + series - tl.log(product)
    y = tl.where(w < 3.0, near, far)
    r = x - tl.floor(x)
    r = tl.minimum(r, 1.0 - r)
    sine = tl.where(
        tl.abs(x) < 0.5, tl.sin(3.141592653589793 * tl.abs(x)), tl.sin(3.141592653589793 * r)
    )
    y = tl.where(x < 0.5, tl.log(3.141592653589793 / sine) - y, y)
    pole = (x <= 0) & (tl.floor(x) == x)
    y = tl.where(pole | (tl.abs(x) == float("inf")), float("inf"), y)
    y = tl.where(x != x, x, y)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def gammaln(input: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x = input.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        gammaln_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
