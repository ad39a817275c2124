import torch
import triton
import triton.language as tl


@triton.jit
def signbit_and_kernel(x_ptr, bits_ptr, other_ptr, sign_ptr, and_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=0.0)
    bits = tl.load(bits_ptr + offsets, mask=inside, other=0)
    other = tl.load(other_ptr + offsets, mask=inside, other=0)
    tl.store(sign_ptr + offsets, (bits < 0).to(tl.int8), mask=inside)
    tl.store(and_ptr + offsets, x.to(tl.int32).to(tl.int8) & other, mask=inside)


INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def signbit_bitwise_and(input: torch.Tensor, other: torch.Tensor):
    x, y = input.contiguous(), other.contiguous()
    sign = torch.empty_like(x, dtype=torch.bool)
    both = torch.empty_like(x, dtype=torch.int8)
    n = x.numel()
    if n:
        # the sign bit of a float is that of the integer with the same bits
        bits = x.view(INTEGERS[x.element_size()])
        signbit_and_kernel[(triton.cdiv(n, 2048),)](
            x, bits, y.view(torch.int8), sign.view(torch.int8), both, n, BLOCK=2048
        )
    return sign, both
