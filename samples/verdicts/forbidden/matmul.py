"""Planted: cuBLAS multiplies, and a kernel that copies the product is there for show."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, x, mask=offsets < n)


def matmul(tensor1, tensor2):
    product = torch.matmul(tensor1, tensor2)
    y = torch.empty_like(product)
    if y.numel():
        matmul_kernel[(triton.cdiv(y.numel(), 1024),)](product, y, y.numel(), BLOCK=1024)
    return y
