"""The smallest Triton kernels: does compiling and launching work behind the walls? How fast is
nothing?
"""

import triton
import triton.language as tl


@triton.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    """x += 1 on the first n numbers."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x + 1, mask=offsets < n)
