"""Running statistics after training: any order of adding up passes, also where sums cancel, and
other statistics don't.
"""

import pytest
import torch

from benchmark import suite
from benchmark.suite.scenes import honest, rejected

TRAINED = [
    (suite.get(name), case)
    for name in ("fused_hardsigmoid_batch_norm", "fused_sigmoid_batch_norm")
    for case in suite.get(name).small_cases
    if case.options.get("training")
]
# Values of 0.001 leave less in the statistics than a rounding of the old ones.
TELLING = [(task, case) for task, case in TRAINED if case.family != "tiny"]


def each(pairs):
    return pytest.mark.parametrize(("task", "case"), pairs, ids=lambda one: one.name)


def by_channel(values):
    """(N, C, ...) as (C, n)."""
    return values.transpose(0, 1).flatten(1)


def in_float64(rows):
    return rows.double().mean(1).float(), rows.double().var(1).float()


def one_after_the_other(rows):
    """Sums from the first value to the last, of squares of differences."""
    n = rows.shape[1]
    mean = rows.cumsum(1)[:, -1] / n
    return mean, (rows - mean[:, None]).square().cumsum(1)[:, -1] / (n - 1)


def in_one_pass(rows):
    """n / (n - 1) (E[x^2] - E[x]^2)."""
    n = rows.shape[1]
    mean = rows.mean(1)
    return mean, (rows.square().mean(1) - mean.square()) * n / (n - 1)


def welford(rows):
    """Mean and squared deviations, moved by one value after the other."""
    mean, squares = torch.zeros_like(rows[:, 0]), torch.zeros_like(rows[:, 0])
    for count, value in enumerate(rows.unbind(1), 1):
        gap = value - mean
        mean = mean + gap / count
        squares = squares + gap * (value - mean)
    return mean, squares / (rows.shape[1] - 1)


def weighted(old, new, momentum):
    return (1 - momentum) * old + momentum * new


def moved(old, new, momentum):
    return old + momentum * (new - old)


def judged(task, case, seed, statistics, update):
    """How running statistics are judged that come of this mean and variance and this update."""
    arguments = task.arguments(case, seed, "cpu")
    values, *old = arguments.args[:3]
    answer = honest(task, arguments)
    for place, new in enumerate(statistics(by_channel(values)), 1):
        momentum = case.options.get("momentum", 0.1)
        answer.mutated.args[place].copy_(update(old[place - 1], new, momentum))
    return task.compare(case, arguments, answer.outputs, answer.mutated)


@each(TRAINED)
@pytest.mark.parametrize("statistics", [in_float64, one_after_the_other, in_one_pass])
@pytest.mark.parametrize("update", [weighted, moved])
def test_every_order_passes(task, case, statistics, update):
    for seed in range(200):
        result = judged(task, case, seed, statistics, update)
        assert result.passed, f"seed {seed}: {result.detail}"


@each(TRAINED)
def test_welfords_updates_pass(task, case):
    for seed in range(200 if case.shape[0] < 1000 else 5):
        result = judged(task, case, seed, welford, weighted)
        assert result.passed, f"seed {seed}: {result.detail}"


def divided_by_n(rows):
    return rows.mean(1), rows.var(1, correction=0)


def of_float16(rows):
    return in_float64(rows.half())


def in_tf32(rows):
    """Of values cut to the ten digits that TF32 keeps."""
    return in_float64((rows.view(torch.int32) & ~0x1FFF).view(torch.float32))


def exchanged(old, new, momentum):
    return weighted(old, new, 1 - momentum)


@each(TELLING)
@pytest.mark.parametrize(
    ("statistics", "update"),
    [
        (divided_by_n, weighted),
        (of_float16, weighted),
        (in_tf32, weighted),
        (in_float64, exchanged),
    ],
)
def test_other_statistics_fail(task, case, statistics, update):
    for seed in range(50):
        assert not judged(task, case, seed, statistics, update).passed


@each(TELLING)
@pytest.mark.parametrize("place", [1, 2])
def test_statistics_that_stay_as_they_were_fail(task, case, place):
    arguments = task.arguments(case, 3, "cpu")
    answer = honest(task, arguments)
    answer.mutated.args[place].copy_(arguments.args[place])
    assert rejected(task, case, arguments, answer)
