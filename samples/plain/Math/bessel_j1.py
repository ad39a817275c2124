import torch
import triton
import triton.language as tl


@triton.jit
def bessel_j1_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    # up to 4: x times a polynomial in t = x^2 / 8 - 1; beyond: amplitude and phase
    a = tl.abs(x)
    t = tl.minimum(a * a * 0.125, 2.0) - 1.0
    p = 2.9904389491e-12
    p = p * t + -1.6198697955e-10
    p = p * t + 7.1492372696e-9
    p = p * t + -2.5154548636e-7
    p = p * t + 6.8430984635e-6
    p = p * t + -0.00013842260991
    p = p * t + 0.0019736926709
    p = p * t + -0.01835270061
    p = p * t + 0.098274047635
    p = p * t + -0.23976404108
    p = p * t + 0.14148999344
    near = a * p
    b = tl.maximum(a, 4.0)
    u = 1.0 / b
    v = 16.0 * u * u
    f = -3.1046398226e-6
    f = f * v + 1.6585230924e-5
    f = f * v + -4.0878888694e-5
    f = f * v + 6.6171750318e-5
    f = f * v + -9.2847088233e-5
    f = f * v + 0.000163244254
    f = f * v + -0.00056309566664
    f = f * v + 0.0073242128037
    f = f * v + 1.0
    g = 1.490843955e-5
    g = g * v + -7.8110311759e-5
    g = g * v + 0.00018603505701
    g = g * v + -0.00028196126518
    g = g * v + 0.00034678884071
    g = g * v + -0.0004759862472
    g = g * v + 0.0010833658138
    g = g * v + -0.006408659203
    g = g * v + 0.3749999998
    theta = b - 2.356194490192345
    far = 0.7978845608028654 * tl.rsqrt(b) * (tl.cos(theta) * f - tl.sin(theta) * g * u)
    y = tl.where(a < 4.0, near, far)
    y = tl.where(x < 0, -y, y)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def bessel_j1(input: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x = input.contiguous()
    y = torch.empty_like(x) if out is None else out
    n = x.numel()
    if n:
        bessel_j1_kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
    return y
