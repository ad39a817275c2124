import torch
import triton
import triton.language as tl


@triton.jit
def pass_kernel(
    x_ptr, y_ptr, n, inner, done, rest, scale, total, RADIX: tl.constexpr, BLOCK: tl.constexpr
):
    """One pass of Stockham's transform along the middle of (outer, n, inner), n = done * RADIX * rest.

    Before it, x[k + done * j] is coefficient k of the sub-sequence that starts at j; it joins
    RADIX of them. Numbers are pairs (real, imaginary).
    """
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < total
    column = offsets % inner
    place = offsets // inner % n
    line = offsets // inner // n
    length = done * RADIX
    k = (place % length).to(tl.int32)
    m = place // length
    base = (line * n + k % done + done * m) * inner + column
    step = done * rest * inner
    real = tl.zeros((BLOCK,), tl.float32)
    imag = tl.zeros((BLOCK,), tl.float32)
    for p in range(0, RADIX):
        xr = tl.load(x_ptr + 2 * (base + p * step), mask=inside, other=0.0)
        xi = tl.load(x_ptr + 2 * (base + p * step) + 1, mask=inside, other=0.0)
        turn = ((p * k.to(tl.int64)) % length).to(tl.float32) / length
        angle = -6.283185307179586 * tl.where(turn > 0.5, turn - 1.0, turn)
        c, s = tl.cos(angle), tl.sin(angle)
        real += xr * c - xi * s
        imag += xr * s + xi * c
    tl.store(y_ptr + 2 * offsets, real * scale, mask=inside)
    tl.store(y_ptr + 2 * offsets + 1, imag * scale, mask=inside)


def factors(n):
    """n as a product of 8s, 4s and primes."""
    found = []
    for p in (8, 4, 2, 3, 5, 7):
        while n % p == 0:
            found.append(p)
            n //= p
    p = 11
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p = p + 2 if p * p <= n else max(n, 2)
    return found or [1]


def transform(x, dim, scale):
    """The transform of (…, 2) along one dimension."""
    n, inner, total = x.shape[dim], 1, x.numel() // 2
    for size in x.shape[dim + 1 : -1]:
        inner *= size
    done = 1
    radices = factors(n)
    for i, radix in enumerate(radices):
        y = torch.empty_like(x)
        last = i == len(radices) - 1
        pass_kernel[(triton.cdiv(total, 512),)](
            x,
            y,
            n,
            inner,
            done,
            n // (done * radix),
            scale if last else 1.0,
            total,
            RADIX=radix,
            BLOCK=512,
        )
        x, done = y, done * radix
    return x


def resized(x, dim, size):
    """Cut, or padded with zeros, along one dimension."""
    if size <= x.shape[dim]:
        return x.narrow(dim, 0, size)
    shape = list(x.shape)
    shape[dim] = size - x.shape[dim]
    return torch.cat((x, torch.zeros(shape, dtype=x.dtype, device=x.device)), dim)


def fftn(input, s=None, dim=None, norm=None, out=None):
    if dim is None:
        dims = range(input.dim()) if s is None else range(input.dim() - len(s), input.dim())
    else:
        dims = [dim] if isinstance(dim, int) else dim
    dims = [d % input.dim() for d in dims]
    x = input
    for d, size in zip(dims, s or []):
        x = resized(x, d, x.shape[d] if size == -1 else size)
    x = torch.view_as_real(x.to(torch.complex64).contiguous())
    for d in dims:
        n = x.shape[d]
        scale = {"forward": 1.0 / n, "ortho": n**-0.5}.get(norm, 1.0)
        x = transform(x, d, scale)
    y = torch.view_as_complex(x)
    return y if out is None else out.copy_(y)
