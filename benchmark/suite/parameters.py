"""Mutants that treat one parameter wrongly."""

import inspect
from dataclasses import dataclass
from typing import Any

import torch

from benchmark.suite.scenes import Answer, Scene, honest
from benchmark.suite.spec import Arguments, Task
from benchmark.suite.trees import leaves, map_tree, tensors

REFUSES = (RuntimeError, ValueError, TypeError, IndexError)  # arguments that go together no more


@dataclass(frozen=True)
class Ignoring:
    """As if a parameter were not there: its default; where it has none, another draw for tensors,
    the value of another case for the rest.
    """

    parameter: str

    def __call__(self, scene: Scene) -> Answer | None:
        own = argument(scene.task, scene.arguments, self.parameter)
        other = self._other(scene, own)
        if other is own:
            return None
        answer = _called_with(scene, self.parameter, other)
        if answer is None or not tensors((own,)) or tensors((other,)):
            return answer
        # `out=` and the like: what was to be written is as it was
        return Answer(answer.outputs, _replaced(scene.task, answer.mutated, self.parameter, own))

    def _other(self, scene: Scene, own: Any) -> Any:
        default = inspect.signature(scene.task.function).parameters[self.parameter].default
        if own is ABSENT:
            return own
        if default is not inspect.Parameter.empty:
            return default if bool(tensors((own,))) or own != default else own
        if tensors((own,)):
            return argument(scene.task, scene.previous, self.parameter)
        for case in scene.task.cases:
            arguments = scene.task.arguments(case, scene.seed, "meta")
            other = argument(scene.task, arguments, self.parameter)
            if not tensors((other,)) and other is not ABSENT and other != own:
                return other
        return own


@dataclass(frozen=True)
class EpsLeftOut:
    """Zero for a small number that keeps a denominator away from zero."""

    parameter: str

    def __call__(self, scene: Scene) -> Answer | None:
        own = argument(scene.task, scene.arguments, self.parameter)
        if own is ABSENT:
            own = inspect.signature(scene.task.function).parameters[self.parameter].default
        return _called_with(scene, self.parameter, 0.0) if isinstance(own, float) and own else None


@dataclass(frozen=True)
class WrongAxis:
    """The next dimension for each that is named, brought to the right answer's shape."""

    parameter: str

    def __call__(self, scene: Scene) -> Answer | None:
        own = argument(scene.task, scene.arguments, self.parameter)
        if own is ABSENT:
            own = inspect.signature(scene.task.function).parameters[self.parameter].default
        given = tensors(scene.arguments)
        rank = given[0].dim() if given else 0
        named = own if isinstance(own, tuple) else (own,)
        whole = any(not isinstance(d, int) for d in named) or len(set(named)) >= rank
        if whole or scene.task.may_mutate(scene.case):
            return None
        other = tuple((d + 1) % rank for d in named)
        value = other if isinstance(own, tuple) else other[0]
        answer = _called_with(scene, self.parameter, value)
        return None if answer is None else Answer(_fitted(scene, answer.outputs), answer.mutated)


def _fitted(scene: Scene, outputs: list[Any]) -> list[Any]:
    """The outputs repeated or cut to the shapes of the right ones."""
    right = [leaf for _, leaf in leaves(scene.right.outputs)]
    forms = iter(right)

    def fit(leaf: Any) -> Any:
        form = next(forms, None)
        if not isinstance(leaf, torch.Tensor) or not isinstance(form, torch.Tensor):
            return leaf
        if leaf.shape == form.shape or not leaf.numel():
            return leaf
        return (
            leaf.reshape(-1)
            .repeat(-(-form.numel() // leaf.numel()))[: form.numel()]
            .view(form.shape)
        )

    fitted = map_tree(outputs, fit)
    assert isinstance(fitted, list)
    return fitted


class _Absent:
    """Stands for an argument that a call doesn't give."""


ABSENT = _Absent()


def argument(task: Task, arguments: Arguments, parameter: str) -> Any:
    """The argument that a call gives for a parameter, ABSENT if it gives none."""
    if parameter in arguments.kwargs:
        return arguments.kwargs[parameter]
    index = _place(task, parameter)
    if index is None or index >= len(arguments.args):
        return ABSENT
    return arguments.args[index]


def _place(task: Task, parameter: str) -> int | None:
    """The place of a parameter that may be given by it; None for one that needs its name."""
    parameters = inspect.signature(task.function).parameters
    by_place = parameters[parameter].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    return list(parameters).index(parameter) if by_place else None


def _replaced(task: Task, arguments: Arguments, parameter: str, value: Any) -> Arguments:
    """The arguments with another one for the parameter, in its place."""
    index = _place(task, parameter)
    if index is None or parameter in arguments.kwargs or index >= len(arguments.args):
        return Arguments(arguments.args, arguments.kwargs | {parameter: value})
    args = (*arguments.args[:index], value, *arguments.args[index + 1 :])
    return Arguments(args, arguments.kwargs)


def _called_with(scene: Scene, parameter: str, value: Any) -> Answer | None:
    """PyTorch's answer with another argument for the parameter; None if it refuses that.

    On the host: an index that is out of range there ends a call, on a GPU it ends the process.
    """
    other = _replaced(scene.task, scene.arguments, parameter, value)
    try:
        answer = honest(scene.task, _moved(other, "cpu"))
    except REFUSES:
        return None
    outputs, after = (_moved(tree, scene.device) for tree in (answer.outputs, answer.mutated))
    return Answer(outputs, scene.restored(other, after))


def _moved(tree: Any, device: str) -> Any:
    return map_tree(tree, lambda leaf: leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf)
