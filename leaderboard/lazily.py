"""Rows that are made when they are looked at: a page shows a few of thousands."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

What = TypeVar("What")


class Rows(Sequence[What]):
    """`count` rows, the one at a place made by `make` each time that it is asked for."""

    def __init__(self, count: int, make: Callable[[int], What]) -> None:
        self._places = range(count)
        self._make = make

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[What]:
        return map(self._make, self._places)

    @overload
    def __getitem__(self, at: int) -> What: ...

    @overload
    def __getitem__(self, at: slice) -> "Rows[What]": ...

    def __getitem__(self, at: int | slice) -> "What | Rows[What]":
        places = self._places[at]
        return self._make(places) if isinstance(places, int) else self.only(places)

    def only(self, places: Sequence[int]) -> "Rows[What]":
        """Those at the places, in their order."""
        return Rows(len(places), lambda at: self._make(places[at]))
