import torch
import triton
import triton.language as tl


@triton.jit
def position(i, size, step, ALIGN: tl.constexpr):
    """Where output pixel i lies among the input's."""
    if ALIGN:
        return i * step
    else:
        return (i + 0.5) * step - 0.5


@triton.jit
def cubic(t):
    """The weight of a pixel at distance t, a = -0.75."""
    t = tl.abs(t)
    near = (1.25 * t - 2.25) * t * t + 1.0
    far = ((-0.75 * t + 3.75) * t - 6.0) * t + 3.0
    return tl.where(t <= 1.0, near, tl.where(t < 2.0, far, 0.0))


@triton.jit(do_not_specialize=["H", "W", "h", "w"])
def interpolate_kernel(
    x_ptr,
    y_ptr,
    H,
    W,
    h,
    w,
    step_y,
    step_x,
    MODE: tl.constexpr,
    ALIGN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    image = tl.program_id(1).to(tl.int64)
    point = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = point < h * w
    i, j = (point // w).to(tl.float32), (point % w).to(tl.float32)
    x_ptr += image * H * W
    if MODE == "nearest":
        row = tl.minimum(tl.floor(i * step_y).to(tl.int32), H - 1)
        column = tl.minimum(tl.floor(j * step_x).to(tl.int32), W - 1)
        value = tl.load(x_ptr + row * W + column, mask=inside, other=0.0)
    else:
        y, x = position(i, H, step_y, ALIGN), position(j, W, step_x, ALIGN)
        if MODE == "bilinear":
            y, x = tl.maximum(y, 0.0), tl.maximum(x, 0.0)
        y0, x0 = tl.floor(y), tl.floor(x)
        v, u = y - y0, x - x0
        first: tl.constexpr = 0 if MODE == "bilinear" else -1
        last: tl.constexpr = 2 if MODE == "bilinear" else 3
        value = tl.zeros((BLOCK,), tl.float32)
        for dy in tl.static_range(first, last):
            row = tl.minimum(tl.maximum(y0.to(tl.int32) + dy, 0), H - 1)
            line = tl.zeros((BLOCK,), tl.float32)
            for dx in tl.static_range(first, last):
                column = tl.minimum(tl.maximum(x0.to(tl.int32) + dx, 0), W - 1)
                if MODE == "bilinear":
                    weight = 1.0 - tl.abs(u - dx)
                else:
                    weight = cubic(u - dx)
                line += weight * tl.load(x_ptr + row * W + column, mask=inside, other=0.0)
            if MODE == "bilinear":
                value += (1.0 - tl.abs(v - dy)) * line
            else:
                value += cubic(v - dy) * line
    tl.store(y_ptr + image * h * w + point, value, mask=inside)


def interpolate(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    x = input.contiguous()
    N, C, H, W = x.shape
    if size is not None:
        h, w = (size, size) if isinstance(size, int) else size
        steps = H / h, W / w
    else:
        fy, fx = (
            (scale_factor, scale_factor) if isinstance(scale_factor, (int, float)) else scale_factor
        )
        h, w = int(H * fy), int(W * fx)
        steps = 1 / fy, 1 / fx
    if align_corners:
        steps = (H - 1) / max(h - 1, 1), (W - 1) / max(w - 1, 1)
    y = torch.empty((N, C, h, w), dtype=x.dtype, device=x.device)
    if y.numel():
        interpolate_kernel[(triton.cdiv(h * w, 512), N * C)](
            x, y, H, W, h, w, *steps, MODE=mode, ALIGN=bool(align_corners), BLOCK=512
        )
    return y
