import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(x_ptr, y_ptr, length, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), dtype=WIDE)
    for start in range(0, length, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * length + offsets, mask=offsets < length, other=0)
        total += x.to(WIDE)
    tl.store(y_ptr + row, tl.sum(total, 0).to(y_ptr.dtype.element_ty))


WIDE = {torch.float64: tl.float64, torch.int64: tl.int64}


def sum(input: torch.Tensor, dim, keepdim: bool = False, dtype=None) -> torch.Tensor:
    dims = [dim] if isinstance(dim, int) else list(dim)
    dims = sorted(d % input.dim() for d in dims) or list(range(input.dim()))
    kept = [d for d in range(input.dim()) if d not in dims]
    length = 1
    for d in dims:
        length *= input.shape[d]
    if dtype is None:
        integral = not (input.is_floating_point() or input.is_complex())
        dtype = torch.int64 if integral else input.dtype
    x = input.permute(*kept, *dims).contiguous()
    shape = [1 if d in dims else size for d, size in enumerate(input.shape)]
    y = torch.empty(shape, device=input.device, dtype=dtype)
    if y.numel():
        wide = WIDE.get(dtype, tl.float32)
        sum_kernel[(y.numel(),)](x, y, length, WIDE=wide, BLOCK=1024)
    return y if keepdim else y.reshape([input.shape[d] for d in kept])
