"""Single matrix products."""

import torch

from benchmark.suite.checks import Close
from benchmark.suite.cost import matmul as matmul_flops
from benchmark.suite.cost import product, total
from benchmark.suite.inputs import Maker, small, timed, with_options
from benchmark.suite.matrix_multiply.common import matrix_multiply
from benchmark.suite.spec import Arguments, Case

# 64 roundings in half dtypes: tensor cores cut off digits as they add up, which leaves PyTorch
# itself 7 to 14 roundings over k = 4099 and 8192, and 4 times that is allowed. A narrower dtype
# in the factors or in the sum leaves hundreds.
LONG_SUMS = 1024.0


def two_factors(make: Maker) -> Arguments:
    """(batch, m, k) @ (batch, k, n); a size that the case lacks is a dimension that the factor
    lacks.
    """
    sizes = make.case.sizes
    left = [sizes[name] for name in ("batch", "m", "k") if name in sizes]
    right = [sizes[name] for name in ("batch", "k", "n") if name in sizes]
    return Arguments((make.tensor(*left), make.tensor(*right)), make.options())


def product_magnitude(tensor1, tensor2):
    """sum |a||b| behind each element."""
    return torch.matmul(tensor1.abs(), tensor2.abs())


@matrix_multiply(
    "matmul",
    inputs=two_factors,
    cases=(
        small("one", "normal", m=1, k=1, n=1),
        small("odd", "heavy_tail", m=37, k=53, n=29),
        small("tiles", "mixed", m=64, k=128, n=32),
        small("transposed", "normal", layout="transposed", m=33, k=65, n=48),
        small("half", "normal", "float16", m=45, k=97, n=31),
        small("batch", "integers", batch=3, m=17, k=19, n=23),
        small("row", "normal", k=61, n=37),
        small("column", "shifted", m=41, k=67),
        small("dot", "normal", k=127),
        timed("large", "mixed", m=4096, k=4096, n=4096),
        timed("half", "mixed", "float16", m=8192, k=8192, n=8192),
        timed("batch", "mixed", "float16", batch=64, m=1024, k=1024, n=1024),
    ),
    check=Close(magnitude=product_magnitude, cap=LONG_SUMS),
    flops=matmul_flops(),
)
def matmul(tensor1, tensor2):
    """Matrix product with the rules of torch.matmul: 1-D factors are a row or a column, leading
    dimensions batch.
    """
    return torch.matmul(tensor1, tensor2)


def three_factors(make: Maker) -> Arguments:
    """The summand, then the two factors; `row` as size: a summand of shape (n,), `beta=0`: full of
    NaN.
    """
    m, k, n = make.size("m"), make.size("k"), make.size("n")
    shape = (n,) if make.case.options.get("row") else (m, n)
    ignored = make.case.options.get("beta") == 0
    summand = make.out(*shape) if ignored else make.tensor(*shape)
    keywords = make.options("row", "out")
    if make.case.options.get("out"):
        keywords["out"] = make.out(m, n)
    return Arguments((summand, make.tensor(m, k), make.tensor(k, n)), keywords)


def addmm_magnitude(input, mat1, mat2, beta=1, alpha=1, out=None):
    """|beta||input| + |alpha| sum |a||b| behind each element."""
    size = abs(alpha) * (mat1.abs() @ mat2.abs())
    return size + abs(beta) * input.abs() if beta else size


@matrix_multiply(
    "addmm",
    inputs=three_factors,
    cases=(
        small("one", "normal", m=1, k=1, n=1),
        with_options(small("odd", "heavy_tail", m=37, k=53, n=29), beta=0.5, alpha=2.0),
        with_options(small("nan-ignored", "normal", m=31, k=17, n=33), beta=0, alpha=1.5),
        with_options(small("row", "mixed", m=45, k=67, n=23), beta=-1.25, row=True),
        small("tiles", "mixed", m=64, k=128, n=32),
        with_options(
            small("transposed", "normal", layout="transposed", m=33, k=65, n=48), alpha=-0.5
        ),
        with_options(small("half", "normal", "float16", m=45, k=97, n=31), beta=2.0, alpha=0.5),
        with_options(small("out", "shifted", m=19, k=41, n=37), beta=0.25, out=True),
        with_options(timed("large", "mixed", m=4096, k=4096, n=4096), beta=0.5, alpha=2.0),
        with_options(timed("half", "mixed", "float16", m=8192, k=8192, n=8192), alpha=0.5),
        with_options(timed("odd", "mixed", "float16", m=8191, k=4099, n=8189), beta=2.0),
    ),
    check=Close(magnitude=addmm_magnitude, cap=LONG_SUMS),
    flops=total(product(2, "m", "k", "n"), product(3, "m", "n")),
    mutates=("out",),
)
def addmm(
    input: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    beta: float = 1,
    alpha: float = 1,
    out: torch.Tensor | None = None,
):
    """beta * input + alpha * (mat1 @ mat2) for mat1 (m, k), mat2 (k, n) and an input that
    broadcasts to (m, n). With beta = 0 the input is not looked at: NaN in it doesn't spread.
    """
    return torch.addmm(input, mat1, mat2, beta=beta, alpha=alpha, out=out)


def narrow_cases(dtype: str) -> tuple[Case, ...]:
    """matmul in one narrow dtype."""
    return (
        small("one", "normal", dtype, m=1, k=1, n=1),
        small("odd", "heavy_tail", dtype, m=37, k=53, n=29),
        small("tiles", "mixed", dtype, m=64, k=128, n=32),
        small("transposed", "normal", dtype, "transposed", m=33, k=65, n=48),
        small("batch", "integers", dtype, batch=3, m=17, k=19, n=23),
        small("row", "normal", dtype, k=61, n=37),
        small("column", "shifted", dtype, m=41, k=67),
        small("dot", "normal", dtype, k=127),
        timed("large", "mixed", dtype, m=8192, k=8192, n=8192),
        timed("batch", "mixed", dtype, batch=64, m=1024, k=1024, n=1024),
        timed("odd", "mixed", dtype, m=8191, k=4099, n=8189),
    )


def narrow_magnitude(input, other):
    """sum |a||b| behind each element."""
    return torch.matmul(input.abs(), other.abs())


@matrix_multiply(
    "matmul_fp16",
    inputs=two_factors,
    cases=narrow_cases("float16"),
    check=Close(magnitude=narrow_magnitude, cap=LONG_SUMS),
    flops=matmul_flops(),
)
def matmul_fp16(input: torch.Tensor, other: torch.Tensor):
    """Matrix product of float16 tensors with the rules of torch.matmul, summed in float32 and
    rounded once, to float16.
    """
    return torch.matmul(input, other)


@matrix_multiply(
    "matmul_bf16",
    inputs=two_factors,
    cases=narrow_cases("bfloat16"),
    check=Close(magnitude=narrow_magnitude, cap=LONG_SUMS),
    flops=matmul_flops(),
)
def matmul_bf16(input: torch.Tensor, other: torch.Tensor):
    """Matrix product of bfloat16 tensors with the rules of torch.matmul, summed in float32 and
    rounded once, to bfloat16. Judged on GPUs only: Triton's interpreter has no bfloat16.
    """
    return torch.matmul(input, other)


def lower_triangle_inputs(make: Maker) -> Arguments:
    """A square matrix whose upper triangle isn't zero, a right factor, two scales."""
    n, p = make.size("n"), make.size("p")
    return Arguments((make.tensor(n, n), make.tensor(n, p)), make.options())


def tril_magnitude(A, B, alpha, beta):
    """|alpha beta| sum |a||b| over the lower triangle."""
    return abs(alpha * beta) * (A.tril().abs() @ B.abs())


@matrix_multiply(
    "tril_mm_and_scale",
    inputs=lower_triangle_inputs,
    cases=(
        with_options(small("one", "normal", n=1, p=1), alpha=1.5, beta=-2.0),
        with_options(small("odd", "heavy_tail", n=37, p=29), alpha=0.5, beta=2.0),
        with_options(small("wide", "normal", n=17, p=101), alpha=1.0, beta=0.75),
        with_options(small("column", "shifted", n=61, p=1), alpha=2.0, beta=1.0),
        with_options(small("tiles", "mixed", n=64, p=64), alpha=-1.0, beta=0.5),
        with_options(
            small("transposed", "normal", layout="transposed", n=33, p=48), alpha=0.3, beta=0.7
        ),
        with_options(small("half", "normal", "float16", n=45, p=31), alpha=1.0, beta=0.5),
        with_options(timed("large", "mixed", n=4096, p=4096), alpha=0.5, beta=0.5),
        with_options(timed("odd", "mixed", n=4099, p=3001), alpha=1.5, beta=0.5),
        with_options(timed("half", "mixed", "float16", n=8192, p=8192), alpha=0.5, beta=0.5),
    ),
    check=Close(magnitude=tril_magnitude),
    flops=total(product(1, "n", "n", "p"), product(1, "n", "p")),
)
def tril_mm_and_scale(A: torch.Tensor, B: torch.Tensor, alpha: float, beta: float):
    """beta * alpha * (tril(A) @ B) for A (n, n) and B (n, p): what is above A's diagonal doesn't
    count.
    """
    return beta * (alpha * torch.matmul(torch.tril(A), B))


def two_tensors_and_dims(make: Maker) -> Arguments:
    """(left..., inner...) and (inner..., right...), positive unless the family is integers: roots
    of negative sums are NaN, and near zero they depend on rounding.
    """
    sizes = make.case.sizes
    exact = make.case.family == "integers"
    left = [size for name, size in sizes.items() if name[0] in "mk"]
    right = [sizes[name] for name in sizes if name[0] == "k"]
    if make.case.options["dims"] == [[2, 1], [0, 1]]:
        right = right[::-1]
    right += [size for name, size in sizes.items() if name[0] == "n"]
    draw = make.tensor if exact else make.positive
    return Arguments((make.laid_out(draw, *left), make.laid_out(draw, *right)), make.options())


def tensordot_rsqrt_magnitude(a, b, dims):
    """Half the result times sum |a||b| / |sum a b|: what the root makes of an error of the sum."""
    inner = torch.tensordot(a, b, dims)
    size = torch.tensordot(a.abs(), b.abs(), dims)
    return (0.5 * torch.rsqrt(inner) * size / inner.abs()).nan_to_num(0, 0, 0)


@matrix_multiply(
    "tensordot_rsqrt",
    inputs=two_tensors_and_dims,
    cases=(
        with_options(small("dot", "normal", k=37), dims=1),
        with_options(small("one", "normal", m=1, k=1, n=1), dims=1),
        with_options(small("odd", "normal", m=37, k=53, n=29), dims=[[1], [0]]),
        with_options(small("two-dims", "normal", m=9, k1=7, k2=5, n=11), dims=[[2, 1], [0, 1]]),
        with_options(small("outer", "normal", m=13, n=17), dims=0),
        with_options(small("integers", "integers", m=33, k=6, n=31), dims=1),
        with_options(small("transposed", "normal", layout="transposed", m=41, k=64, n=23), dims=1),
        with_options(small("many", "normal", m1=5, m2=7, k=19, n1=3, n2=11), dims=1),
        with_options(timed("large", "normal", m=4096, k=4096, n=4096), dims=1),
        with_options(timed("odd", "normal", m=4099, k=3001, n=4093), dims=[[1], [0]]),
        with_options(
            timed("two-dims", "normal", m=4096, k1=64, k2=48, n=4096), dims=[[2, 1], [0, 1]]
        ),
    ),
    check=Close(magnitude=tensordot_rsqrt_magnitude),
    flops=total(product(2, "m", "m1", "m2", "k", "k1", "k2", "n", "n1", "n2")),
)
def tensordot_rsqrt(a: torch.Tensor, b: torch.Tensor, dims):
    """1 / sqrt(tensordot(a, b, dims)): sums over the last `dims` dimensions of a and the first of
    b, or over pairs of dimensions given as two lists. NaN where the sum is negative, inf where 0.
    """
    return torch.rsqrt(torch.tensordot(a, b, dims))
