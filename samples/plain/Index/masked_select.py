import torch
import triton
import triton.language as tl


@triton.jit
def count_kernel(mask_ptr, count_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    chosen = tl.load(mask_ptr + offsets, mask=offsets < n, other=0)
    tl.store(count_ptr + block, tl.sum((chosen != 0).to(tl.int64), 0))


@triton.jit
def scan_kernel(count_ptr, start_ptr, blocks, BLOCK: tl.constexpr):
    """Where each block's elements start; the total comes last."""
    total = tl.zeros((1,), tl.int64)
    i = tl.arange(0, BLOCK)
    for first in range(0, blocks, BLOCK):
        inside = first + i < blocks
        count = tl.load(count_ptr + first + i, mask=inside, other=0)
        tl.store(start_ptr + first + i, total + tl.cumsum(count, 0) - count, mask=inside)
        total += tl.sum(count, 0)
    tl.store(start_ptr + blocks + tl.arange(0, 1), total)


@triton.jit
def write_kernel(x_ptr, mask_ptr, start_ptr, y_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    chosen = (tl.load(mask_ptr + offsets, mask=inside, other=0) != 0).to(tl.int32)
    place = tl.load(start_ptr + block) + tl.cumsum(chosen, 0) - chosen
    x = tl.load(x_ptr + offsets, mask=inside & (chosen != 0), other=0)
    tl.store(y_ptr + place, x, mask=inside & (chosen != 0))


def masked_select(input: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    shape = torch.broadcast_shapes(input.shape, mask.shape)
    x = input.expand(shape).contiguous()
    chosen = mask.expand(shape).contiguous().view(torch.int8)
    n, block = x.numel(), 2048
    blocks = triton.cdiv(n, block)
    counts = torch.empty(blocks, dtype=torch.int64, device=x.device)
    starts = torch.empty(blocks + 1, dtype=torch.int64, device=x.device)
    if not n:
        return torch.empty(0, dtype=x.dtype, device=x.device)
    count_kernel[(blocks,)](chosen, counts, n, BLOCK=block)
    scan_kernel[(1,)](counts, starts, blocks, BLOCK=1024)
    y = torch.empty(int(starts[-1].item()), dtype=x.dtype, device=x.device)
    if y.numel():
        write_kernel[(blocks,)](x, chosen, starts, y, n, BLOCK=block)
    return y
