"""The cost models: no honest kernel may look faster than physics because a model overcounts."""

import pytest

from benchmark import suite
from benchmark.suite.cost import distinct

# A fast board of today; a timed case is meant to take well under this on it.
BANDWIDTH, PEAK, LONGEST_SECONDS = 4e12, 5e14, 0.02


@pytest.mark.parametrize("task", suite.all_tasks(), ids=lambda task: task.name)
def test_timed_cases_ask_for_what_a_board_can_do(task):
    for case in task.timed_cases:
        assert task.bytes(case) / BANDWIDTH < LONGEST_SECONDS, case.name
        assert task.flops(case) / PEAK < LONGEST_SECONDS, case.name


def test_drawn_indices_name_fewer_places_than_draws():
    assert distinct(1, 5) == 1
    assert distinct(1000, 1) == pytest.approx(1)
    assert 390 < distinct(1000, 500) < 400
    assert distinct(10, 10_000) == pytest.approx(10)
