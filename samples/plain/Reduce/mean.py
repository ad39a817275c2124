import torch
import triton
import triton.language as tl


@triton.jit
def sum_kernel(
    x_ptr,
    y_ptr,
    length,
    inner,
    chunk,
    chunks,
    divisor,
    WIDE: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """The sum of one chunk of the reduced dimension, for a block of the inner ones."""
    outer = (tl.program_id(0) // chunks).to(tl.int64)
    part = tl.program_id(0) % chunks
    c = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    base = outer * length * inner
    total = tl.zeros((BLOCK_L, BLOCK_I), WIDE)
    end = tl.minimum(part * chunk + chunk, length)
    for start in range(part * chunk, end, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        place = base + row.to(tl.int64)[:, None] * inner + c[None, :]
        inside = (row[:, None] < end) & (c[None, :] < inner)
        total += tl.load(x_ptr + place, mask=inside, other=0).to(WIDE)
    result = tl.sum(total, 0) / divisor
    tl.store(
        y_ptr + (outer * chunks + part) * inner + c,
        result.to(y_ptr.dtype.element_ty),
        mask=c < inner,
    )


def mean(input_tensor, dim, keepdim=False, dtype=None, out=None):
    x = input_tensor
    dims = [dim] if isinstance(dim, int) else list(dim)
    dims = sorted(d % x.dim() for d in dims) or list(range(x.dim()))
    if dims != list(range(dims[0], dims[-1] + 1)):  # not neighbours: bring them to the end
        x = x.permute(*(d for d in range(x.dim()) if d not in dims), *dims)
        first = x.dim() - len(dims)
    else:
        first = dims[0]
    x = x.contiguous()
    length = inner = 1
    for size in x.shape[first : first + len(dims)]:
        length *= size
    for size in x.shape[first + len(dims) :]:
        inner *= size
    outer = x.numel() // (length * inner)
    dtype = dtype or x.dtype
    wide = tl.float64 if dtype == torch.float64 else tl.float32
    work = torch.float64 if dtype == torch.float64 else torch.float32
    block_i = min(64, triton.next_power_of_2(inner))
    block_l = 1024 // block_i
    columns = triton.cdiv(inner, block_i)
    chunks = max(1, min(length // (4 * block_l), 2048 // (outer * columns)))
    chunk = triton.cdiv(length, chunks)
    chunks = triton.cdiv(length, chunk)
    y = torch.empty(outer * inner, device=x.device, dtype=dtype)
    blocks = {"BLOCK_L": block_l, "BLOCK_I": block_i, "WIDE": wide}
    if chunks == 1:
        sum_kernel[(outer, columns)](x, y, length, inner, length, 1, length, **blocks)
    else:
        parts = torch.empty((outer, chunks, inner), device=x.device, dtype=work)
        sum_kernel[(outer * chunks, columns)](x, parts, length, inner, chunk, chunks, 1, **blocks)
        sum_kernel[(outer, columns)](parts, y, chunks, inner, chunks, 1, length, **blocks)
    shape = [1 if d in dims else size for d, size in enumerate(input_tensor.shape)]
    if not keepdim:
        shape = [size for d, size in enumerate(input_tensor.shape) if d not in dims]
    y = y.reshape(shape)
    return y if out is None else out.copy_(y)
