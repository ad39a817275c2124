import torch
import triton
import triton.language as tl


@triton.jit
def tile_exp_kernel(x_ptr, y_ptr, n, a, b, c, d, repeat_b, repeat_c, repeat_d, BLOCK: tl.constexpr):
    """Four dimensions: sizes a to d of the input, whose last three repeat."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    wide_d, wide_c, wide_b = d * repeat_d, c * repeat_c, b * repeat_b
    last, rest = places % wide_d % d, places // wide_d
    third, rest = rest % wide_c % c, rest // wide_c
    second, first = rest % wide_b % b, rest // wide_b % a
    x = tl.load(x_ptr + ((first * b + second) * c + third) * d + last, mask=inside, other=0.0)
    y = tl.exp(x.to(tl.float32))
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_tile_exp(input, dims, *, out=None):
    x = input.contiguous()
    rank = max(len(dims), x.dim())
    sizes = [1] * (rank - x.dim()) + list(x.shape)
    repeats = [1] * (rank - len(dims)) + list(dims)
    y = torch.empty([s * r for s, r in zip(sizes, repeats)], device=x.device, dtype=x.dtype)
    if rank > 4:
        raise NotImplementedError("at most four dimensions")
    a, b, c, d = [1] * (4 - rank) + sizes
    _, rb, rc, rd = [1] * (4 - rank) + repeats
    n = y.numel()
    tile_exp_kernel[(triton.cdiv(n, 1024),)](x, y, n, a, b, c, d, rb, rc, rd, BLOCK=1024)
    return y if out is None else out.copy_(y)
