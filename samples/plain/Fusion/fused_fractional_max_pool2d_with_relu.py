import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


@triton.jit
def window_start(i, u, size, kernel, count):
    """Where window i starts: the last one ends at the edge."""
    step = (size - kernel).to(tl.float32) / tl.maximum(count - 1, 1).to(tl.float32)
    first = tl.floor((i.to(tl.float32) + u) * step) - tl.floor(u * step)
    return tl.where(i == count - 1, size - kernel, tl.minimum(first.to(tl.int32), size - kernel))


@triton.jit
def fractional_pool_kernel(
    x_ptr,
    y_ptr,
    i_ptr,
    n,
    H,
    W,
    OH,
    OW,
    seed,
    KH: tl.constexpr,
    KW: tl.constexpr,
    INDICES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    plane = (places // (OH * OW)).to(tl.int32)
    row, column = (places // OW % OH).to(tl.int32), (places % OW).to(tl.int32)
    size_h, size_w = tl.zeros_like(row) + H, tl.zeros_like(row) + W
    count_h, count_w = tl.zeros_like(row) + OH, tl.zeros_like(row) + OW
    top = window_start(row, tl.rand(seed, plane * 2), size_h, KH, count_h)
    left = window_start(column, tl.rand(seed, plane * 2 + 1), size_w, KW, count_w)
    best = tl.full((BLOCK,), -1.0, tl.float32)
    where = tl.zeros((BLOCK,), tl.int32)
    for i in range(KH):
        for j in range(KW):
            spot = (top + i) * W + left + j
            x = tl.load(x_ptr + plane.to(tl.int64) * H * W + spot, mask=inside, other=0.0)
            x = tl.maximum(x.to(tl.float32), 0.0)
            where = tl.where(x > best, spot, where)
            best = tl.maximum(best, x)
    tl.store(y_ptr + places, best.to(y_ptr.dtype.element_ty), mask=inside)
    if INDICES:
        tl.store(i_ptr + places, where.to(tl.int64), mask=inside)


def pair(value):
    return (value, value) if isinstance(value, (int, float)) else tuple(value)


def fused_fractional_max_pool2d_with_relu(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False
):
    x, (KH, KW) = input.contiguous(), pair(kernel_size)
    H, W = x.shape[-2:]
    if output_size is None:
        ratio = pair(output_ratio)
        output_size = int(H * ratio[0]), int(W * ratio[1])
    OH, OW = pair(output_size)
    y = torch.empty((*x.shape[:-2], OH, OW), device=x.device, dtype=x.dtype)
    indices = torch.empty(y.shape if return_indices else (1,), device=x.device, dtype=torch.int64)
    n = y.numel()
    fractional_pool_kernel[(triton.cdiv(n, 512),)](
        x,
        y,
        indices,
        n,
        H,
        W,
        OH,
        OW,
        fresh_seed(),
        KH=KH,
        KW=KW,
        INDICES=return_indices,
        BLOCK=512,
    )
    return (y, indices) if return_indices else y
