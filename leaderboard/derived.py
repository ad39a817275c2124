"""Values kept as long as the kept boards that they were made from: by identity, never timed.

A board that results have changed is another object, so what followed from the old one is made anew.
On a site whose boards aren't kept, nothing here is either.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Derived(Generic[Value]):
    """At most `size` values, the longest unasked given up first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: dict[Hashable, tuple[tuple[object, ...], Value]] = {}

    def get(self, key: Hashable, made_of: Sequence[object], make: Callable[[], Value]) -> Value:
        held = self._held.pop(key, None)
        if held is None or not _same(held[0], made_of):
            held = (tuple(made_of), make())
        self._held[key] = held
        while len(self._held) > self._size:
            self._held.pop(next(iter(self._held)), None)
        return held[1]


def _same(left: Sequence[object], right: Sequence[object]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))
