import torch
import triton
import triton.language as tl


@triton.jit
def row_kernel(x_ptr, y_ptr, columns, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """One row that fits a block."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + i, mask=i < columns, other=float("-inf")).to(WIDE)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row + i, (e / tl.sum(e, 0)).to(y_ptr.dtype.element_ty), mask=i < columns)


@triton.jit
def long_kernel(x_ptr, y_ptr, columns, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """One row in pieces: maximum and sum in one pass, kept lane by lane; then the quotients."""
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -1e30, WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row + start + i, mask=start + i < columns, other=float("-inf")).to(WIDE)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    largest = tl.max(top, 0)
    whole = tl.sum(total * tl.exp(top - largest), 0)
    for start in range(0, columns, BLOCK):
        inside = start + i < columns
        x = tl.load(x_ptr + row + start + i, mask=inside, other=0.0).to(WIDE)
        y = tl.exp(x - largest) / whole
        tl.store(y_ptr + row + start + i, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def column_kernel(x_ptr, y_ptr, length, inner, WIDE: tl.constexpr, BLOCK: tl.constexpr):
    """x is (outer, length, inner): one block of neighbouring columns, step by step downwards."""
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < inner
    place = tl.program_id(1).to(tl.int64) * length * inner + column
    top = tl.full((BLOCK,), -1e30, WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    for k in range(0, length):
        x = tl.load(x_ptr + place + k * inner, mask=inside, other=0.0).to(WIDE)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    for k in range(0, length):
        x = tl.load(x_ptr + place + k * inner, mask=inside, other=0.0).to(WIDE)
        y = tl.exp(x - top) / total
        tl.store(y_ptr + place + k * inner, y.to(y_ptr.dtype.element_ty), mask=inside)


def softmax(input: torch.Tensor, dim: int, dtype: torch.dtype = None) -> torch.Tensor:
    x, dim = input.contiguous(), dim % input.dim()
    y = torch.empty_like(x, dtype=dtype or x.dtype)
    wide = tl.float64 if y.dtype == torch.float64 else tl.float32
    length, inner, outer = x.shape[dim], 1, 1
    for size in x.shape[dim + 1 :]:
        inner *= size
    for size in x.shape[:dim]:
        outer *= size
    if not x.numel():
        return y
    if inner > 1:
        grid = (triton.cdiv(inner, 128), outer)
        column_kernel[grid](x, y, length, inner, WIDE=wide, BLOCK=128)
    elif length <= 8192:
        row_kernel[(outer,)](x, y, length, WIDE=wide, BLOCK=triton.next_power_of_2(length))
    else:
        long_kernel[(outer,)](x, y, length, WIDE=wide, BLOCK=4096)
    return y
