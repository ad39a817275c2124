import torch
import triton
import triton.language as tl


@triton.jit
def moments_kernel(
    x_ptr,
    count_ptr,
    mean_ptr,
    square_ptr,
    length,
    inner,
    chunk,
    chunks,
    BLOCK_L: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """Count, mean and sum of squared distances of one chunk, kept up element by element."""
    outer = (tl.program_id(0) // chunks).to(tl.int64)
    part = tl.program_id(0) % chunks
    c = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    base = outer * length * inner
    count = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    mean = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    square = tl.zeros((BLOCK_L, BLOCK_I), tl.float32)
    end = tl.minimum(part * chunk + chunk, length)
    for start in range(part * chunk, end, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        place = base + row.to(tl.int64)[:, None] * inner + c[None, :]
        inside = (row[:, None] < end) & (c[None, :] < inner)
        x = tl.load(x_ptr + place, mask=inside, other=0.0).to(tl.float32)
        count += tl.where(inside, 1.0, 0.0)
        distance = tl.where(inside, x - mean, 0.0)
        mean += distance / tl.maximum(count, 1.0)
        square += tl.where(inside, distance * (x - mean), 0.0)
    n = tl.sum(count, 0)
    average = tl.sum(mean * count, 0) / tl.maximum(n, 1.0)
    off = mean - average[None, :]
    total = tl.sum(square + count * off * off, 0)
    target = (outer * chunks + part) * inner + c
    tl.store(count_ptr + target, n, mask=c < inner)
    tl.store(mean_ptr + target, average, mask=c < inner)
    tl.store(square_ptr + target, total, mask=c < inner)


@triton.jit
def finish_kernel(
    count_ptr,
    mean_ptr,
    square_ptr,
    y_ptr,
    inner,
    chunks,
    correction,
    BLOCK_C: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """Join the chunks' moments."""
    outer = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    part = tl.arange(0, BLOCK_C)
    inside = (part[:, None] < chunks) & (c[None, :] < inner)
    place = (outer * chunks + part[:, None]) * inner + c[None, :]
    count = tl.load(count_ptr + place, mask=inside, other=0.0)
    mean = tl.load(mean_ptr + place, mask=inside, other=0.0)
    square = tl.load(square_ptr + place, mask=inside, other=0.0)
    n = tl.sum(count, 0)
    average = tl.sum(mean * count, 0) / tl.maximum(n, 1.0)
    off = mean - average[None, :]
    variance = tl.sum(square + count * off * off, 0) / tl.maximum(n - correction, 0.0)
    tl.store(
        y_ptr + outer * inner + c, tl.sqrt(variance).to(y_ptr.dtype.element_ty), mask=c < inner
    )


def std(input: torch.Tensor, dim=None, correction=1, keepdim=False, out=None):
    x = input
    dims = list(range(x.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = sorted(d % x.dim() for d in dims)
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
    block_i = min(64, triton.next_power_of_2(inner))
    block_l = 1024 // block_i
    columns = triton.cdiv(inner, block_i)
    chunks = max(1, min(length // (4 * block_l), 1024 // (outer * columns)))
    chunk = triton.cdiv(length, chunks)
    chunks = triton.cdiv(length, chunk)
    moments = torch.empty((3, outer, chunks, inner), device=x.device, dtype=torch.float32)
    y = torch.empty(outer * inner, device=x.device, dtype=x.dtype)
    moments_kernel[(outer * chunks, columns)](
        x,
        moments[0],
        moments[1],
        moments[2],
        length,
        inner,
        chunk,
        chunks,
        BLOCK_L=block_l,
        BLOCK_I=block_i,
    )
    block_i = 1 if inner == 1 else 16
    finish_kernel[(outer, triton.cdiv(inner, block_i))](
        moments[0],
        moments[1],
        moments[2],
        y,
        inner,
        chunks,
        float(correction),
        BLOCK_C=triton.next_power_of_2(chunks),
        BLOCK_I=block_i,
    )
    shape = [1 if d in dims else size for d, size in enumerate(input.shape)]
    if not keepdim:
        shape = [size for d, size in enumerate(input.shape) if d not in dims]
    y = y.reshape(shape)
    return y if out is None else out.copy_(y)
