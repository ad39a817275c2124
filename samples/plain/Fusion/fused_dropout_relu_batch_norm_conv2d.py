import torch
import triton
import triton.language as tl


def fresh_seed():
    """A seed from PyTorch's generator, so that manual_seed counts."""
    return int(torch.randint(0, 2**31 - 1, ()))


@triton.jit
def conv_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    pixels,
    filters,
    depth,
    H,
    W,
    OH,
    OW,
    KH,
    KW,
    stride_h,
    stride_w,
    pad_h,
    pad_w,
    dilation_h,
    dilation_w,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """An image's pixels are rows, a group's filters columns, channels x kernel the sum."""
    group, groups = tl.program_id(2), tl.num_programs(2)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    image = (rows // (OH * OW)).to(tl.int64)
    top = rows // OW % OH * stride_h - pad_h
    left = rows % OW * stride_w - pad_w
    image_base = (image * groups + group) * (depth // (KH * KW)) * H * W
    y = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, depth, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        h = top[:, None] + (inner // KW % KH * dilation_h)[None, :]
        w = left[:, None] + (inner % KW * dilation_w)[None, :]
        inside = (rows[:, None] < pixels) & (inner[None, :] < depth)
        inside = inside & (h >= 0) & (h < H) & (w >= 0) & (w < W)
        place = image_base[:, None] + (inner // (KH * KW))[None, :] * H * W + h * W + w
        x = tl.load(x_ptr + place, mask=inside, other=0.0)
        filter = tl.load(
            w_ptr + (group * filters + columns[None, :]) * depth + inner[:, None],
            mask=(columns[None, :] < filters) & (inner[:, None] < depth),
            other=0.0,
        )
        y = tl.dot(x, filter, y, input_precision="ieee")
    channel = group * filters + columns
    if HAS_BIAS:
        y += tl.load(b_ptr + channel, mask=columns < filters, other=0.0).to(tl.float32)[None, :]
    inside = (rows[:, None] < pixels) & (columns[None, :] < filters)
    channels = groups * filters
    places = (image[:, None] * channels + channel[None, :]) * OH * OW + (rows % (OH * OW))[:, None]
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def convolve(input, weight, bias, stride, padding, dilation, groups):
    x, w = input.contiguous(), weight.contiguous()
    N, C, H, W = x.shape
    O, depth, KH, KW = w.shape
    stride, dilation = pair(stride), pair(dilation)
    padding = pair(padding)
    OH = (H + 2 * padding[0] - dilation[0] * (KH - 1) - 1) // stride[0] + 1
    OW = (W + 2 * padding[1] - dilation[1] * (KW - 1) - 1) // stride[1] + 1
    y = torch.empty((N, O, OH, OW), device=x.device, dtype=torch.float32)
    grid = (triton.cdiv(N * OH * OW, 64), triton.cdiv(O // groups, 32), groups)
    conv_kernel[grid](
        x,
        w,
        x if bias is None else bias.contiguous(),
        y,
        N * OH * OW,
        O // groups,
        depth * KH * KW,
        H,
        W,
        OH,
        OW,
        KH,
        KW,
        *stride,
        *padding,
        *dilation,
        HAS_BIAS=bias is not None,
        BLOCK_M=64,
        BLOCK_N=32,
        BLOCK_K=32,
    )
    return y


@triton.jit
def partial_moments(
    z_ptr,
    mean_ptr,
    m2_ptr,
    length,
    piece,
    piece_step,
    row_step,
    CHUNK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Mean and sum of squared deviations of a chunk; a row is pieces, piece_step apart."""
    row, chunk = tl.program_id(0), tl.program_id(1)
    z_ptr += row.to(tl.int64) * row_step
    begin = chunk * CHUNK
    count = tl.minimum(CHUNK, length - begin)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        place = begin + start + tl.arange(0, BLOCK)
        offsets = (place // piece).to(tl.int64) * piece_step + place % piece
        total += tl.load(z_ptr + offsets, mask=place < length, other=0.0).to(tl.float32)
    mean = tl.sum(total, 0) / count
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        place = begin + start + tl.arange(0, BLOCK)
        offsets = (place // piece).to(tl.int64) * piece_step + place % piece
        z = tl.load(z_ptr + offsets, mask=place < length, other=0.0).to(tl.float32)
        total += tl.where(place < length, (z - mean) * (z - mean), 0.0)
    slot = row * tl.num_programs(1) + chunk
    tl.store(mean_ptr + slot, mean)
    tl.store(m2_ptr + slot, tl.sum(total, 0))


@triton.jit
def joined_moments(
    part_ptr, m2_ptr, mean_ptr, var_ptr, length, chunks, CHUNK: tl.constexpr, BLOCK: tl.constexpr
):
    row, chunk = tl.program_id(0), tl.arange(0, BLOCK)
    there = chunk < chunks
    count = tl.where(there, tl.minimum(CHUNK, length - chunk * CHUNK), 0).to(tl.float32)
    part = tl.load(part_ptr + row * chunks + chunk, mask=there, other=0.0)
    m2 = tl.load(m2_ptr + row * chunks + chunk, mask=there, other=0.0)
    mean = tl.sum(part * count, 0) / length
    gap = part - mean
    tl.store(mean_ptr + row, mean)
    tl.store(var_ptr + row, (tl.sum(m2, 0) + tl.sum(count * gap * gap, 0)) / length)


def moments(z, rows, length, piece, piece_step, row_step):
    chunk = 8192 if length > 8192 else triton.next_power_of_2(length)
    chunks = triton.cdiv(length, chunk)
    part = torch.empty((2, rows, chunks), device=z.device, dtype=torch.float32)
    result = torch.empty((2, rows), device=z.device, dtype=torch.float32)
    partial_moments[(rows, chunks)](
        z,
        part[0],
        part[1],
        length,
        piece,
        piece_step,
        row_step,
        CHUNK=chunk,
        BLOCK=min(chunk, 1024),
    )
    joined_moments[(rows,)](
        part[0],
        part[1],
        result[0],
        result[1],
        length,
        chunks,
        CHUNK=chunk,
        BLOCK=triton.next_power_of_2(chunks),
    )
    return result[0], result[1]


@triton.jit
def normalize(
    z_ptr,
    y_ptr,
    mean_ptr,
    var_ptr,
    w_ptr,
    b_ptr,
    total,
    rows,
    inner,
    channels,
    plane,
    eps,
    p,
    seed,
    HAS_W: tl.constexpr,
    HAS_B: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Element i belongs to row i // inner % rows of the statistics, channel i // plane % channels."""
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < total
    row = places // inner % rows
    channel = places // plane % channels
    mean = tl.load(mean_ptr + row, mask=inside, other=0.0).to(tl.float32)
    var = tl.load(var_ptr + row, mask=inside, other=1.0).to(tl.float32)
    z = tl.load(z_ptr + places, mask=inside, other=0.0).to(tl.float32)
    y = (z - mean) / tl.sqrt(var + eps)
    if HAS_W:
        y *= tl.load(w_ptr + channel, mask=inside, other=1.0).to(tl.float32)
    if HAS_B:
        y += tl.load(b_ptr + channel, mask=inside, other=0.0).to(tl.float32)
    y = tl.maximum(y, 0.0)
    if p > 0:
        y = tl.where(tl.rand(seed, places) < p, 0.0, y / (1.0 - p))
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def normalized(z, mean, var, weight, bias, rows, inner, channels, plane, eps, p, seed):
    y = torch.empty_like(z)
    w = None if weight is None else weight.contiguous()
    b = None if bias is None else bias.contiguous()
    normalize[(triton.cdiv(z.numel(), 1024),)](
        z,
        y,
        mean,
        var,
        z if w is None else w,
        z if b is None else b,
        z.numel(),
        rows,
        inner,
        channels,
        plane,
        eps,
        p,
        seed,
        HAS_W=w is not None,
        HAS_B=b is not None,
        BLOCK=1024,
    )
    return y


def fused_dropout_relu_batch_norm_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    p=0.5,
    training=True,
    inplace=False,
):
    z = convolve(input, weight, bias, stride, padding, dilation, groups)
    C, plane = z.shape[1], z[0, 0].numel()
    mean, var = moments(z, C, z.shape[0] * plane, plane, C * plane, plane)
    rate = p if training else 0.0
    return normalized(z, mean, var, None, None, C, plane, C, plane, 1e-05, rate, fresh_seed())
