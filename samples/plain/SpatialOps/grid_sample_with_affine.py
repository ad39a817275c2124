import torch
import triton
import triton.language as tl


@triton.jit
def mirrored(x, low, span):
    """x thrown back and forth between low and low + span."""
    away = tl.abs(x - low)
    turns = tl.floor(away / tl.where(span > 0, span, 1.0))
    rest = away - turns * span
    even = turns - 2.0 * tl.floor(turns * 0.5) == 0.0
    return tl.where(span > 0, tl.where(even, rest, span - rest) + low, 0.0)


@triton.jit
def pixel(g, size, PADDING: tl.constexpr, ALIGN: tl.constexpr):
    """A grid position in pixels, after padding."""
    last = size * 1.0 - 1.0
    if ALIGN:
        x = (g + 1.0) * 0.5 * last
    else:
        x = ((g + 1.0) * size - 1.0) * 0.5
    if PADDING == "reflection":
        if ALIGN:
            x = mirrored(x, 0.0, last)
        else:
            x = mirrored(x, -0.5, last + 1.0)
    if PADDING != "zeros":
        x = tl.minimum(tl.maximum(x, 0.0), last)
    return x


@triton.jit
def nearest(x):
    """The closest whole number, ties to even."""
    low = tl.floor(x)
    odd = low - 2.0 * tl.floor(low * 0.5)
    return tl.where(x - low > 0.5, low + 1.0, tl.where(x - low < 0.5, low, low + odd))


@triton.jit
def at(x_ptr, z, y, x, D, H, W, inside):
    ok = inside & (z >= 0) & (z < D) & (y >= 0) & (y < H) & (x >= 0) & (x < W)
    offset = (z.to(tl.int64) * H + y.to(tl.int64)) * W + x.to(tl.int64)
    return tl.load(x_ptr + offset, mask=ok, other=0.0)


@triton.jit
def plane(x_ptr, z, y, x, D, H, W, inside):
    """The four neighbours of (y, x) in plane z, mixed."""
    y0, x0 = tl.floor(y), tl.floor(x)
    v = y - y0
    u = x - x0
    top = (
        at(x_ptr, z, y0, x0, D, H, W, inside) * (1 - u)
        + at(x_ptr, z, y0, x0 + 1, D, H, W, inside) * u
    )
    low = (
        at(x_ptr, z, y0 + 1, x0, D, H, W, inside) * (1 - u)
        + at(x_ptr, z, y0 + 1, x0 + 1, D, H, W, inside) * u
    )
    return top * (1 - v) + low * v


@triton.jit
def sample(
    x_ptr,
    gx,
    gy,
    gz,
    D,
    H,
    W,
    inside,
    VOLUME: tl.constexpr,
    NEAREST: tl.constexpr,
    PADDING: tl.constexpr,
    ALIGN: tl.constexpr,
):
    x = pixel(gx, W, PADDING, ALIGN)
    y = pixel(gy, H, PADDING, ALIGN)
    if VOLUME:
        z = pixel(gz, D, PADDING, ALIGN)
    else:
        z = x * 0.0
    if NEAREST:
        value = at(x_ptr, nearest(z), nearest(y), nearest(x), D, H, W, inside)
    elif VOLUME:
        z0 = tl.floor(z)
        w = z - z0
        value = plane(x_ptr, z0, y, x, D, H, W, inside) * (1 - w)
        value += plane(x_ptr, z0 + 1, y, x, D, H, W, inside) * w
    else:
        value = plane(x_ptr, z, y, x, D, H, W, inside)
    return value


@triton.jit
def side(i, size, ALIGN: tl.constexpr):
    """Where pixel i of so many lies, from -1 to 1."""
    if ALIGN:
        return tl.where(size > 1, 2.0 * i / tl.maximum(size - 1, 1) - 1.0, 0.0)
    else:
        return (2.0 * i + 1.0) / size - 1.0


@triton.jit(do_not_specialize=["H", "W", "h", "w"])
def affine_kernel(
    x_ptr,
    theta_ptr,
    y_ptr,
    C,
    H,
    W,
    h,
    w,
    NEAREST: tl.constexpr,
    PADDING: tl.constexpr,
    ALIGN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One block of output pixels of one image, all channels."""
    batch = tl.program_id(1).to(tl.int64)
    point = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = point < h * w
    px = side((point % w).to(tl.float32), w, ALIGN)
    py = side((point // w).to(tl.float32), h, ALIGN)
    theta = theta_ptr + batch * 6
    gx = tl.load(theta) * px + tl.load(theta + 1) * py + tl.load(theta + 2)
    gy = tl.load(theta + 3) * px + tl.load(theta + 4) * py + tl.load(theta + 5)
    for channel in range(C):
        line = batch * C + channel
        image = x_ptr + line * H * W
        value = sample(image, gx, gy, gx, 1, H, W, inside, False, NEAREST, PADDING, ALIGN)
        tl.store(y_ptr + line * h * w + point, value, mask=inside)


def grid_sample_with_affine(
    input: torch.Tensor,
    theta: torch.Tensor,
    size: torch.Size,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> torch.Tensor:
    x = input.contiguous()
    maps = theta.to(x.dtype).contiguous()
    N, C, h, w = size
    H, W = x.shape[2:]
    y = torch.empty((N, C, h, w), dtype=x.dtype, device=x.device)
    if y.numel():
        affine_kernel[(triton.cdiv(h * w, 256), N)](
            x,
            maps,
            y,
            C,
            H,
            W,
            h,
            w,
            NEAREST=mode == "nearest",
            PADDING=padding_mode,
            ALIGN=bool(align_corners),
            BLOCK=256,
        )
    return y
