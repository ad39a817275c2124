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
def select_eq_kernel(
    x_ptr,
    i_ptr,
    o_ptr,
    y_ptr,
    n,
    number,
    length,
    taken,
    inner,
    TENSOR: tl.constexpr,
    BLOCK: tl.constexpr,
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    index = tl.load(i_ptr + places // inner % taken, mask=inside, other=0)
    source = (places // (taken * inner) * length + index) * inner + places % inner
    x = tl.load(x_ptr + source, mask=inside, other=0)
    if TENSOR:
        same = x == tl.load(o_ptr + places, mask=inside, other=0)
    else:
        same = x == number
    tl.store(y_ptr + places, same, mask=inside)


def fused_index_select_eq(input, dim, index, other, *, out=None):
    x, dim = input.contiguous(), dim % input.dim()
    shape = list(x.shape)
    shape[dim] = index.numel()
    y = torch.empty(shape, device=x.device, dtype=torch.bool)
    tensor = isinstance(other, torch.Tensor)
    o, number = (other.expand(shape).contiguous(), 0) if tensor else (x, other)
    _, length, inner = strides_around(x.shape, dim)
    n = y.numel()
    select_eq_kernel[(triton.cdiv(n, 1024),)](
        x, index.contiguous(), o, y, n, number, length, shape[dim], inner, TENSOR=tensor, BLOCK=1024
    )
    return y if out is None else out.copy_(y)
