import torch
import triton
import triton.language as tl


@triton.jit
def tanh(x):
    """Odd series near 0, where 1 - 2 / (exp(2x) + 1) would cancel."""
    s = x * x
    near = x * (1.0 + s * (-1.0 / 3 + s * (2.0 / 15 + s * (-17.0 / 315 + s * (62.0 / 2835)))))
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.25, near, tl.where(x < 0, -far, far))


@triton.jit
def mark_kernel(i_ptr, used_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(i_ptr + places, mask=places < n, other=0)
    tl.store(used_ptr + index, 1, mask=places < n)


@triton.jit
def renorm_kernel(w_ptr, used_ptr, width, max_norm, ONE: tl.constexpr, BLOCK: tl.constexpr):
    """Brings a used row that is longer than max_norm to it."""
    row, c = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    w = tl.load(w_ptr + row * width + c, mask=c < width, other=0.0)
    wide = w.to(tl.float32)
    norm = tl.sum(tl.abs(wide), 0) if ONE else tl.sqrt(tl.sum(wide * wide, 0))
    if (norm > max_norm) & (tl.load(used_ptr + row) != 0):
        tl.store(
            w_ptr + row * width + c, (wide * (max_norm / (norm + 1e-7))).to(w.dtype), mask=c < width
        )


@triton.jit
def embedding_kernel(i_ptr, w_ptr, o_ptr, y_ptr, n, width, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    index = tl.load(i_ptr + places // width, mask=inside, other=0)
    w = tl.load(w_ptr + index * width + places % width, mask=inside, other=0.0).to(tl.float32)
    y = tanh(w + tl.load(o_ptr + places, mask=inside, other=0.0).to(tl.float32))
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_embedding_add_tanh(
    input_indices,
    weight,
    other,
    *,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
    out=None,
):
    i, w = input_indices.contiguous(), weight.contiguous()
    rows, width = w.shape
    if max_norm is not None:
        if norm_type not in (1.0, 2.0):
            raise NotImplementedError("norms of order 1 and 2 only")
        used = torch.zeros((rows,), device=w.device, dtype=torch.int32)
        mark_kernel[(triton.cdiv(i.numel(), 256),)](i, used, i.numel(), BLOCK=256)
        renorm_kernel[(rows,)](
            w, used, width, max_norm, ONE=norm_type == 1.0, BLOCK=triton.next_power_of_2(width)
        )
        if w.data_ptr() != weight.data_ptr():
            weight.copy_(w)
    shape = (*i.shape, width)
    y = torch.empty(shape, device=w.device, dtype=w.dtype)
    n = y.numel()
    o = other.expand(shape).contiguous()
    embedding_kernel[(triton.cdiv(n, 1024),)](i, w, o, y, n, width, BLOCK=1024)
    return y if out is None else out.copy_(y)
