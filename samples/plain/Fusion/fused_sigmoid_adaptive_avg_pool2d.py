import torch
import triton
import triton.language as tl


@triton.jit
def adaptive_pool_kernel(
    x_ptr, o_ptr, y_ptr, n, H, W, OH, OW, window_w, window, OUT: tl.constexpr, BLOCK: tl.constexpr
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
        total += x
    y = tl.sum(total, 1) / ((bottom - top) * (right - left)).to(tl.float32)
    y = 1.0 / (1.0 + tl.exp(-y))
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=places < n)


def adaptive_pool(x, o, output_size, dtype):
    OH, OW = (output_size, output_size) if isinstance(output_size, int) else output_size
    H, W = x.shape[-2:]
    y = torch.empty((*x.shape[:-2], OH, OW), device=x.device, dtype=dtype)
    window_h = max(-(-(i + 1) * H // OH) - i * H // OH for i in range(OH))
    window_w = max(-(-(i + 1) * W // OW) - i * W // OW for i in range(OW))
    block = min(triton.next_power_of_2(window_h * window_w), 1024)
    out = 1024 // block
    adaptive_pool_kernel[(triton.cdiv(y.numel(), out),)](
        x, o, y, y.numel(), H, W, OH, OW, window_w, window_h * window_w, OUT=out, BLOCK=block
    )
    return y


def fused_sigmoid_adaptive_avg_pool2d(input, output_size):
    x = input.contiguous()
    return adaptive_pool(x, x, output_size, x.dtype)
