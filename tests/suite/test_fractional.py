"""Fractional max pooling: chance may choose the same windows twice, a frozen kernel always does."""

import pytest
import torch

from benchmark import suite, vocabulary
from benchmark.suite.fusion.fractional import chance_of_twins, layouts, pair
from benchmark.suite.scenes import honest

POOL = suite.get("fused_fractional_max_pool2d_with_relu")
TELLING = ("odd", "ratio", "indices", "three", "transposed-plain")


def first(output):
    return output[0] if isinstance(output, tuple) else output


@pytest.mark.parametrize("case", POOL.small_cases, ids=lambda case: case.name)
def test_no_honest_draw_is_refused(case):
    arguments = POOL.arguments(case, 3, "cpu")
    for seed in range(300):
        torch.manual_seed(seed)
        result = POOL.compare(case, arguments, honest(POOL, arguments).outputs)
        assert result.passed, result.detail


@pytest.mark.parametrize("name", TELLING)
def test_the_same_windows_in_every_call_are_refused_whatever_the_image(name):
    case = POOL.case(f"small-{name}")
    for seed in range(50):
        arguments = POOL.arguments(case, seed, "cpu")
        frozen = [POOL.reference(arguments)] * POOL.draws
        result = POOL.compare(case, arguments, frozen)
        assert result.verdict == vocabulary.WRONG_VALUES
        assert "chose the same windows" in result.detail


def test_twins_are_as_frequent_as_said():
    """Two ways to lay the columns, equal maxima in some planes: one pair of draws in about 50."""
    case = POOL.case("small-uneven")
    arguments = POOL.arguments(case, 3, "cpu")
    image, kernel = arguments.args
    counts = first(POOL.reference(arguments)).shape[-2:]
    chance = chance_of_twins(torch.relu(image), pair(kernel), counts, 0.0)
    torch.manual_seed(0)
    draws = [first(POOL.reference(arguments)) for _ in range(3000)]
    twins = sum(torch.equal(*pair) for pair in zip(draws[::2], draws[1::2], strict=True))
    expected, spread = 1500 * chance, (1500 * chance) ** 0.5
    assert 0.01 < chance < 0.05
    assert abs(twins - expected) < 4 * spread


@pytest.mark.parametrize(
    ("size", "kernel", "count"), [(17, 2, 7), (31, 2, 12), (25, 3, 6), (1024, 2, 700), (9, 3, 1)]
)
def test_layouts_are_pytorchs(size, kernel, count):
    """Of a row that counts up the maxima are the windows' last places."""
    places, chances = layouts(size, kernel, count)
    row = torch.arange(float(size)).expand(500, 1, kernel, size)
    torch.manual_seed(0)
    found = torch.nn.functional.fractional_max_pool2d(row, kernel, (1, count))[:, 0, 0]
    found = (found - kernel + 1).long()[:, : places.shape[1]]
    alike = (found[:, None] == places).all(-1)
    assert bool(alike.any(1).all())
    assert chances.sum().item() == pytest.approx(1)
    shares = alike.double().mean(0)
    assert float((shares - chances).abs().max()) < 4 * (0.25 / 500) ** 0.5
