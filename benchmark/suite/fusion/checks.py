"""Checks that only chains need."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmark import vocabulary
from benchmark.suite.checks import Close, _answers, _form_problem, _verdict, expectations
from benchmark.suite.spec import Comparison, Trial
from benchmark.suite.trees import upcast


@dataclass(frozen=True)
class Located:
    """A pair of values and of indices where they are, or values alone.

    Where several places hold the value within rounding, each is right: what counts is the value
    that `located(indices, *args, **kwargs)` finds at an index, in float64.
    """

    located: Callable[..., torch.Tensor]
    length: Callable[..., int]
    close: Close

    def judge(self, trial: Trial) -> Comparison:
        expected = expectations(trial, self.close.magnitude)
        answers: dict[str, Any] = _answers(trial)
        indices = expected.get("output[1]")
        if indices is None:
            return _verdict(expected, answers, self.close._finding, "roundings")
        wide = upcast(trial.arguments)
        length = self.length(*wide.args, **wide.kwargs)
        given: Any = answers.get("output[1]")
        problem = _form_problem("output[1]", indices.native, given)
        if problem:
            return problem
        if bool(((given < 0) | (given >= length)).any()):
            detail = f"output[1]: indices outside [0, {length})"
            return Comparison(vocabulary.WRONG_VALUES, unit="roundings", detail=detail)
        values = expected["output[0]"]

        def found(places: Any) -> torch.Tensor:
            return self.located(places, *wide.args, **wide.kwargs)

        native = found(indices.native).to(values.native.dtype)
        expected["output[1]"] = replace(values, place="output[1]", native=native)
        answers["output[1]"] = found(given).to(values.native.dtype)
        return _verdict(expected, answers, self.close._finding, "roundings")

    def describe(self) -> str:
        return (
            "An index is right where its element is the value within the tolerance. "
            + self.close.describe()
        )
