import torch
import triton
import triton.language as tl


@triton.jit
def join_div_kernel(
    x_ptr,
    d_ptr,
    y_ptr,
    n,
    number,
    width,
    step,
    begin,
    TENSOR: tl.constexpr,
    WHOLE: tl.constexpr,
    MODE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Rows of `width` elements go to `begin` in rows of `step`."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    places = offsets // width * step + begin + offsets % width
    x = tl.load(x_ptr + offsets, mask=inside, other=0)
    if TENSOR:
        divisor = tl.load(d_ptr + places, mask=inside, other=1)
    else:
        divisor = number
    if WHOLE:
        y = x // divisor
        if MODE == 2:
            y -= ((x % divisor != 0) & ((x < 0) != (divisor < 0))).to(y.dtype)
    else:
        y = tl.div_rn(x.to(tl.float32), tl.zeros_like(x.to(tl.float32)) + divisor)
        if MODE == 1:
            y = tl.where(y < 0, tl.ceil(y), tl.floor(y))
        elif MODE == 2:
            y = tl.floor(y)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_hstack_div(tensors, divisor, *, rounding_mode=None, out=None):
    dim = 0 if tensors[0].dim() == 1 else 1
    shape = list(tensors[0].shape)
    shape[dim] = sum(t.shape[dim] for t in tensors)
    tensor = isinstance(divisor, torch.Tensor)
    dtype = tensors[0].dtype
    whole = rounding_mode is not None and not dtype.is_floating_point
    if not dtype.is_floating_point and not whole:
        dtype = torch.float32
    y = torch.empty(shape, device=tensors[0].device, dtype=dtype)
    d = divisor.expand(shape).contiguous() if tensor else y
    step, begin = 1, 0
    for size in shape[dim:]:
        step *= size
    for t in tensors:
        x = t.contiguous()
        width = t.shape[dim] * (step // shape[dim])
        join_div_kernel[(triton.cdiv(x.numel(), 1024),)](
            x,
            d,
            y,
            x.numel(),
            0 if tensor else divisor,
            width,
            step,
            begin,
            TENSOR=tensor,
            WHOLE=whole,
            MODE={None: 0, "trunc": 1, "floor": 2}[rounding_mode],
            BLOCK=1024,
        )
        begin += width
    return y if out is None else out.copy_(y)
