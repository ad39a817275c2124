import torch
import triton
import triton.language as tl

NOWHERE = tl.constexpr(0x7FFFFFFFFFFFFFFF)


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        return x / (1.0 + tl.exp(-2.0 * inner))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def min_gelu_kernel(
    x_ptr,
    at_ptr,
    value_ptr,
    index_ptr,
    length,
    inner,
    chunk,
    chunks,
    highest,
    GIVEN: tl.constexpr,
    TANH: tl.constexpr,
    BLOCK_L: tl.constexpr,
    BLOCK_I: tl.constexpr,
):
    """The smallest element of one chunk of the reduced dimension, for a block of the inner ones; NaN wins.

    Indices count from the start of the dimension, or are read from `at_ptr` (GIVEN).
    """
    outer = (tl.program_id(0) // chunks).to(tl.int64)
    part = tl.program_id(0) % chunks
    c = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    base = outer * length * inner
    best = tl.load(x_ptr + base + tl.zeros((BLOCK_L, BLOCK_I), tl.int64))
    best = best.to(tl.float32)
    index = tl.full((BLOCK_L, BLOCK_I), NOWHERE, tl.int64)
    has_nan = index < 0
    end = tl.minimum(part * chunk + chunk, length)
    for start in range(part * chunk, end, BLOCK_L):
        row = start + tl.arange(0, BLOCK_L)
        place = base + row.to(tl.int64)[:, None] * inner + c[None, :]
        inside = (row[:, None] < end) & (c[None, :] < inner)
        x = tl.load(x_ptr + place, mask=inside, other=0)
        x = x.to(tl.float32)
        if not GIVEN:
            x = gelu(x, TANH)
        nan = inside & (x != x)
        better = (has_nan == 0) & inside & (nan | (x < best) | (index == NOWHERE))
        if GIVEN:
            at = tl.load(at_ptr + place, mask=inside, other=0)
        else:
            at = row.to(tl.int64)[:, None] + tl.zeros((BLOCK_L, BLOCK_I), tl.int64)
        best = tl.where(better, x, best)
        index = tl.where(better, at, index)
        has_nan = has_nan | nan
    value = tl.min(tl.where((index == NOWHERE) | has_nan, highest, best), 0)
    winners = best == value[None, :]
    any_nan = tl.max(has_nan.to(tl.int32), 0) > 0
    winners = tl.where(any_nan[None, :], has_nan, winners)
    value = tl.where(any_nan, float("nan"), value)
    first = tl.min(tl.where(winners, index, NOWHERE), 0)
    target = (outer * chunks + part) * inner + c
    tl.store(index_ptr + target, first, mask=c < inner)
    tl.store(value_ptr + target, value.to(value_ptr.dtype.element_ty), mask=c < inner)


def reduce_along(x, dim, tanh):
    """Smallest values and first indices along a dimension, which stays as size 1."""
    x = x.contiguous()
    length = x.shape[dim]
    inner = x[(0,) * dim].numel() // length
    outer = x.numel() // (length * inner)
    highest = float("inf")
    block_i = min(64, triton.next_power_of_2(inner))
    block_l = 1024 // block_i
    columns = triton.cdiv(inner, block_i)
    chunks = max(1, min(length // (4 * block_l), 2048 // (outer * columns)))
    chunk = triton.cdiv(length, chunks)
    chunks = triton.cdiv(length, chunk)
    shape = [1 if d == dim else size for d, size in enumerate(x.shape)]
    values = torch.empty(shape, device=x.device, dtype=x.dtype)
    indices = torch.empty(shape, device=x.device, dtype=torch.int64)
    if chunks == 1:
        min_gelu_kernel[(outer, columns)](
            x,
            indices,
            values,
            indices,
            length,
            inner,
            length,
            1,
            highest,
            GIVEN=False,
            TANH=tanh,
            BLOCK_L=block_l,
            BLOCK_I=block_i,
        )
        return values, indices
    some = torch.empty((outer, chunks, inner), device=x.device, dtype=torch.float32)
    places = torch.empty((outer, chunks, inner), device=x.device, dtype=torch.int64)
    min_gelu_kernel[(outer * chunks, columns)](
        x,
        places,
        some,
        places,
        length,
        inner,
        chunk,
        chunks,
        highest,
        GIVEN=False,
        TANH=tanh,
        BLOCK_L=block_l,
        BLOCK_I=block_i,
    )
    min_gelu_kernel[(outer, columns)](
        some,
        places,
        values,
        indices,
        chunks,
        inner,
        chunks,
        1,
        highest,
        GIVEN=True,
        TANH=tanh,
        BLOCK_L=block_l,
        BLOCK_I=block_i,
    )
    return values, indices


def min_gelu(input, dim=None, keepdim=False, approximate="none", out=None):
    tanh = approximate == "tanh"
    if dim is None:
        smallest = reduce_along(input.reshape(-1), 0, tanh)[0].reshape(())
        return smallest if out is None else out.copy_(smallest)
    dim %= input.dim()
    values, indices = reduce_along(input, dim, tanh)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))
