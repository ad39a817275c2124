import torch
import triton
import triton.language as tl


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


@triton.jit
def relu_max_pool_kernel(
    z_ptr,
    y_ptr,
    total,
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
    BLOCK: tl.constexpr,
):
    places = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = places < total
    plane = places // (OH * OW)
    top = places // OW % OH * stride_h - pad_h
    left = places % OW * stride_w - pad_w
    y = tl.zeros((BLOCK,), tl.float32)
    for i in range(KH):
        for j in range(KW):
            h, w = top + i * dilation_h, left + j * dilation_w
            there = inside & (h >= 0) & (h < H) & (w >= 0) & (w < W)
            z = tl.load(z_ptr + (plane * H + h) * W + w, mask=there, other=0.0)
            y = tl.maximum(y, z.to(tl.float32))
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
    y = torch.empty((N, O, OH, OW), device=x.device, dtype=input.dtype)
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


def pooled_size(size, kernel, stride, padding, dilation, ceil):
    reach = dilation * (kernel - 1) + 1
    places = (size + 2 * padding - reach + (stride - 1 if ceil else 0)) // stride + 1
    if ceil and (places - 1) * stride >= size + padding:
        places -= 1  # the last window must start inside
    return places


def fused_relu_max_pool2d_conv2d(
    input,
    weight,
    bias=None,
    conv_stride=1,
    conv_padding=0,
    conv_dilation=1,
    conv_groups=1,
    pool_kernel_size=2,
    pool_stride=None,
    pool_padding=0,
    pool_dilation=1,
    pool_ceil_mode=False,
    inplace=False,
):
    z = convolve(input, weight, bias, conv_stride, conv_padding, conv_dilation, conv_groups)
    kernel, padding, dilation = pair(pool_kernel_size), pair(pool_padding), pair(pool_dilation)
    stride = kernel if pool_stride is None else pair(pool_stride)
    H, W = z.shape[2:]
    OH = pooled_size(H, kernel[0], stride[0], padding[0], dilation[0], pool_ceil_mode)
    OW = pooled_size(W, kernel[1], stride[1], padding[1], dilation[1], pool_ceil_mode)
    y = torch.empty((*z.shape[:2], OH, OW), device=z.device, dtype=z.dtype)
    relu_max_pool_kernel[(triton.cdiv(y.numel(), 512),)](
        z, y, y.numel(), H, W, OH, OW, *kernel, *stride, *padding, *dilation, BLOCK=512
    )
    return y
