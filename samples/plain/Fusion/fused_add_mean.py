import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, n, o_ptr, number, alpha, TENSOR: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1).to(tl.float32)
    if TENSOR:
        y = x + alpha * tl.load(o_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    else:
        y = x + alpha * number
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
def sum_kernel(x_ptr, y_ptr, length, step, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of one chunk of one row."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK):
        places = chunk * CHUNK + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * step + places, mask=places < length, other=0.0).to(
            tl.float32
        )
    tl.store(y_ptr + row * tl.num_programs(1) + chunk, tl.sum(total, 0))


def sum_rows(x):
    """Row sums in float32, in as many steps as the length needs."""
    while x.shape[1] > 1:
        length = x.shape[1]
        chunk = min(triton.next_power_of_2(length), 8192)
        chunks = triton.cdiv(length, chunk)
        y = torch.empty((x.shape[0], chunks), device=x.device, dtype=torch.float32)
        sum_kernel[(x.shape[0], chunks)](x, y, length, length, CHUNK=chunk, BLOCK=min(chunk, 1024))
        x = y
    return x[:, 0]


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


def fused_add_mean(input, other, dim=None, alpha=1, keepdim=False, dtype=None, out=None):
    tensor = isinstance(other, torch.Tensor)
    if tensor:
        input, other = torch.broadcast_tensors(input, other)
    x, ones, short = rows_of(input, dim)
    o, number = (rows_of(other, dim)[0], 0.0) if tensor else (x, float(other))
    total = torch.empty_like(x, dtype=torch.float32)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](
        x, total, n, o, number, float(alpha), TENSOR=tensor, BLOCK=1024
    )
    y = scaled(sum_rows(total), 1 / x.shape[1], dtype or input.dtype)
    y = y.reshape(ones if keepdim else short)
    return y if out is None else out.copy_(y)
