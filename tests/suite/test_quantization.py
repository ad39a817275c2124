"""The integer contract: kernels that keep it pass, other roundings, scales and floats fail."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody gives it

from benchmark import suite
from benchmark.suite.quantization import layers, products
from benchmark.suite.quantization.common import quantized, scale_of

INT8 = ("matmul_w8a8", "bmm_w8a8", "conv2d_w8a8", "attention_w8a8", "layernorm_w8a8")
TASKS = (*INT8, "linear_w4a16")
EXACT_TIES = ("matmul_w8a8", "bmm_w8a8", "conv2d_w8a8", "attention_w8a8", "linear_w4a16")


def by_reciprocal(x, dims, levels=127):
    """One division per line: quotients may be off by a rounding or two."""
    scale = scale_of(x, dims, levels)
    return (x.float() * (1 / scale)).round().to(torch.int8), scale


def half_up(x, dims, levels=127):
    scale = scale_of(x, dims, levels)
    return (x.float() / scale + 0.5).floor().clamp(-levels - 1, levels).to(torch.int8), scale


def towards_zero(x, dims, levels=127):
    scale = scale_of(x, dims, levels)
    return (x.float() / scale).to(torch.int8), scale


def one_level_more(x, dims, levels=127):
    """max|x| / 128: the largest number saturates."""
    return quantized(x, dims, levels)[0], scale_of(x, dims, levels + 1)


def saturated_early(x, dims, levels=127):
    q, scale = quantized(x, dims, levels)
    return q.clamp(1 - levels, levels - 1), scale


def wrapped_around(x, dims, levels=127):
    """The largest number becomes the most negative one."""
    q, scale = quantized(x, dims, levels)
    return torch.where(q == levels, -levels - 1, q).to(torch.int8), scale


def one_scale_for_all(x, dims, levels=127):
    return quantized(x, tuple(range(x.dim())), levels)


def no_rule_for_zero(x, dims, levels=127):
    scale = x.float().abs().amax(dims, keepdim=True) / levels
    return (x.float() / scale).nan_to_num().round().to(torch.int8), scale * (scale / scale)


def verdicts(monkeypatch, name, scheme, seeds=(1,)):
    """Whether each small case passes with another way to quantize, by the case's name."""
    task, passed = suite.get(name), {}
    for case in task.small_cases:
        for seed in seeds:
            arguments = task.arguments(case, seed, "cpu")
            with monkeypatch.context() as patch:
                patch.setattr(products, "quantized", scheme)
                patch.setattr(layers, "quantized", scheme)
                output = task.reference(arguments)
            result = task.compare(case, arguments, [output])
            passed[case.name] = passed.get(case.name, True) and result.passed
    return passed


@pytest.mark.parametrize("name", TASKS)
def test_a_product_with_the_reciprocal_of_the_scale_passes(monkeypatch, name):
    passed = verdicts(monkeypatch, name, by_reciprocal, seeds=range(3))
    assert all(passed.values()), passed


@pytest.mark.parametrize("scheme", [towards_zero, one_level_more, saturated_early, wrapped_around])
@pytest.mark.parametrize("name", TASKS)
def test_another_rounding_or_saturation_fails(monkeypatch, name, scheme):
    passed = verdicts(monkeypatch, name, scheme)
    assert sum(passed.values()) <= 2, passed  # a single element or a row of one may agree


@pytest.mark.parametrize("scheme", [half_up, no_rule_for_zero])
@pytest.mark.parametrize("name", EXACT_TIES)
def test_exact_ties_go_to_the_even_neighbour_and_zeros_have_a_scale(monkeypatch, name, scheme):
    assert not verdicts(monkeypatch, name, scheme)["small-ties"]


@pytest.mark.parametrize("name", ["matmul_w8a8", "bmm_w8a8", "layernorm_w8a8", "linear_w4a16"])
def test_one_scale_for_the_whole_tensor_fails(monkeypatch, name):
    passed = verdicts(monkeypatch, name, one_scale_for_all)
    assert sum(passed.values()) <= 2, passed


FLOATS = {
    "matmul_w8a8": torch.matmul,
    "bmm_w8a8": torch.bmm,
    "conv2d_w8a8": F.conv2d,
    "attention_w8a8": lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
    "layernorm_w8a8": F.layer_norm,
    "linear_w4a16": F.linear,
}


@pytest.mark.parametrize("name", TASKS)
def test_leaving_the_quantization_out_fails(name):
    task, passed = suite.get(name), {}
    for case in task.small_cases:
        arguments = task.arguments(case, 1, "cpu")
        output = FLOATS[name](*arguments.args, **arguments.kwargs)
        passed[case.name] = task.compare(case, arguments, [output]).passed
    assert sum(passed.values()) <= 1, passed  # a single number is its own scale


@pytest.mark.parametrize("name", ["matmul_w8a8", "bmm_w8a8"])
def test_another_order_of_float32_sums_passes(name):
    task = suite.get(name)
    for case in task.small_cases:
        arguments = task.arguments(case, 1, "cpu")
        left, right = arguments.args
        (a, scale_a), (b, scale_b) = quantized(left, (-1,)), quantized(right, (-2,))
        a, b = (a * scale_a).flip(-1), (b * scale_b).flip(-2)
        result = task.compare(case, arguments, [a @ b])
        assert result.passed, result.detail
