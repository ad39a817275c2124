import torch
import triton
import triton.language as tl


@triton.jit
def pow_kernel(a_ptr, b_ptr, y_ptr, columns, a_row, a_column, b_row, b_column, BLOCK: tl.constexpr):
    row = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    a = tl.load(a_ptr + row * a_row + column * a_column, mask=inside, other=1.0)
    b = tl.load(b_ptr + row * b_row + column * b_column, mask=inside, other=1.0)
    x, e = a.to(tl.float32), b.to(tl.float32)
    whole = tl.floor(e) == e
    odd = whole & (tl.floor(e * 0.5) * 2.0 != e)
    y = tl.exp2(e * tl.log2(tl.abs(x)))
    y = tl.where(tl.abs(x) == 1.0, 1.0, y)
    negative = x.to(tl.int32, bitcast=True) < 0  # -0 as well
    y = tl.where(negative & odd, -y, y)
    y = tl.where((x < 0) & (e == e) & (whole == 0), float("nan"), y)
    y = tl.where(e == 0, 1.0, y)
    tl.store(y_ptr + row * columns + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def as_matrices(a, b, shape):
    """Both broadcast to `shape`, as rows: one long row where both are contiguous."""
    a, b = a.expand(shape), b.expand(shape)
    if a.is_contiguous() and b.is_contiguous():
        return a.reshape(1, -1), b.reshape(1, -1)
    columns = shape[-1] if shape else 1
    return a.reshape(-1, columns), b.reshape(-1, columns)


def pow(input_tensor, exponent, out=None):
    other_ = exponent
    if not isinstance(other_, torch.Tensor):
        other_ = torch.full((), other_, dtype=input_tensor.dtype, device=input_tensor.device)
    shape = torch.broadcast_shapes(input_tensor.shape, other_.shape)
    y = out
    if y is None:
        y = torch.empty(shape, dtype=input_tensor.dtype, device=input_tensor.device)
    a, b = as_matrices(input_tensor, other_, shape)
    rows, columns = a.shape
    if y.numel():
        block = min(1024, triton.next_power_of_2(columns))
        grid = (triton.cdiv(columns, block), rows)
        pow_kernel[grid](a, b, y, columns, *a.stride(), *b.stride(), BLOCK=block)
    return y
