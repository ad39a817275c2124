"""Checks that only chains need."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmark import vocabulary
from benchmark.suite.checks import (
    Close,
    Mixture,
    _answers,
    _form_problem,
    _named,
    _native,
    _verdict,
    _wrong_form,
    expectations,
)
from benchmark.suite.spec import Comparison, Trial, strict_precision
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


@dataclass(frozen=True)
class Recovered(Mixture):
    """A dropout whose choices went through a product: `recover(output, *args, **kwargs)` undoes in
    float64 what followed it, and what comes out is judged as the dropout's own result.
    """

    recover: Callable[..., torch.Tensor] | None = None

    def judge(self, trial: Trial) -> Comparison:
        native = _native(trial)[1]
        wrong = _wrong_form(dict(_named(native)), _answers(trial))
        if wrong:
            return wrong
        assert self.recover is not None
        with strict_precision():
            wide = upcast(trial.arguments)
            branches = self.branches(*wide.args, **wide.kwargs)
            size = self.close.magnitude
            magnitude = None if size is None else size(*wide.args, **wide.kwargs)
            undone = [
                self.recover(output.double(), *wide.args, **wide.kwargs) for output in trial.outputs
            ]
        return self._judge(branches, magnitude, undone, native.dtype)

    def describe(self) -> str:
        return "What follows the dropout is undone in float64. " + super().describe()
