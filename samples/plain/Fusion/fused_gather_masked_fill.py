import torch
import triton
import triton.language as tl


def strides_around(shape, dim):
    """Sizes before, along and after a dimension."""
    dim = dim % len(shape)
    before = inner = 1
    for size in shape[:dim]:
        before *= size
    for size in shape[dim + 1 :]:
        inner *= size
    return before, shape[dim], inner


@triton.jit
def gather_fill_kernel(
    x_ptr, i_ptr, m_ptr, y_ptr, n, value_ptr, length, taken, inner, BLOCK: tl.constexpr
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    index = tl.load(i_ptr + places, mask=inside, other=0)
    masked = tl.load(m_ptr + places, mask=inside, other=0) != 0
    source = (places // (taken * inner) * length + index) * inner + places % inner
    x = tl.load(x_ptr + source, mask=inside & ~masked, other=0)
    tl.store(y_ptr + places, tl.where(masked, tl.load(value_ptr), x), mask=inside)


def fused_gather_masked_fill(input, dim, index, mask, value, *, sparse_grad=False, out=None):
    dim = dim % input.dim()
    for d in range(input.dim()):
        if d != dim and index.shape[d] != input.shape[d]:
            input = input.narrow(d, 0, index.shape[d])
    x, i = input.contiguous(), index.contiguous()
    m = mask.expand(index.shape).contiguous().view(torch.uint8)
    y = torch.empty(index.shape, device=x.device, dtype=x.dtype)
    _, length, inner = strides_around(x.shape, dim)
    n = y.numel()
    number = float(value) if x.is_floating_point() else int(value)
    filler = torch.full((1,), number, device=x.device, dtype=x.dtype)
    gather_fill_kernel[(triton.cdiv(n, 1024),)](
        x, i, m, y, n, filler, length, index.shape[dim], inner, BLOCK=1024
    )
    return y if out is None else out.copy_(y)
