import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        return x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


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
def gelu_min_kernel(
    x_ptr,
    i_ptr,
    y_ptr,
    p_ptr,
    length,
    FIRST: tl.constexpr,
    TANH: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Smallest value of a chunk and its place; the first pass computes GELU."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    best = tl.full((BLOCK,), float("inf"), tl.float32)
    place = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, CHUNK, BLOCK):
        offsets = chunk * CHUNK + start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * length + offsets, mask=offsets < length, other=0.0)
        if FIRST:
            x = gelu(x.to(tl.float32), TANH)
        x = tl.where(offsets < length, x, float("inf"))
        place = tl.where(x < best, offsets, place)
        best = tl.minimum(best, x)
    least = tl.min(best, 0)
    where = tl.min(tl.where(best == least, place, 2147483647), 0)
    slot = row * tl.num_programs(1) + chunk
    if not FIRST:
        where = tl.load(i_ptr + row * length + where)
    tl.store(y_ptr + slot, least)
    tl.store(p_ptr + slot, where)


def fused_gelu_min(input, approximate="none", dim=None, keepdim=False, out=None):
    x, ones, short = rows_of(input, dim)
    places, first = x, True
    while first or x.shape[1] > 1:
        length = x.shape[1]
        chunk = min(triton.next_power_of_2(length), 8192)
        chunks = triton.cdiv(length, chunk)
        y = torch.empty((x.shape[0], chunks), device=x.device, dtype=torch.float32)
        p = torch.empty((x.shape[0], chunks), device=x.device, dtype=torch.int64)
        gelu_min_kernel[(x.shape[0], chunks)](
            x,
            places,
            y,
            p,
            length,
            FIRST=first,
            TANH=approximate == "tanh",
            CHUNK=chunk,
            BLOCK=min(chunk, 512),
        )
        x, places, first = y, p, False
    shape = ones if keepdim and dim is not None else short
    y = x.to(input.dtype).reshape(shape)
    return y if dim is None else (y, places.reshape(shape))
