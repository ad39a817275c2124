"""Layers of a network on int8 and int4 numbers."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark.suite.checks import Close
from benchmark.suite.cost import per_element, product, total
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.quantization.common import (
    EPS,
    SCALES_DIFFERENCE,
    STEP,
    TIES_DIFFERENCE,
    in_doubt,
    int_product,
    lines,
    product_magnitude,
    quantization,
    quantized,
)
from benchmark.suite.spec import Arguments, Case

ALL = (0, 1, 2, 3)
PER_CHANNEL = (1, 2, 3)


def images_and_filters(make: Maker) -> Arguments:
    """(n, c, h, w) and (o, c, kernel, kernel); the bias on request."""
    o, c, kernel = make.size("o"), make.size("c"), make.size("kernel")
    shape = make.size("n"), c, make.size("h"), make.size("w")
    weight = lines(make, o, c * kernel * kernel, dim=-1).reshape(o, c, kernel, kernel)
    keywords = make.options("biased")
    if make.case.options.get("biased"):
        keywords["bias"] = make.tensor(o)
    return Arguments((_image(make, *shape), weight), keywords)


def _image(make: Maker, *shape: int) -> torch.Tensor:
    """One line; in the family `ties` its scale is exactly STEP."""
    if make.case.family != "ties":
        return make.tensor(*shape)
    values = make.randint(-253, 254, *shape).to(make.dtype) * (STEP / 2)
    values.view(-1)[:1].fill_(-127 * STEP)
    return values


def patches(x: torch.Tensor, kernel: torch.Size, stride: int, padding: int) -> torch.Tensor:
    """(n, places, c kh kw): what each place of the output sees."""
    return F.unfold(x, tuple(kernel), padding=padding, stride=stride).mT


def conv_magnitude(input, weight, bias=None, stride=1, padding=0):
    """The terms behind each element, and what integers in doubt may change."""
    (x, scale_x), (w, scale_w) = quantized(input, ALL), quantized(weight, PER_CHANNEL)
    kernel = weight.shape[2:]
    size = product_magnitude(
        patches(x.double(), kernel, stride, padding),
        w.double().flatten(1).mT,
        patches(in_doubt(input, ALL), kernel, stride, padding),
        in_doubt(weight, PER_CHANNEL).flatten(1).mT,
    )
    size = size * (scale_x.flatten() * scale_w.flatten())
    if bias is not None:
        size = size + bias.abs()
    return size.mT.unflatten(-1, _places(input, kernel, stride, padding))


def _places(input: torch.Tensor, kernel: torch.Size, stride: int, padding: int) -> list[int]:
    """Height and width of the output."""
    return [
        (size + 2 * padding - width) // stride + 1
        for size, width in zip(input.shape[2:], kernel, strict=True)
    ]


@dataclass(frozen=True)
class ConvolutionFlops:
    """Two operations for each output element and each input of its sum."""

    def __call__(self, case: Case) -> float:
        n, c, h, w, o, kernel = case.shape
        padding, stride = (int(str(case.options.get(k, d))) for k, d in DEFAULTS)
        places = math.prod((size + 2 * padding - kernel) // stride + 1 for size in (h, w))
        return 2.0 * n * o * places * c * kernel * kernel


DEFAULTS = (("padding", 0), ("stride", 1))


@quantization(
    "conv2d_w8a8",
    inputs=images_and_filters,
    cases=(
        small("one", "normal", n=1, c=1, h=1, w=1, o=1, kernel=1),
        with_options(small("odd", "heavy_tail", n=2, c=3, h=17, w=13, o=7, kernel=3), biased=True),
        with_options(small("ties", "ties", n=1, c=5, h=9, w=11, o=6, kernel=3), padding=1),
        with_options(
            small("stride", "mixed", n=2, c=4, h=16, w=15, o=8, kernel=3), stride=2, padding=1
        ),
        small("pointwise", "shifted", n=1, c=33, h=7, w=9, o=16, kernel=1),
        with_options(
            small("transposed", "normal", layout="transposed", n=1, c=3, h=12, w=14, o=5, kernel=5),
            padding=2,
            biased=True,
        ),
        with_options(small("deep", "normal", n=1, c=67, h=4, w=5, o=3, kernel=4), stride=3),
        with_options(timed("large", "mixed", n=64, c=128, h=56, w=56, o=128, kernel=3), padding=1),
        with_options(
            timed("stride", "mixed", n=32, c=64, h=112, w=112, o=128, kernel=3),
            stride=2,
            padding=1,
            biased=True,
        ),
        timed("pointwise", "mixed", n=32, c=256, h=56, w=56, o=256, kernel=1),
    ),
    check=Close(magnitude=conv_magnitude),
    flops=ConvolutionFlops(),
    differences=(
        SCALES_DIFFERENCE,
        TIES_DIFFERENCE,
        "activations have one scale per tensor: the published text left open whether per tensor or "
        "per channel",
    ),
)
def conv2d_w8a8(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int = 1,
    padding: int = 0,
):
    """2-D convolution of input (n, c, h, w) with weight (o, c, kh, kw), float32, computed with int8
    numbers; zeros are padded.

    The input as a whole and each output channel of the weight have a scale s = max|x| / 127 (1 if
    all are zero) and integers q = x / s, rounded half to even, within [-128, 127]. The sum of qx qw
    is exact, in int32; times (sx sw), plus the bias (o,) if there is one, in float32, it is the
    result.
    """
    (x, scale_x), (w, scale_w) = quantized(input, ALL), quantized(weight, PER_CHANNEL)
    dtype, kernel = input.dtype, weight.shape[2:]
    seen = patches(x.half(), kernel, stride, padding)  # float16 holds integers up to 2048
    sums = int_product(seen.to(torch.int8).flatten(0, 1), w.flatten(1).mT)
    y = sums.to(dtype) * (scale_x.to(dtype).flatten() * scale_w.to(dtype).flatten())
    if bias is not None:
        y = y + bias
    y = y.unflatten(0, (input.shape[0], -1)).mT
    return y.unflatten(-1, _places(input, kernel, stride, padding)).contiguous()


def rows_and_affine(make: Maker) -> Arguments:
    """Rows, their shape (the last `dims` dimensions), weight and bias as `affine` says."""
    dims = int(str(make.case.options.get("dims", 1)))
    shape = make.case.shape[-dims:]
    affine = make.case.options.get("affine")
    weight = make.tensor(*shape, family="normal") if affine else None
    bias = make.tensor(*shape, family="normal") if affine == "both" else None
    return Arguments(
        (make.tensor(*make.case.shape), shape, weight, bias), make.options("dims", "affine")
    )


def layernorm_terms(input, normalized_shape, weight, bias, eps):
    """The normalized row, the size of the terms behind it, and the dimensions of a row."""
    dims = tuple(range(-len(normalized_shape), 0))
    mean = input.mean(dims, keepdim=True)
    root = (input.var(dims, unbiased=False, keepdim=True) + eps).rsqrt()
    y, size = (input - mean) * root, (input.abs() + mean.abs()) * root
    if weight is not None:
        y, size = y * weight, size * weight.abs()
    if bias is not None:
        y, size = y + bias, size + bias.abs()
    return y, size, dims


def layernorm_magnitude(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """The error of the scale, and one step where the row's rounding errors decide."""
    y, size, dims = layernorm_terms(input, normalized_shape, weight, bias, eps)
    q, scale = quantized(y, dims)
    worst = size.amax(dims, keepdim=True)
    doubt = in_doubt(y, dims, error=16 * EPS * (size + worst))
    return q.abs() / 127 * worst + doubt * scale / EPS


@quantization(
    "layernorm_w8a8",
    inputs=rows_and_affine,
    cases=(
        with_options(small("one", "normal", rows=3, columns=1), affine="both"),
        small("odd", "heavy_tail", rows=17, columns=381),
        with_options(small("eps", "tiny", rows=29, columns=67), affine="both", eps=0.01),
        with_options(small("shifted", "shifted", rows=7, columns=1009), affine="weight"),
        with_options(small("tall", "scaled", rows=61, columns=13), affine="both"),
        with_options(small("two-dims", "normal", rows=9, a=7, b=31), dims=2, affine="both"),
        small("transposed", "mixed", layout="transposed", rows=33, columns=130),
        with_options(small("tiles", "mixed", rows=16, columns=512), affine="weight"),
        with_options(timed("large", "mixed", rows=65536, columns=1024), affine="both"),
        with_options(timed("long", "mixed", rows=8192, columns=8192), affine="both"),
        timed("odd", "mixed", rows=32768, columns=2047),
    ),
    check=Close(magnitude=layernorm_magnitude),
    flops=per_element(12),
    differences=(
        SCALES_DIFFERENCE,
        "an element whose quotient lies so near a half that rounding errors of the normalization "
        "decide may take either neighbour",
        "rows of equal numbers are not asked for: what is left of them is rounding noise, which "
        "the published test quantized and compared",
    ),
)
def layernorm_w8a8(
    input: torch.Tensor,
    normalized_shape,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
):
    """Layer norm over the last dimensions, `normalized_shape`, in float32, its result rounded to
    int8 numbers row by row.

    y = (x - mean) / sqrt(var + eps) * weight + bias; the row's scale is s = max|y| / 127 (1 if all
    are zero), its integers are q = y / s, rounded half to even, within [-128, 127]. The result is
    q s, float32.
    """
    dims = tuple(range(-len(normalized_shape), 0))
    y = F.layer_norm(input, normalized_shape, weight, bias, eps)
    q, scale = quantized(y, dims)
    return q.to(input.dtype) * scale.to(input.dtype)


def three_tensors(make: Maker) -> Arguments:
    """Query, key and value, (batch, s, d)."""
    return Arguments(tuple(lines(make, *make.case.shape, dim=-1) for _ in range(3)))


def attention_magnitude(query, key, value):
    """The terms behind each element, the error of the scores as the exponential passes it on, and
    what integers in doubt may change."""
    (q, scale_q), (k, scale_k), (v, scale_v) = (quantized(x, (-1,)) for x in (query, key, value))
    factor = scale_q.double() * scale_k.mT.double() / math.sqrt(query.shape[-1])
    q, k = q.double(), k.mT.double()
    scores = (q @ k) * factor
    size = product_magnitude(q, k, in_doubt(query, (-1,)), in_doubt(key, (-1,)).mT) * factor
    share, rounded = scores.softmax(-1), v.double().abs() * scale_v
    share_error = share * (1 + size + scores.abs().amax(-1, keepdim=True))
    total_error = share_error.sum(-1, keepdim=True) * (share @ rounded)
    doubt = share @ (in_doubt(value, (-1,)) * scale_v / EPS)
    return share_error @ rounded + total_error + doubt


@quantization(
    "attention_w8a8",
    inputs=three_tensors,
    cases=(
        small("one", "normal", batch=1, s=1, d=8),
        small("odd", "normal", batch=2, s=37, d=16),
        small("ties", "ties", batch=1, s=33, d=32),
        small("tiles", "mixed", batch=1, s=64, d=64),
        small("transposed", "normal", layout="transposed", batch=2, s=48, d=32),
        small("heavy", "heavy_tail", batch=3, s=29, d=16),
        small("shifted", "shifted", batch=1, s=67, d=64),
        timed("large", "normal", batch=64, s=1024, d=128),
        timed("long", "normal", batch=8, s=4096, d=256),
        timed("short", "mixed", batch=512, s=256, d=64),
    ),
    check=Close(magnitude=attention_magnitude),
    flops=total(product(4, "batch", "s", "s", "d"), product(5, "batch", "s", "s")),
    differences=(SCALES_DIFFERENCE, TIES_DIFFERENCE),
)
def attention_w8a8(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor):
    """softmax(Q K^T / sqrt(d)) V for tensors (batch, s, d), float32, with int8 Q, K and V.

    Each row of query, key and value has a scale s = max|x| / 127 (1 if all are zero) and integers
    q = x / s, rounded half to even, within [-128, 127]. The sum over d of qq qk is exact, in
    int32; times (sq sk / sqrt(d)) it is the score. The softmax is float32 and isn't quantized; its
    product with the rows of qv sv is summed in float32.
    """
    (q, scale_q), (k, scale_k), (v, scale_v) = (quantized(x, (-1,)) for x in (query, key, value))
    dtype = query.dtype
    # Exact in float32 too: d 127^2 is below 2^24 up to d = 1040.
    sums = torch.matmul(q.to(dtype), k.mT.to(dtype))
    factor = scale_q.to(dtype) * scale_k.mT.to(dtype) / math.sqrt(query.shape[-1])
    return torch.matmul((sums * factor).softmax(-1), v.to(dtype) * scale_v.to(dtype))


def linear_inputs(make: Maker) -> Arguments:
    """(rows, i) or (i,), the weight (o, i), and the bias on request."""
    o, i = make.size("o"), make.size("i")
    leading = [size for name, size in make.case.sizes.items() if name not in "oi"]
    weight = _int4_lines(make, o, i) if make.case.family == "ties" else make.tensor(o, i)
    keywords = {"bias": make.tensor(o)} if make.case.options.get("biased") else {}
    return Arguments((make.tensor(*leading, i), weight), keywords)


def _int4_lines(make: Maker, o: int, i: int) -> torch.Tensor:
    """Rows of scale STEP, exactly, with quotients that are multiples of 1/2; the last is zero."""
    values = make.randint(-13, 14, o, i).to(make.dtype) * (STEP / 2)
    values[:, 0] = 7 * STEP
    values[o - 1] = 0
    return values


def int4_magnitude(input, weight, bias=None):
    """float16 roundings of weights, independent of each other, and integers in doubt."""
    q, scale = quantized(weight, (-1,), 7)
    half = 2.0**-10
    size = torch.matmul(input.square(), (q.double() * scale).square().mT).sqrt()
    doubt = torch.matmul(input.abs(), (in_doubt(weight, (-1,), 7) * scale).mT) / half
    return size + doubt if bias is None else size + doubt + bias.abs()


@quantization(
    "linear_w4a16",
    inputs=linear_inputs,
    cases=(
        small("one", "normal", "float16", rows=1, i=1, o=1),
        with_options(small("odd", "heavy_tail", "float16", rows=17, i=53, o=29), biased=True),
        small("ties", "ties", "float16", rows=9, i=61, o=33),
        with_options(small("tiles", "mixed", "float16", rows=32, i=128, o=64), biased=True),
        small("transposed", "normal", "float16", "transposed", rows=19, i=65, o=48),
        small("vector", "shifted", "float16", i=127, o=67),
        with_options(small("batch", "normal", "float16", batch=2, rows=5, i=97, o=31), biased=True),
        with_options(timed("rows", "normal", "float16", rows=32, i=4096, o=16384), biased=True),
        timed("one", "normal", "float16", rows=1, i=8192, o=8192),
        with_options(timed("many", "normal", "float16", rows=1024, i=8192, o=8192), biased=True),
    ),
    check=Close(magnitude=int4_magnitude, narrow_intermediates=True),
    flops=product(2, "batch", "rows", "i", "o"),
    differences=(
        SCALES_DIFFERENCE,
        TIES_DIFFERENCE,
        "one scale per output channel, no groups: the published text left groups of 64 open",
        "the traffic counts the float16 weights that are passed: the published model counted half "
        "a byte for each",
    ),
)
def linear_w4a16(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None):
    """input @ W^T + bias for input (*, i) and weight (o, i), all float16, with the weight rounded
    to int4 numbers.

    Each row of the weight has a scale s = max|w| / 7 in float32 (1 if all are zero) and integers
    q = w / s, rounded half to even, within [-8, 7]. The numbers q s may be rounded to float16
    before the product or the sums of x q multiplied by s afterwards; sums are float32, rounded once
    to float16.
    """
    q, scale = quantized(weight, (-1,), 7)
    dtype = input.dtype
    return F.linear(
        input, (q * scale.to(torch.promote_types(dtype, torch.float32))).to(dtype), bias
    )
