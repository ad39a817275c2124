import torch
import triton
import triton.language as tl


@triton.jit
def cos_avg_pool_kernel(
    x_ptr, y_ptr, n, L, OL, K, stride, pad, WITH_PAD: tl.constexpr, BLOCK: tl.constexpr
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    line = places // OL
    begin = places % OL * stride - pad
    end = tl.minimum(begin + K, L + pad)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(K):
        i = begin + k
        there = inside & (i >= 0) & (i < L)
        x = tl.load(x_ptr + line * L + i, mask=there, other=0.0).to(tl.float32)
        total += tl.where(there, tl.cos(x), 0.0)
    if WITH_PAD:
        count = end - begin
    else:
        count = tl.minimum(end, L) - tl.maximum(begin, 0)
    y = total / tl.maximum(count, 1).to(tl.float32)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def fused_cos_avg_pool1d(
    input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True
):
    x, stride = input.contiguous(), kernel_size if stride is None else stride
    L = x.shape[-1]
    OL = (L + 2 * padding - kernel_size + (stride - 1 if ceil_mode else 0)) // stride + 1
    if ceil_mode and (OL - 1) * stride >= L + padding:
        OL -= 1  # the last window must start inside
    y = torch.empty((*x.shape[:-1], OL), device=x.device, dtype=x.dtype)
    n = y.numel()
    cos_avg_pool_kernel[(triton.cdiv(n, 512),)](
        x, y, n, L, OL, kernel_size, stride, padding, WITH_PAD=count_include_pad, BLOCK=512
    )
    return y
