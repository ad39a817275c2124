import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        return x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1).to(tl.float32)
    y = gelu(x, TANH)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def rows_of(x, dim):
    """The reduced dimensions last, as rows; their shape with and without them."""
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    gone = sorted({d % x.dim() for d in dims})
    kept = [d for d in range(x.dim()) if d not in gone]
    length = 1
    for d in gone:
        length *= x.shape[d]
    rows = x.permute(*kept, *gone).reshape(-1, length).contiguous()
    ones = [1 if d in gone else size for d, size in enumerate(x.shape)]
    return rows, ones, [x.shape[d] for d in kept]


@triton.jit
def partial_moments(
    z_ptr,
    mean_ptr,
    m2_ptr,
    length,
    piece,
    piece_step,
    row_step,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Mean and sum of squared deviations of a chunk; a row is pieces, piece_step apart."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    z_ptr += row.to(tl.int64) * row_step
    begin = chunk * CHUNK
    count = tl.minimum(CHUNK, length - begin)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        place = begin + start + tl.arange(0, BLOCK)
        offsets = (place // piece).to(tl.int64) * piece_step + place % piece
        total += tl.load(z_ptr + offsets, mask=place < length, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / count
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        place = begin + start + tl.arange(0, BLOCK)
        offsets = (place // piece).to(tl.int64) * piece_step + place % piece
        z = tl.load(z_ptr + offsets, mask=place < length, other=0.0).to(tl.float32)
        total += tl.where(place < length, (z - mean) * (z - mean), 0.0)
    slot = row * tl.num_programs(1) + chunk
    tl.store(mean_ptr + slot, mean)
    tl.store(m2_ptr + slot, tl.sum(total, 0))


@triton.jit
def joined_moments(
    part_ptr, m2_ptr, mean_ptr, var_ptr, length, chunks, CHUNK: tl.constexpr, BLOCK: tl.constexpr
):
    row, chunk = tl.program_id(0), tl.arange(0, BLOCK)
    there = chunk < chunks
    count = tl.where(there, tl.minimum(CHUNK, length - chunk * CHUNK), 0).to(tl.float32)
    part = tl.load(part_ptr + row * chunks + chunk, mask=there, other=0.0)
    m2 = tl.load(m2_ptr + row * chunks + chunk, mask=there, other=0.0)
    mean = tl.sum(part * count, 0) / length
    gap = part - mean
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, (tl.sum(m2, 0) + tl.sum(count * gap * gap, 0)) / length)


def moments(z, rows, length, piece, piece_step, row_step):
    chunk = 8192 if length > 8192 else triton.next_power_of_2(length)
    chunks = triton.cdiv(length, chunk)
    part = torch.empty((2, rows, chunks), device=z.device, dtype=torch.float32)
    result = torch.empty((2, rows), device=z.device, dtype=torch.float32)
    partial_moments[(rows, chunks)](
        z,
        part[0],
        part[1],
        length,
        piece,
        piece_step,
        row_step,
        CHUNK=chunk,
        BLOCK=min(chunk, 1024),
    )
    joined_moments[(rows,)](
        part[0],
        part[1],
        result[0],
        result[1],
        length,
        chunks,
        CHUNK=chunk,
        BLOCK=triton.next_power_of_2(chunks),
    )
    return result[0], result[1]


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, ROOT: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n).to(tl.float32) * factor
    if ROOT:
        x = tl.sqrt(x)
    tl.store(y_ptr + offsets, x.to(y_ptr.dtype.element_ty), mask=offsets < n)


def scaled(x, factor, dtype, root=False):
    y = torch.empty(x.shape, device=x.device, dtype=dtype)
    n = x.numel()
    scale_kernel[(triton.cdiv(n, 512),)](x.contiguous(), y, n, float(factor), ROOT=root, BLOCK=512)
    return y


def fused_gelu_std(input, dim=None, keepdim=False, correction=1, approximate="none", out=None):
    x, ones, short = rows_of(input, dim)
    g = torch.empty_like(x, dtype=torch.float32)
    gelu_kernel[(triton.cdiv(x.numel(), 1024),)](
        x, g, x.numel(), TANH=approximate == "tanh", BLOCK=1024
    )
    n = x.shape[1]
    _, var = moments(g, x.shape[0], n, n, n, n)
    y = scaled(var, n / (n - correction), input.dtype, root=True)
    y = y.reshape(ones if keepdim else short)
    return y if out is None else out.copy_(y)
