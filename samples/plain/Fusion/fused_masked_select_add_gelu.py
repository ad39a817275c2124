import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        return x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def count_kernel(m_ptr, count_ptr, n, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(m_ptr + places, mask=places < n, other=0).to(tl.int32)
    tl.store(count_ptr + tl.program_id(0), tl.sum(m, 0).to(tl.int64))


@triton.jit
def ends_kernel(count_ptr, end_ptr, length, BLOCK: tl.constexpr):
    done = tl.zeros((), tl.int64)
    for start in range(0, length, BLOCK):
        i = start + tl.arange(0, BLOCK)
        count = tl.load(count_ptr + i, mask=i < length, other=0)
        tl.store(end_ptr + i, tl.cumsum(count, 0) + done, mask=i < length)
        done += tl.sum(count, 0)


@triton.jit
def select_kernel(
    x_ptr, m_ptr, count_ptr, end_ptr, y_ptr, n, shift, TANH: tl.constexpr, BLOCK: tl.constexpr
):
    block = tl.program_id(0)
    places = block.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = tl.load(m_ptr + places, mask=places < n, other=0).to(tl.int32)
    begin = tl.load(end_ptr + block) - tl.load(count_ptr + block)
    target = begin + tl.cumsum(m, 0) - 1
    x = tl.load(x_ptr + places, mask=m != 0, other=0.0).to(tl.float32)
    tl.store(y_ptr + target, gelu(x + shift, TANH).to(y_ptr.dtype.element_ty), mask=m != 0)


def fused_masked_select_add_gelu(input, mask, other, *, alpha=1, approximate="none", out=None):
    x, m = torch.broadcast_tensors(input, mask)
    x, m = x.contiguous(), m.contiguous().view(torch.uint8)
    n, block = x.numel(), 1024
    blocks = triton.cdiv(n, block)
    count = torch.empty((blocks,), device=x.device, dtype=torch.int64)
    end = torch.empty_like(count)
    count_kernel[(blocks,)](m, count, n, BLOCK=block)
    ends_kernel[(1,)](count, end, blocks, BLOCK=1024)
    y = torch.empty((int(end[-1]),), device=x.device, dtype=x.dtype)
    select_kernel[(blocks,)](
        x, m, count, end, y, n, float(alpha * other), TANH=approximate == "tanh", BLOCK=block
    )
    return y if out is None else out.copy_(y)
