import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=inside, other=0), mask=inside)


@triton.jit
def scatter_kernel(
    index_ptr, src_ptr, y_ptr, n, S1, S2, S3, y0, y1, y2, y3, DIM: tl.constexpr, BLOCK: tl.constexpr
):
    """index is (., S1, S2, S3) and contiguous, src as well; y0..y3 are strides of the copy."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    i3 = offsets % S3
    i2 = offsets // S3 % S2
    i1 = offsets // (S3 * S2) % S1
    i0 = offsets // (S3 * S2 * S1)
    index = tl.load(index_ptr + offsets, mask=inside, other=0).to(tl.int64)
    src = tl.load(src_ptr + offsets, mask=inside, other=0)
    if DIM == 0:
        i0 = index
    elif DIM == 1:
        i1 = index
    elif DIM == 2:
        i2 = index
    else:
        i3 = index
    tl.store(y_ptr + i0 * y0 + i1 * y1 + i2 * y2 + i3 * y3, src, mask=inside)


def scatter(input, dim, index, src):
    x = input.contiguous()
    y = torch.empty_like(x)
    missing = 4 - x.dim()
    dim = dim % x.dim() + missing
    copy_kernel[(triton.cdiv(x.numel(), 2048),)](x, y, x.numel(), BLOCK=2048)
    where = index.contiguous()
    values = src[tuple(slice(size) for size in index.shape)].contiguous()
    shape = [1] * missing + list(index.shape)
    strides = [0] * missing + list(y.stride())
    n = where.numel()
    if n:
        scatter_kernel[(triton.cdiv(n, 1024),)](
            where, values, y, n, shape[1], shape[2], shape[3], *strides, DIM=dim, BLOCK=1024
        )
    return y
