"""Trees of arguments and outputs: walking, copying, raising to float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from benchmark.suite.spec import Arguments

WIDE = {torch.complex64: torch.complex128, torch.complex128: torch.complex128}


def widened(dtype: torch.dtype) -> torch.dtype:
    """float64 for a floating dtype, complex128 for a complex one, itself otherwise."""
    if dtype.is_complex:
        return WIDE.get(dtype, torch.complex128)
    return torch.float64 if dtype.is_floating_point else dtype


def map_tree(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with every leaf changed; lists, tuples and dicts keep their form (named tuples
    become tuples).
    """
    if isinstance(tree, Arguments):
        return Arguments(map_tree(tree.args, change), map_tree(tree.kwargs, change))
    if isinstance(tree, dict):
        return {key: map_tree(value, change) for key, value in tree.items()}
    if isinstance(tree, tuple) and not isinstance(tree, torch.Size):
        return tuple(map_tree(value, change) for value in tree)
    if isinstance(tree, list):
        return [map_tree(value, change) for value in tree]
    return change(tree)


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path, `[1]` or `.key`, in a fixed order."""
    if isinstance(tree, Arguments):
        yield from leaves(tree.args, path)
        yield from leaves(tree.kwargs, path)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(tree, tuple | list) and not isinstance(tree, torch.Size):
        for index, value in enumerate(tree):
            yield from leaves(value, f"{path}[{index}]")
    else:
        yield path, tree


def tensors(tree: Any) -> list[torch.Tensor]:
    """The distinct tensors of a tree, in order."""
    found = {id(leaf): leaf for _, leaf in leaves(tree) if isinstance(leaf, torch.Tensor)}
    return list(found.values())


def copied(tree: Any) -> Any:
    """A copy that shares no memory, strides kept; a tensor that appears twice is one in the copy
    too.
    """
    return map_tree(tree, _Once(_copy, widens=False))


def upcast(tree: Any) -> Any:
    """A copy with floating tensors and floating dtype arguments raised to float64.

    complex64 becomes complex128; integers stay.
    """
    return map_tree(tree, _Once(_wide_copy, widens=True))


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    tensor = tensor.detach()
    if tensor.device.type == "meta" or 0 in tensor.stride():
        return tensor.clone()  # an expanded tensor overlaps itself and can't be written to
    empty = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    return empty.copy_(tensor)


def _wide_copy(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().to(widened(tensor.dtype), copy=True)


class _Once:
    """Changes tensors, the same one once, and widens dtypes when the change does."""

    def __init__(self, change: Callable[[torch.Tensor], torch.Tensor], widens: bool):
        self.change, self.widens = change, widens
        self.done: dict[int, torch.Tensor] = {}

    def __call__(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            if id(leaf) not in self.done:
                self.done[id(leaf)] = self.change(leaf)
            return self.done[id(leaf)]
        if isinstance(leaf, torch.dtype) and self.widens:
            return widened(leaf)
        return leaf
