import torch
import triton
import triton.language as tl


@triton.jit
def index_select_kernel(x_ptr, index_ptr, y_ptr, size, count, inner, BLOCK: tl.constexpr):
    """x is (outer, size, inner), y is (outer, count, inner)."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    line = tl.program_id(1).to(tl.int64)
    inside = offsets < count * inner
    place = offsets // inner
    index = tl.load(index_ptr + place, mask=inside, other=0).to(tl.int64)
    source = (line * size + index) * inner + offsets % inner
    value = tl.load(x_ptr + source, mask=inside, other=0)
    tl.store(y_ptr + line * count * inner + offsets, value, mask=inside)


def index_select(input: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    x, dim = input.contiguous(), dim % input.dim()
    outer, inner = 1, 1
    for size in x.shape[:dim]:
        outer *= size
    for size in x.shape[dim + 1 :]:
        inner *= size
    size, count = x.shape[dim], index.numel()
    y = torch.empty((*x.shape[:dim], count, *x.shape[dim + 1 :]), dtype=x.dtype, device=x.device)
    if y.numel():
        grid = (triton.cdiv(count * inner, 1024), outer)
        index_select_kernel[grid](x, index.contiguous(), y, size, count, inner, BLOCK=1024)
    return y
