import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(a_ptr, b_ptr, y_ptr, columns, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    a = tl.load(a_ptr + row * a_row + column * a_column, mask=inside, other=0)
    b = tl.load(b_ptr + row * b_row + column * b_column, mask=inside, other=0)
    if y_ptr.dtype.element_ty.is_int():
        y = a * b
    else:
        y = a.to(tl.float32) * b.to(tl.float32)
    tl.store(y_ptr + row * columns + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def as_matrices(a, b, shape):
    """Both broadcast to `shape`, as rows: one long row where both are contiguous."""
    a, b = a.expand(shape), b.expand(shape)
    if a.is_contiguous() and b.is_contiguous():
        return a.reshape(1, -1), b.reshape(1, -1)
    columns = shape[-1] if shape else 1
    return a.reshape(-1, columns), b.reshape(-1, columns)


@triton.jit
def complex_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Pairs (real, imaginary)."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    ar = tl.load(a_ptr + 2 * offsets, mask=inside, other=0.0)
    ai = tl.load(a_ptr + 2 * offsets + 1, mask=inside, other=0.0)
    br = tl.load(b_ptr + 2 * offsets, mask=inside, other=0.0)
    bi = tl.load(b_ptr + 2 * offsets + 1, mask=inside, other=0.0)
    tl.store(y_ptr + 2 * offsets, ar * br - ai * bi, mask=inside)
    tl.store(y_ptr + 2 * offsets + 1, ar * bi + ai * br, mask=inside)


def complex_mul(a, b, y):
    a, b = (torch.view_as_real(t.to(y.dtype).expand(y.shape).contiguous()) for t in (a, b))
    n = y.numel()
    if n:
        complex_kernel[(triton.cdiv(n, 1024),)](a, b, torch.view_as_real(y), n, BLOCK=1024)
    return y


def mul(input, other, out=None):
    other_ = other
    if not isinstance(other_, torch.Tensor):
        dtype = torch.result_type(input, other_)
        other_ = torch.full((), other_, dtype=dtype, device=input.device)
    shape = torch.broadcast_shapes(input.shape, other_.shape)
    y = out
    if y is None:
        y = torch.empty(
            shape, dtype=torch.promote_types(input.dtype, other_.dtype), device=input.device
        )
    if y.dtype.is_complex:
        return complex_mul(input, other_, y)
    a, b = as_matrices(input, other_, shape)
    rows, columns = a.shape
    if y.numel():
        block = min(1024, triton.next_power_of_2(columns))
        grid = (triton.cdiv(columns, block), rows)
        mul_kernel[grid](a, b, y, columns, *a.stride(), *b.stride(), BLOCK=block)
    return y
