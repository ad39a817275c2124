import torch
import triton
import triton.language as tl


@triton.jit
def cosine_kernel(a_ptr, b_ptr, y_ptr, n, channels, plane, eps, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    base = places // plane * channels * plane + places % plane
    dot = tl.zeros((BLOCK,), tl.float32)
    aa = tl.zeros((BLOCK,), tl.float32)
    bb = tl.zeros((BLOCK,), tl.float32)
    for c in range(channels):
        a = tl.load(a_ptr + base + c * plane, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + base + c * plane, mask=inside, other=0.0).to(tl.float32)
        dot += a * b
        aa += a * a
        bb += b * b
    y = dot / (tl.maximum(tl.sqrt(aa), eps) * tl.maximum(tl.sqrt(bb), eps))
    tl.store(y_ptr + places, y, mask=inside)


@triton.jit
def avg_pool_kernel(z_ptr, y_ptr, n, H, W, OH, OW, K, stride, pad, BLOCK: tl.constexpr):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < n
    image = places // (OH * OW)
    top, left = places // OW % OH * stride - pad, places % OW * stride - pad
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(K):
        for j in range(K):
            h, w = top + i, left + j
            there = inside & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            total += tl.load(z_ptr + (image * H + h) * W + w, mask=there, other=0.0)
    tl.store(y_ptr + places, (total / (K * K)).to(y_ptr.dtype.element_ty), mask=inside)


def fused_avg_pool2d_cosine_similarity(x1, x2, kernel_size, stride=None, padding=0, eps=1e-08):
    a, b = x1.contiguous(), x2.contiguous()
    N, C, H, W = a.shape
    K, stride = kernel_size, kernel_size if stride is None else stride
    z = torch.empty((N, H, W), device=a.device, dtype=torch.float32)
    cosine_kernel[(triton.cdiv(z.numel(), 256),)](a, b, z, z.numel(), C, H * W, eps, BLOCK=256)
    OH, OW = (H + 2 * padding - K) // stride + 1, (W + 2 * padding - K) // stride + 1
    y = torch.empty((N, 1, OH, OW), device=a.device, dtype=a.dtype)
    n = y.numel()
    avg_pool_kernel[(triton.cdiv(n, 256),)](z, y, n, H, W, OH, OW, K, stride, padding, BLOCK=256)
    return y
