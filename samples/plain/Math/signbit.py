import torch
import triton
import triton.language as tl


@triton.jit
def signbit_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    bits = tl.load(x_ptr + offsets, mask=inside, other=0)
    tl.store(y_ptr + offsets, (bits < 0).to(tl.int8), mask=inside)


INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def signbit(input: torch.Tensor, out: torch.Tensor = None) -> torch.Tensor:
    x = input.contiguous()
    y = torch.empty_like(x, dtype=torch.bool) if out is None else out
    n = x.numel()
    if n:
        # the sign bit of a float is that of the integer with the same bits
        bits = x.view(INTEGERS[x.element_size()])
        signbit_kernel[(triton.cdiv(n, 4096),)](bits, y.view(torch.int8), n, BLOCK=4096)
    return y
