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


@triton.jit(do_not_specialize=["D", "H", "W"])
def grid_sample_kernel(
    x_ptr,
    grid_ptr,
    y_ptr,
    points,
    C,
    D,
    H,
    W,
    VOLUME: tl.constexpr,
    NEAREST: tl.constexpr,
    PADDING: tl.constexpr,
    ALIGN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """One block of positions of one image, all channels."""
    batch = tl.program_id(1).to(tl.int64)
    point = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = point < points
    axes: tl.constexpr = 3 if VOLUME else 2
    place = grid_ptr + (batch * points + point) * axes
    gx = tl.load(place, mask=inside, other=0.0)
    gy = tl.load(place + 1, mask=inside, other=0.0)
    if VOLUME:
        gz = tl.load(place + 2, mask=inside, other=0.0)
    else:
        gz = gx
    for channel in range(C):
        line = batch * C + channel
        image = x_ptr + line * D * H * W
        value = sample(image, gx, gy, gz, D, H, W, inside, VOLUME, NEAREST, PADDING, ALIGN)
        tl.store(y_ptr + line * points + point, value, mask=inside)


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=False):
    x, positions = input.contiguous(), grid.contiguous()
    N, C = x.shape[:2]
    D, H, W = (1, *x.shape[2:])[-3:]
    y = torch.empty((N, C, *grid.shape[1:-1]), dtype=x.dtype, device=x.device)
    points = grid[0, ..., 0].numel()
    if y.numel():
        grid_sample_kernel[(triton.cdiv(points, 256), N)](
            x,
            positions,
            y,
            points,
            C,
            D,
            H,
            W,
            VOLUME=x.dim() == 5,
            NEAREST=mode == "nearest",
            PADDING=padding_mode,
            ALIGN=bool(align_corners),
            BLOCK=256,
        )
    return y
