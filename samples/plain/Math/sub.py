import torch
import triton
import triton.language as tl


@triton.jit
def sub_kernel(
    a_ptr,
    b_ptr,
    y_ptr,
    columns,
    a_row,
    a_column,
    b_row,
    b_column,
    alpha,
    ALPHA_INT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(1).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = column < columns
    a = tl.load(a_ptr + row * a_row + column * a_column, mask=inside, other=0)
    b = tl.load(b_ptr + row * b_row + column * b_column, mask=inside, other=0)
    if y_ptr.dtype.element_ty.is_int():
        y = a - b * ALPHA_INT
    else:
        y = a.to(tl.float32) - b.to(tl.float32) * alpha
    tl.store(y_ptr + row * columns + column, y.to(y_ptr.dtype.element_ty), mask=inside)


def as_matrices(a, b, shape):
    """Both broadcast to `shape`, as rows: one long row where both are contiguous."""
    a, b = a.expand(shape), b.expand(shape)
    if a.is_contiguous() and b.is_contiguous():
        return a.reshape(1, -1), b.reshape(1, -1)
    columns = shape[-1] if shape else 1
    return a.reshape(-1, columns), b.reshape(-1, columns)


def sub(input: torch.Tensor, other: torch.Tensor, *, alpha: float = 1, out: torch.Tensor = None):
    other_ = other
    if not isinstance(other_, torch.Tensor):
        other_ = torch.full((), other_, dtype=input.dtype, device=input.device)
    shape = torch.broadcast_shapes(input.shape, other_.shape)
    y = out
    if y is None:
        y = torch.empty(shape, dtype=input.dtype, device=input.device)
    a, b = as_matrices(input, other_, shape)
    rows, columns = a.shape
    if y.numel():
        block = min(1024, triton.next_power_of_2(columns))
        grid = (triton.cdiv(columns, block), rows)
        sub_kernel[grid](
            a,
            b,
            y,
            columns,
            *a.stride(),
            *b.stride(),
            float(alpha),
            ALPHA_INT=int(alpha),
            BLOCK=block,
        )
    return y
