import torch
import triton
import triton.language as tl


@triton.jit
def adaptive_pool_kernel(
    x_ptr,
    o_ptr,
    y_ptr,
    n,
    H,
    W,
    OH,
    OW,
    window_w,
    window,
    p: tl.constexpr,
    OUT: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A tile of outputs by the elements of the largest window."""
    places = tl.program_id(0).to(tl.int64) * OUT + tl.arange(0, OUT)
    plane, oh, ow = places // (OH * OW), places // OW % OH, places % OW
    top, bottom = oh * H // OH, ((oh + 1) * H + OH - 1) // OH
    left, right = ow * W // OW, ((ow + 1) * W + OW - 1) // OW
    total = tl.zeros((OUT, BLOCK), tl.float32)
    for start in range(0, window, BLOCK):
        k = start + tl.arange(0, BLOCK)
        h = top[:, None] + (k // window_w)[None, :]
        w = left[:, None] + (k % window_w)[None, :]
        there = (places < n)[:, None] & (h < bottom[:, None]) & (w < right[:, None])
        source = (plane[:, None] * H + h) * W + w
        x = tl.load(x_ptr + source, mask=there, other=0.0).to(tl.float32)
        x -= tl.load(o_ptr + source, mask=there, other=0.0).to(tl.float32)
        total += x
    y = tl.sum(total, 1) / ((bottom - top) * (right - left)).to(tl.float32)
    y = tl.abs(y)
    if p == 2.0:
        y = y * y
    elif p != 1.0:
        y = tl.where(y > 0, tl.exp(p * tl.log(tl.where(y > 0, y, 1.0))), 0.0)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=places < n)


def adaptive_pool(x, o, output_size, dtype, p):
    OH, OW = (output_size, output_size) if isinstance(output_size, int) else output_size
    H, W = x.shape[-2:]
    y = torch.empty((*x.shape[:-2], OH, OW), device=x.device, dtype=dtype)
    window_h = max(-(-(i + 1) * H // OH) - i * H // OH for i in range(OH))
    window_w = max(-(-(i + 1) * W // OW) - i * W // OW for i in range(OW))
    block = min(triton.next_power_of_2(window_h * window_w), 1024)
    out = 1024 // block
    adaptive_pool_kernel[(triton.cdiv(y.numel(), out),)](
        x, o, y, y.numel(), H, W, OH, OW, window_w, window_h * window_w, p, OUT=out, BLOCK=block
    )
    return y


@triton.jit
def sum_kernel(x_ptr, y_ptr, length, step, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    """Sum of one chunk of one row."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, CHUNK, BLOCK):
        places = chunk * CHUNK + start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * step + places, mask=places < length, other=0.0).to(
            tl.float32
        )
    tl.store(y_ptr + row * tl.num_programs(1) + chunk, tl.sum(total, 0))


def sum_rows(x):
    """Row sums in float32, in as many steps as the length needs."""
    while x.shape[1] > 1:
        length = x.shape[1]
        chunk = min(triton.next_power_of_2(length), 8192)
        chunks = triton.cdiv(length, chunk)
        y = torch.empty((x.shape[0], chunks), device=x.device, dtype=torch.float32)
        sum_kernel[(x.shape[0], chunks)](x, y, length, length, CHUNK=chunk, BLOCK=min(chunk, 1024))
        x = y
    return x[:, 0]


@triton.jit
def root_kernel(x_ptr, y_ptr, n, p: tl.constexpr, eps, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if p == 2.0:
        x = tl.sqrt(x)
    elif p != 1.0:
        x = tl.where(x > 0, tl.exp(tl.log(tl.where(x > 0, x, 1.0)) / p), 0.0)
    tl.store(y_ptr + i, (x + eps).to(y_ptr.dtype.element_ty), mask=i < n)


def fused_pairwise_distance_adaptive_avg_pool2d(
    x1, x2, output_size, p=2.0, eps=1e-06, keepdim=False
):
    x1, x2 = x1.contiguous(), x2.contiguous()
    powers = adaptive_pool(x1, x2, output_size, torch.float32, float(p))
    total = sum_rows(powers.reshape(len(x1), -1)).contiguous()
    n = total.numel()
    y = torch.empty((n,), device=x1.device, dtype=x1.dtype)
    root_kernel[(triton.cdiv(n, 128),)](total, y, n, float(p), float(eps), BLOCK=128)
    return y.reshape(n, 1, 1, 1) if keepdim else y
