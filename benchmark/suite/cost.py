"""Cost models: operations by formula, traffic and memory from the shapes of a case (on the meta
device).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from benchmark.suite.spec import Case, Task
from benchmark.suite.trees import leaves, tensors, widened


class Model(Protocol):
    """A number per case: operations, or bytes."""

    def __call__(self, case: Case) -> float: ...


@dataclass(frozen=True)
class PerElement:
    """So many operations for each element of the case's shape."""

    operations: float

    def __call__(self, case: Case) -> float:
        return self.operations * math.prod(case.shape)


@dataclass(frozen=True)
class Product:
    """`factor` x the product of the named sizes; names a case lacks count as 1."""

    factor: float
    names: tuple[str, ...]

    def __call__(self, case: Case) -> float:
        return self.factor * math.prod(case.sizes.get(name, 1) for name in self.names)


@dataclass(frozen=True)
class Total:
    """The sum of several models."""

    models: tuple[Model, ...]

    def __call__(self, case: Case) -> float:
        return sum(model(case) for model in self.models)


def per_element(operations: float) -> PerElement:
    """`operations` for each element of the case's shape."""
    return PerElement(operations)


def product(factor: float, *names: str) -> Product:
    """`factor` x sizes: `product(2, "batch", "m", "k", "n")` for a batched matrix product."""
    return Product(factor, names)


def matmul(*names: str) -> Product:
    """Two operations for each of batch x m x k x n, or the sizes named."""
    return Product(2, names or ("batch", "m", "k", "n"))


def total(*models: Model) -> Total:
    """The sum of several models."""
    return Total(models)


def distinct(high: int, drawn: int) -> float:
    """How many of `high` places `drawn` independent uniform indices are expected to name: only
    those must be read.
    """
    return float(high) if high == 1 else -high * math.expm1(drawn * math.log1p(-1 / high))


@dataclass(frozen=True)
class Traffic:
    """Bytes of all tensors in (but `out=`, which is only written) and out, from shapes alone."""

    task: Task

    def __call__(self, case: Case) -> float:
        arguments, output = shapes(self.task, case)
        read = {id(t): t for t in tensors(arguments)}
        for path, leaf in leaves(arguments.kwargs):
            if path == ".out":
                read.pop(id(leaf), None)
        return sum(map(_bytes, read.values())) + sum(map(_bytes, tensors(output)))


def traffic(task: Task) -> Traffic:
    """The model of traffic of a task that declares none."""
    return Traffic(task)


def shapes(task: Task, case: Case) -> tuple[Any, Any]:
    """The call's arguments and outputs on the meta device: shapes and dtypes, no memory.

    Where only the values say how long the output is (`masked_select`), or PyTorch has no shape rule
    (`binomial`), the first argument stands for it: such outputs are at most as large.
    """
    arguments = task.arguments(case, 0, "meta")
    try:
        with torch.no_grad():
            return arguments, task.reference(arguments)
    except NotImplementedError:
        return arguments, arguments.args[0]


def judging_memory(task: Task, case: Case) -> float:
    """Bytes that `compare` holds at most: arguments and outputs in their dtype twice (ours, the
    candidate's), raised to float64 twice (truth and its magnitude)."""
    arguments, output = shapes(task, case)
    held = tensors((arguments.args, arguments.kwargs, output))
    return sum(2 * _bytes(t) + 2 * t.numel() * widened(t.dtype).itemsize for t in held)


def _bytes(tensor: torch.Tensor) -> float:
    return tensor.numel() * tensor.element_size()
