"""Values kept as long as what they were made from: by identity, never timed.

What results have changed is another object, so what followed from the old one is made anew. On a
site whose boards aren't kept, nothing here is either.
"""

import gc
from collections.abc import Callable, Hashable, Sequence
from threading import Lock, RLock
from typing import Generic, TypeVar

Value = TypeVar("Value")
MAKERS = 8  # what is made at once, at most, of one kind


class Derived(Generic[Value]):
    """At most `size` values, the longest unasked given up first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: dict[Hashable, tuple[tuple[object, ...], Value]] = {}
        self._lock = Lock()  # threads share it
        self._makers = [RLock() for _ in range(MAKERS)]

    def get(self, key: Hashable, made_of: Sequence[object], make: Callable[[], Value]) -> Value:
        """Of threads that ask for what isn't there, one makes it and the others wait for it."""
        held = self._fresh(key, made_of)
        if held is None:
            with self._makers[hash(key) % MAKERS]:
                held = self._fresh(key, made_of) or (tuple(made_of), _made(make))
                self._keep(key, held)
        else:
            self._keep(key, held)
        return held[1]

    def _keep(self, key: Hashable, held: tuple[tuple[object, ...], Value]) -> None:
        """As what was asked for last."""
        with self._lock:
            self._held.pop(key, None)
            self._held[key] = held
            while len(self._held) > self._size:
                del self._held[next(iter(self._held))]

    def _fresh(
        self, key: Hashable, made_of: Sequence[object]
    ) -> tuple[tuple[object, ...], Value] | None:
        held = self._held.get(key)
        return held if held is not None and _same(held[0], made_of) else None

    def forget(self) -> None:
        with self._lock:
            self._held.clear()


class Latest(Generic[Value]):
    """Gives back the former object as long as a new one equals it, so that what was derived from it
    stays. One of each name.
    """

    def __init__(self) -> None:
        self._held: dict[Hashable, Value] = {}

    def of(self, name: Hashable, value: Value) -> Value:
        held = self._held.get(name)
        if held is not None and held == value:
            return held
        self._held[name] = value
        return value

    def forget(self) -> None:
        self._held.clear()


def _same(left: Sequence[object], right: Sequence[object]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def _made(make: Callable[[], Value]) -> Value:
    """Made without Python looking for garbage: it would walk over all that is kept, several times,
    and rows have no cycles to find.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        return make()
    finally:
        if was_on:
            gc.enable()
