import torch
import triton
import triton.language as tl


@triton.jit
def repeat_log_softmax_kernel(
    x_ptr,
    y_ptr,
    r_ptr,
    e_ptr,
    length,
    total,
    inner,
    repeats,
    COUNTS: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The sum weighs each element by its repeats; r: repeats, e: where each one's copies end."""
    line = tl.program_id(0).to(tl.int64)
    outer, place = line // inner, line % inner
    x_ptr += outer * length * inner + place
    y_ptr += outer * total * inner + place
    top = tl.full((BLOCK,), -float("inf"), WIDE)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i * inner, mask=i < length, other=-float("inf")).to(WIDE)
        if COUNTS:
            x = tl.where(tl.load(r_ptr + i, mask=i < length, other=0) > 0, x, -float("inf"))
        top = tl.maximum(top, x)
    highest = tl.max(top, 0)
    sums = tl.zeros((BLOCK,), WIDE)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i * inner, mask=i < length, other=-float("inf")).to(WIDE)
        if COUNTS:
            count = tl.load(r_ptr + i, mask=i < length, other=0)
            sums += tl.where(
                count > 0, tl.exp(tl.where(count > 0, x, highest) - highest) * count, 0.0
            )
        else:
            sums += tl.exp(x - highest) * repeats
    shift = highest + tl.log(tl.sum(sums, 0))
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i * inner, mask=i < length, other=0.0).to(WIDE)
        y = (x - shift).to(y_ptr.dtype.element_ty)
        if COUNTS:
            count = tl.load(r_ptr + i, mask=i < length, other=0)
            begin = tl.load(e_ptr + i, mask=i < length, other=0) - count
            for k in range(repeats):
                tl.store(y_ptr + (begin + k) * inner, y, mask=(i < length) & (k < count))
        else:
            for k in range(repeats):
                tl.store(y_ptr + (i * repeats + k) * inner, y, mask=i < length)


@triton.jit
def ends_kernel(r_ptr, e_ptr, length, BLOCK: tl.constexpr):
    done = tl.zeros((), tl.int64)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        count = tl.load(r_ptr + i, mask=i < length, other=0)
        tl.store(e_ptr + i, tl.cumsum(count, 0) + done, mask=i < length)
        done += tl.sum(count, 0)


def fused_repeat_interleave_log_softmax(
    input, repeats, dim=None, *, output_size=None, dtype=None, out=None
):
    x = input.reshape(-1) if dim is None else input.contiguous()
    dim = 0 if dim is None else dim % x.dim()
    inner = 1
    for size in x.shape[dim + 1 :]:
        inner *= size
    length, counts = x.shape[dim], isinstance(repeats, torch.Tensor)
    r, e, most = x, x, repeats
    if counts:
        r = repeats.to(torch.int64).contiguous()
        e = torch.empty_like(r)
        ends_kernel[(1,)](r, e, length, BLOCK=1024)
        most = int(r.max())
        output_size = int(e[-1]) if output_size is None else output_size
    total = output_size if counts else length * repeats
    shape = list(x.shape)
    shape[dim] = total
    y = torch.empty(shape, device=x.device, dtype=dtype or x.dtype)
    repeat_log_softmax_kernel[(x.numel() // length,)](
        x,
        y,
        r,
        e,
        length,
        total,
        inner,
        most,
        COUNTS=counts,
        WIDE=tl.float64 if y.dtype == torch.float64 else tl.float32,
        BLOCK=min(triton.next_power_of_2(length), 1024),
    )
    return y if out is None else out.copy_(y)
