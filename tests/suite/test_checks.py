"""The checks on answers that are wrong in a known way."""

import dataclasses

import pytest
import torch

from benchmark import suite, vocabulary
from benchmark.suite import mutants, proving, scenes
from benchmark.suite.checks import Mixture
from benchmark.suite.inputs import small
from benchmark.suite.spec import Arguments

GELU, MATMUL, RELU, RAND = (suite.get(name) for name in ("gelu", "matmul", "relu", "rand"))


def compare(task, case_name, change, seed=3):
    """The comparison of PyTorch's answer after `change(output)`."""
    case = task.case(case_name)
    arguments = task.arguments(case, seed, "cpu")
    answer = scenes.honest(task, arguments)
    outputs = [change(output) for output in answer.outputs]
    return task.compare(case, arguments, outputs, answer.mutated)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda y: y.half(), vocabulary.WRONG_DTYPE),
        (lambda y: y.double(), vocabulary.WRONG_DTYPE),
        (lambda y: y.mean(), vocabulary.WRONG_SHAPE),
        (lambda y: y[None], vocabulary.WRONG_SHAPE),
        (lambda y: (y,), vocabulary.WRONG_SHAPE),
        (lambda y: None, vocabulary.WRONG_DTYPE),
        (lambda y: torch.nn.Parameter(y), vocabulary.WRONG_DTYPE),
        (lambda y: y * float("nan"), vocabulary.NON_FINITE),
        (lambda y: y + float("inf"), vocabulary.NON_FINITE),
        (lambda y: y + 1e-3, vocabulary.WRONG_VALUES),
    ],
)
def test_each_fault_gets_its_verdict(change, verdict):
    assert compare(GELU, "small-odd", change).verdict == verdict


def test_the_detail_names_the_worst_element():
    def spoil(y):
        y[2, 17] += 5
        y[3, 4] += 1
        return y

    result = compare(GELU, "small-odd", spoil)
    assert result.detail.startswith("output: 2 of 1961 elements off; worst at [2, 17]: got ")
    assert result.error > result.tolerance > result.reference_error


def test_tf32_fails_a_float32_product_on_every_case_of_inexact_numbers():
    for name in ("small-odd", "small-tiles", "small-transposed"):
        scene = scenes.Scene(MATMUL, MATMUL.case(name), seed=3)
        assert scene.rejects(mutants.tf32_inputs(scene)), name


def test_another_order_of_summation_passes():
    case = MATMUL.case("small-tiles")
    arguments = MATMUL.arguments(case, 3, "cpu")
    left, right = arguments.args
    total = torch.zeros(64, 32)
    for k in range(left.shape[1]):
        total += left[:, k, None] * right[k]
    assert MATMUL.compare(case, arguments, [total]).passed


def test_special_values_must_stay_where_they_are():
    def lose_nan(y):
        return y.nan_to_num(0.0, posinf=float("inf"))

    result = compare(RELU, "small-special", lose_nan)
    assert result.verdict == vocabulary.WRONG_VALUES


def test_an_in_place_case_needs_the_changed_argument():
    case = RELU.case("small-odd")
    arguments = RELU.arguments(case, 3, "cpu")
    answer = scenes.honest(RELU, arguments)
    result = RELU.compare(case, arguments, answer.outputs, arguments)
    assert result.verdict == vocabulary.WRONG_VALUES
    assert result.detail.startswith("argument[0]")
    with pytest.raises(ValueError, match="arguments after the call"):
        RELU.compare(case, arguments, answer.outputs)


def test_large_outputs_are_compared_in_chunks(monkeypatch):
    whole = compare(GELU, "small-tiles", lambda y: y + 1e-3)
    monkeypatch.setattr("benchmark.suite.checks.CHUNK", 100)
    assert compare(GELU, "small-tiles", lambda y: y + 1e-3) == whole


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y * y,
        lambda y: y * 0.98,
        lambda y: y.sort().values,
        lambda y: y + 0.5,
        lambda y: torch.where(y < 0.01, 1.0, y),
    ],
)
def test_another_law_is_rejected(change):
    assert not compare(RAND, "small-prime", change).passed


def test_a_false_alarm_is_rarer_than_one_in_two_hundred():
    case = RAND.case("small-odd")
    arguments = RAND.arguments(case, 3, "cpu")
    for seed in range(200):
        torch.manual_seed(seed)
        assert RAND.compare(case, arguments, scenes.honest(RAND, arguments).outputs).passed


def dropout_branches(input, p=0.5):
    """Dropped, or kept and scaled."""
    return (p, torch.zeros_like(input)), (1 - p, input / (1 - p))


def dropout(input, p=0.5):
    """Elements dropped with probability p, the others scaled by 1 / (1 - p)."""
    return torch.nn.functional.dropout(input, p)


DROPOUT = dataclasses.replace(
    GELU,
    function=dropout,
    check=Mixture(dropout_branches),
    cases=(small("odd", "normal", rows=37, columns=53),),
    draws=3,
)


def test_dropout_passes_whatever_it_drops():
    for seed in range(100):
        torch.manual_seed(seed)
        result = compare(DROPOUT, "small-odd", lambda y: y)
        assert result.passed, result.detail


@pytest.mark.parametrize(
    "change",
    [
        torch.zeros_like,
        lambda y: y * 1.001,
        lambda y: y * float("nan"),
        lambda y: torch.where(torch.rand_like(y) < 0.2, 0.0, y),
        lambda y: torch.where(torch.arange(53) < 50, y, 1.0),
    ],
)
def test_a_wrong_dropout_is_rejected(change):
    torch.manual_seed(0)
    assert not compare(DROPOUT, "small-odd", change).passed


def test_dropout_rejects_the_mutants():
    killing = proving.kill(DROPOUT, "cpu", 3)
    assert "same_in_every_draw" in killing.planted
    assert killing.survivors == ()


def test_a_factor_with_another_sign_or_triangle_is_rejected():
    cholesky = suite.get("cholesky")
    for change in (torch.neg, lambda y: y.mT.contiguous(), lambda y: y + 1e-30):
        assert not compare(cholesky, "small-tiles", change).passed


def test_a_task_never_takes_fewer_draws_than_it_asks_for():
    case = RAND.case("small-odd")
    arguments = RAND.arguments(case, 3, "cpu")
    with pytest.raises(ValueError, match="3 draws"):
        RAND.compare(case, arguments, [torch.rand(37, 53)])


def test_bfloat16_is_not_judged_by_the_interpreter():
    case = dataclasses.replace(GELU.cases[0], dtype="bfloat16")
    assert not GELU.judgeable_on("cpu", case)
    assert GELU.judgeable_on("cuda", case)
    assert not GELU.judgeable_on("cpu", GELU.timed_cases[0])


MIN_GELU, BATCH_NORM = suite.get("min_gelu"), suite.get("batch_norm")


def two_minima(index: list[int]):
    """How `min_gelu` judges these indices in rows whose minimum stands at 1 and at 3."""
    rows = torch.tensor([[2.0, -0.75, 1.0, -0.75], [0.5, -0.75, 4.0, -0.75]])
    arguments = Arguments((rows,), {"dim": 1})
    case = MIN_GELU.case("small-odd")
    values = MIN_GELU.reference(arguments)[0]
    return MIN_GELU.compare(case, arguments, [(values, torch.tensor(index))])


@pytest.mark.parametrize("index", [[1, 1], [3, 1], [3, 3]])
def test_any_index_that_attains_a_rounded_minimum_passes(index):
    assert two_minima(index).passed


@pytest.mark.parametrize("index", [[0, 1], [1, 2], [1, 4], [-1, 1]])
def test_an_index_elsewhere_or_outside_is_rejected(index):
    assert two_minima(index).verdict == vocabulary.WRONG_VALUES


@pytest.mark.parametrize("place", [1, 2])
@pytest.mark.parametrize(("roundings", "passes"), [(2, True), (100, False)])
def test_running_statistics_are_judged_by_the_terms_behind_them(place, roundings, passes):
    case = BATCH_NORM.case("small-momentum")
    arguments = BATCH_NORM.arguments(case, 3, "cpu")
    answer = scenes.honest(BATCH_NORM, arguments)
    terms = arguments.args[place].abs() + answer.mutated.args[place].abs()
    answer.mutated.args[place].add_(terms, alpha=roundings * torch.finfo(torch.float32).eps)
    result = BATCH_NORM.compare(case, arguments, answer.outputs, answer.mutated)
    assert result.passed == passes
    if not passes:
        assert result.detail.startswith(f"argument[{place}]")


def test_the_value_nearest_to_its_limit_is_reported():
    sgd = suite.get("sgd_step")
    case = sgd.case("small-odd")
    arguments = sgd.arguments(case, 3, "cpu")
    answer = scenes.honest(sgd, arguments)
    result = sgd.compare(case, arguments, answer.outputs, answer.mutated)
    assert 0 < result.error == result.reference_error < result.tolerance
