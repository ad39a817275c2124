import torch
import triton
import triton.language as tl


@triton.jit
def binomial_kernel(
    count_ptr,
    chance_ptr,
    y_ptr,
    seed,
    n,
    SHARED: tl.constexpr,
    LOGITS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    chance = tl.load(chance_ptr + offsets, mask=inside, other=0.5).to(tl.float32)
    if LOGITS:
        chance = 1.0 / (1.0 + tl.exp(-chance))
    if SHARED:
        count = tl.load(count_ptr).to(tl.int32) + offsets * 0
    else:
        count = tl.load(count_ptr + offsets, mask=inside, other=0).to(tl.int32)
    hits = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, tl.max(count, 0), 4):
        a, b, c, d = tl.rand4x(seed + first, offsets)
        hits += ((a < chance) & (first < count)).to(tl.int32)
        hits += ((b < chance) & (first + 1 < count)).to(tl.int32)
        hits += ((c < chance) & (first + 2 < count)).to(tl.int32)
        hits += ((d < chance) & (first + 3 < count)).to(tl.int32)
    tl.store(y_ptr + offsets, hits.to(y_ptr.dtype.element_ty), mask=inside)


def bitwise_and_binomial(
    input: torch.Tensor,
    other: torch.Tensor,
    total_count: torch.Tensor,
    probs: torch.Tensor = None,
    logits: torch.Tensor = None,
) -> torch.Tensor:
    chance = logits if probs is None else probs
    shape = torch.broadcast_shapes(total_count.shape, chance.shape)
    shared = total_count.numel() == 1
    count = total_count if shared else total_count.expand(shape).contiguous()
    chance = chance.expand(shape).contiguous()
    y = torch.empty(shape, dtype=chance.dtype, device=chance.device)
    n = y.numel()
    seed = int(torch.randint(0, 2**30, (), device="cpu"))
    if n:
        binomial_kernel[(triton.cdiv(n, 2048),)](
            count, chance, y, seed, n, SHARED=shared, LOGITS=probs is None, BLOCK=2048
        )
    return y
