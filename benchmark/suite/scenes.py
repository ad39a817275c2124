"""One call of a task, its right answer, and answers made out of it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from benchmark.suite.spec import Arguments, Case, Task
from benchmark.suite.trees import copied, leaves, map_tree

SEED = 5


@dataclass(frozen=True)
class Answer:
    """What a candidate returned in each draw, and its arguments after the last."""

    outputs: list[Any]
    mutated: Arguments


@dataclass(frozen=True, eq=False)
class Scene:
    """One call of a task with its right answer, computed once for all mutants."""

    task: Task
    case: Case
    seed: int = SEED
    device: str = "cpu"

    @cached_property
    def arguments(self) -> Arguments:
        return self.task.arguments(self.case, self.seed, self.device)

    @cached_property
    def previous(self) -> Arguments:
        """The arguments of another call of the same case."""
        return self.task.arguments(self.case, self.seed + 1, self.device)

    @cached_property
    def right(self) -> Answer:
        """PyTorch's own answer; mutants copy what they change."""
        return honest(self.task, self.arguments)

    def rejects(self, answer: Answer) -> bool:
        return rejected(self.task, self.case, self.arguments, answer)

    def called(self, arguments: Arguments) -> Answer:
        """PyTorch's answer to other arguments, as the answer to these: only what the call wrote
        differs after it.
        """
        answer = honest(self.task, arguments)
        return Answer(answer.outputs, self.restored(arguments, answer.mutated))

    def changed(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Answer:
        """The right answer with every non-empty tensor changed that the call returned or wrote."""

        def on_leaf(leaf: Any) -> Any:
            if isinstance(leaf, torch.Tensor) and leaf.numel():
                return change(leaf).to(leaf.dtype).reshape(leaf.shape).contiguous()
            return leaf

        kept = _unwritten(self.arguments, self.right.mutated)
        mutated = map_tree(
            self.right.mutated, lambda leaf: leaf if id(leaf) in kept else on_leaf(leaf)
        )
        return Answer(map_tree(self.right.outputs, on_leaf), mutated)

    def restored(self, before: Arguments, after: Arguments) -> Arguments:
        """`after` with what the call left as it was `before` taken from this scene."""
        if not self.task.may_mutate(self.case):
            return self.arguments
        kept = _unwritten(before, after)
        own = dict(leaves(self.arguments))
        places = {id(leaf): own.get(place, leaf) for place, leaf in leaves(after)}
        restored = map_tree(after, lambda leaf: places[id(leaf)] if id(leaf) in kept else leaf)
        assert isinstance(restored, Arguments)
        return restored


def _unwritten(before: Arguments, after: Arguments) -> set[int]:
    """Identities of the tensors of `after` that are as they were before."""
    pairs = zip(leaves(before), leaves(after), strict=True)
    return {id(b) for (_, a), (_, b) in pairs if isinstance(b, torch.Tensor) and equal(a, b)}


def equal(left: Any, right: torch.Tensor) -> bool:
    """Whether two tensors hold the same values; NaN equals NaN."""
    if not isinstance(left, torch.Tensor) or left.shape != right.shape:
        return False
    return bool(((left == right) | ((left != left) & (right != right))).all())


def honest(task: Task, arguments: Arguments) -> Answer:
    """PyTorch's own answer, as a candidate would give it."""
    outputs, after = [], arguments
    for _ in range(task.draws):
        after = copied(arguments)
        outputs.append(copied(task.reference(after)))
    return Answer(outputs, after)


def rejected(task: Task, case: Case, arguments: Arguments, answer: Answer) -> bool:
    return not task.compare(case, arguments, answer.outputs, answer.mutated).passed
