import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, TANH: tl.constexpr):
    if TANH:
        return x / (1.0 + tl.exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))


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
    TANH: tl.constexpr,
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
    y = gelu(y, TANH)
    tl.store(y_ptr + places, y.to(y_ptr.dtype.element_ty), mask=inside)


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def convolve(input, weight, bias, stride, padding, dilation, groups, approximate):
    x, w = input.contiguous(), weight.contiguous()
    N, C, H, W = x.shape
    O, depth, KH, KW = w.shape
    stride, dilation = pair(stride), pair(dilation)
    if padding == "valid":
        padding = 0
    if padding == "same":  # an odd kernel: as many before as after
        padding = dilation[0] * (KH - 1) // 2, dilation[1] * (KW - 1) // 2
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
        approximate == "tanh",
        HAS_BIAS=bias is not None,
        BLOCK_M=64,
        BLOCK_N=32,
        BLOCK_K=32,
    )
    return y


def fused_gelu_conv2d(
    input,
    weight,
    bias=None,
    stride=1,
    padding=0,
    dilation=1,
    groups=1,
    approximate="none",
    out=None,
):
    y = convolve(input, weight, bias, stride, padding, dilation, groups, approximate)
    return y if out is None else out.copy_(y)
