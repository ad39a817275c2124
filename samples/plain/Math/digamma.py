import torch
import triton
import triton.language as tl


@triton.jit
def digamma_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1.0).to(tl.float32)
    # left of 0 by reflection; then up to 6 step by step, then the asymptotic series
    w = tl.where(x < 0, 1.0 - x, x)
    y = tl.zeros((BLOCK,), tl.float32)
    for _ in range(6):
        low = w < 6.0
        y -= tl.where(low, 1.0 / w, 0.0)
        w = tl.where(low, w + 1.0, w)
    u = 1.0 / (w * w)
    series = u * (
        0.08333333333333333
        - u * (0.008333333333333333 - u * (0.003968253968253968 - u * 0.004166666666666667))
    )
    y += tl.log(w) - 0.5 / w - tl.where(w < 1e8, series, 0.0)
    r = x - tl.floor(x + 0.5)
    angle = 3.141592653589793 * r
    y = tl.where(x < 0, y - 3.141592653589793 * tl.cos(angle) / tl.sin(angle), y)
    y = tl.where((x < 0) & (tl.floor(x) == x), float("nan"), y)
    zero = tl.where(x.to(tl.int32, bitcast=True) < 0, float("inf"), float("-inf"))
    y = tl.where(x == 0, zero, y)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def digamma(input_tensor: torch.Tensor) -> torch.Tensor:
    x = input_tensor.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        digamma_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
