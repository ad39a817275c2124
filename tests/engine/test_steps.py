"""Seconds belong to the innermost step."""

import pytest

from runner.engine.steps import Steps


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_spent_in_a_step_within_is_counted_once():
    clock = Clock()
    steps = Steps(clock)
    with steps.step("blocks"):
        clock.now += 2
        with steps.step("verified"):
            clock.now += 5
        clock.now += 1
    with steps.step("blocks"):
        clock.now += 0.5
    assert steps.to_json() == {"verified": 5.0, "blocks": 3.5}
    assert list(steps.to_json()) == ["verified", "blocks"], "the longest first"


def test_a_step_that_fails_is_counted():
    clock = Clock()
    steps = Steps(clock)

    def fail() -> None:
        with steps.step("blocks"):
            clock.now += 2
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        fail()
    with steps.step("others"):
        clock.now += 1
    assert steps.to_json() == {"blocks": 2.0, "others": 1.0}
