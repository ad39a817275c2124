import torch
import triton
import triton.language as tl


@triton.jit
def index_fill_kernel(x_ptr, index_ptr, value, size, count, inner, BLOCK: tl.constexpr):
    """x is (outer, size, inner); repeated indices write the same value."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    line = tl.program_id(1).to(tl.int64)
    inside = offsets < count * inner
    index = tl.load(index_ptr + offsets // inner, mask=inside, other=0).to(tl.int64)
    target = (line * size + index) * inner + offsets % inner
    filling = tl.zeros((BLOCK,), tl.float32) + value
    tl.store(x_ptr + target, filling.to(x_ptr.dtype.element_ty), mask=inside)


def index_fill_(dim, x, index, value):
    work, dim = x.contiguous(), dim % x.dim()
    outer, inner = 1, 1
    for size in x.shape[:dim]:
        outer *= size
    for size in x.shape[dim + 1 :]:
        inner *= size
    count = index.numel()
    if count and work.numel():
        grid = (triton.cdiv(count * inner, 1024), outer)
        index_fill_kernel[grid](
            work, index.contiguous(), float(value), x.shape[dim], count, inner, BLOCK=1024
        )
    return x if work.data_ptr() == x.data_ptr() and x.is_contiguous() else x.copy_(work)
