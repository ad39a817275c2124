import torch
import triton
import triton.language as tl


@triton.jit
def ifftshift_kernel(x_ptr, y_ptr, n, N1, N2, N3, N0, s0, s1, s2, s3, BLOCK: tl.constexpr):
    """Both are (N0, N1, N2, N3), contiguous; s0..s3 say how far each dimension is rolled back."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    i3 = (offsets % N3 + s3) % N3
    i2 = (offsets // N3 % N2 + s2) % N2
    i1 = (offsets // (N3 * N2) % N1 + s1) % N1
    i0 = (offsets // (N3 * N2 * N1) + s0) % N0
    source = ((i0 * N1 + i1) * N2 + i2) * N3 + i3
    tl.store(y_ptr + offsets, tl.load(x_ptr + source, mask=inside, other=0), mask=inside)


def ifftshift(input, dim=None):
    x = input.contiguous()
    y = torch.empty_like(x)
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    shifts = [0] * x.dim()
    for d in dims:
        shifts[d] = x.shape[d] // 2
    sizes = [1] * (4 - x.dim()) + list(x.shape)
    shifts = [0] * (4 - x.dim()) + shifts
    n = x.numel()
    if n:
        ifftshift_kernel[(triton.cdiv(n, 1024),)](
            x, y, n, sizes[1], sizes[2], sizes[3], sizes[0], *shifts, BLOCK=1024
        )
    return y
