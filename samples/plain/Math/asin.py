import torch
import triton
import triton.language as tl


@triton.jit
def asin_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    # asin(a) = a + a^3 P(a^2) for a <= 1/2, else pi/2 - 2 asin(sqrt((1 - a) / 2))
    a = tl.abs(x)
    high = a > 0.5
    z = tl.where(high, 0.5 * (1.0 - a), a * a)
    s = tl.where(high, tl.sqrt(z), a)
    p = 0.02930523971
    p = p * z + 0.005443185103
    p = p * z + 0.01930626087
    p = p * z + 0.02213244362
    p = p * z + 0.03039763413
    p = p * z + 0.04464235848
    p = p * z + 0.07500000599
    p = p * z + 0.1666666667
    r = s + s * z * p
    r = tl.where(high, 1.5707963267948966 - 2.0 * r, r)
    y = tl.where(x < 0, -r, r)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def asin(input_tensor: torch.Tensor) -> torch.Tensor:
    x = input_tensor.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    if n:
        asin_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
