import torch
import triton
import triton.language as tl


@triton.jit
def rand_kernel(y_ptr, seed, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    """Whole multiples of STEP, so that rounding to the output's dtype never gives 1."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    u = tl.rand(seed, offsets)
    u = tl.minimum(tl.floor(u / STEP), 1 / STEP - 1) * STEP
    tl.store(y_ptr + offsets, u.to(y_ptr.dtype.element_ty), mask=offsets < n)


STEPS = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


def rand(
    *size,
    generator=None,
    out=None,
    dtype=None,
    layout=torch.strided,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    shape = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    y = torch.empty(shape, dtype=dtype, device=device) if out is None else out
    source = generator or torch.default_generator
    seed = int(torch.randint(0, 2**31 - 1, (), generator=source, device=source.device))
    n = y.numel()
    if n:
        step = STEPS.get(y.dtype, 2.0**-24)
        rand_kernel[(triton.cdiv(n, 1024),)](y, seed, n, STEP=step, BLOCK=1024)
    return y.requires_grad_(requires_grad)
