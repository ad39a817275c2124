import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        return x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


@triton.jit
def sub_gelu_kernel(
    x_ptr,
    y_ptr,
    n,
    o_ptr,
    number,
    alpha,
    TENSOR: tl.constexpr,
    TANH: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(x_ptr + offsets, mask=inside, other=1).to(tl.float32)
    if TENSOR:
        other = tl.load(o_ptr + offsets, mask=inside, other=0.0).to(tl.float32)
    else:
        other = number
    y = gelu(x - alpha * other, TANH)
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_sub_gelu(input, other, alpha=1, approximate="none", out=None):
    tensor = isinstance(other, torch.Tensor)
    if tensor:
        input, other = torch.broadcast_tensors(input, other)
    x = input.contiguous()
    o, number = (other.contiguous(), 0.0) if tensor else (x, float(other))
    y = torch.empty_like(x)
    n = x.numel()
    sub_gelu_kernel[(triton.cdiv(n, 1024),)](
        x, y, n, o, number, float(alpha), TENSOR=tensor, TANH=approximate == "tanh", BLOCK=1024
    )
    return y if out is None else out.copy_(y)
