"""Reads JSON that others sent: a declared shape, bounded in every direction.

A field says what it accepts and `read` gives back a clean value or raises `Malformed` with the
place. Names that the shape doesn't know are dropped, so that messages may grow.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

CUT = " [...]"
LARGEST = 1e300


class Malformed(Exception):  # noqa: N818  says what the message is
    """The message is not what its sender has to send; says where and what was expected."""

    def __init__(self, place: str, expected: str) -> None:
        super().__init__(f"{place}: {expected}")


class Field(Protocol):
    def read(self, value: Any, place: str) -> Any: ...


def storable(text: str) -> str:
    """Text that every database takes: no NUL and no half of a surrogate pair.

    A candidate can print both, so they are replaced and are no reason to refuse its report.
    """
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True)
class Text:
    """A name or identifier: refused when it is longer than `limit` characters."""

    limit: int

    def read(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise Malformed(place, "a string")
        if len(value) > self.limit:
            raise Malformed(place, f"at most {self.limit} characters, not {len(value)}")
        return storable(value)


@dataclass(frozen=True)
class Prose:
    """Free text, in which a candidate may have had its say: cut at `limit` characters."""

    limit: int

    def read(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise Malformed(place, "a string")
        text = storable(value)
        return text if len(text) <= self.limit else text[: self.limit - len(CUT)] + CUT


@dataclass(frozen=True)
class Hex:
    """Lower-case hexadecimal digits, `length` of them."""

    length: int

    def read(self, value: Any, place: str) -> str:
        if (
            not isinstance(value, str)
            or len(value) != self.length
            or not set(value) <= set("0123456789abcdef")
        ):
            raise Malformed(place, f"{self.length} hexadecimal digits")
        return value


@dataclass(frozen=True)
class Slug:
    """Lower-case words joined by hyphens, at most `limit` characters: part of a queue's name."""

    limit: int

    def read(self, value: Any, place: str) -> str:
        text = Text(self.limit).read(value, place)
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text):
            raise Malformed(place, "lower-case words and digits joined by hyphens")
        return text


@dataclass(frozen=True)
class Word:
    words: tuple[str, ...]

    def read(self, value: Any, place: str) -> str:
        if not isinstance(value, str) or value not in self.words:
            raise Malformed(place, f"one of {', '.join(self.words)}")
        return value


@dataclass(frozen=True)
class Number:
    """A finite number from `low` to `high`; with `above`, `low` itself is refused."""

    low: float
    high: float
    above: bool = False

    def read(self, value: Any, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Malformed(place, "a number")
        # NaN is in no range, so this refuses it too; a huge integer compares without overflow.
        if not self.low <= value <= self.high or (self.above and value == self.low):
            raise Malformed(place, f"a number from {self.low:g} to {self.high:g}")
        return float(value)


@dataclass(frozen=True)
class Whole:
    low: int
    high: int

    def read(self, value: Any, place: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise Malformed(place, "a whole number")
        if not self.low <= value <= self.high:
            raise Malformed(place, f"a whole number from {self.low} to {self.high}")
        return value


@dataclass(frozen=True)
class Flag:
    def read(self, value: Any, place: str) -> bool:
        if not isinstance(value, bool):
            raise Malformed(place, "true or false")
        return value


@dataclass(frozen=True)
class Optional:
    """Null, absent, or what `field` accepts."""

    field: Field
    default: Any = None

    def read(self, value: Any, place: str) -> Any:
        return self.default if value is None else self.field.read(value, place)


@dataclass(frozen=True)
class List:
    field: Field
    limit: int

    def read(self, value: Any, place: str) -> list[Any]:
        if not isinstance(value, list):
            raise Malformed(place, "a list")
        if len(value) > self.limit:
            raise Malformed(place, f"at most {self.limit} entries, not {len(value)}")
        return [self.field.read(item, f"{place}[{at}]") for at, item in enumerate(value)]


@dataclass(frozen=True)
class Table:
    """Up to `limit` entries of one kind, by names that the shape doesn't know."""

    name: Field
    field: Field
    limit: int

    def read(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Malformed(place, "an object")
        if len(value) > self.limit:
            raise Malformed(place, f"at most {self.limit} entries, not {len(value)}")
        return {
            self.name.read(name, place): self.field.read(item, f"{place}.{str(name)[:40]}")
            for name, item in value.items()
        }


@dataclass(frozen=True)
class Record:
    fields: Mapping[str, Field]

    def read(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Malformed(place, "an object")
        return {
            name: field.read(value.get(name), f"{place}.{name}")
            for name, field in self.fields.items()
        }


@dataclass(frozen=True)
class Json:
    """Any JSON within `nodes` values and `depth` levels: finite numbers, strings up to 2,000."""

    nodes: int
    depth: int = 6
    text: int = 2000

    def read(self, value: Any, place: str) -> Any:
        return _read_tree(value, place, self, [self.nodes], self.depth)


def _read_tree(value: Any, place: str, limits: Json, left: list[int], depth: int) -> Any:
    left[0] -= 1
    if left[0] < 0 or depth < 0:
        raise Malformed(place, f"at most {limits.nodes} values in {limits.depth} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return Prose(limits.text).read(value, place)
    if isinstance(value, int | float):
        if not abs(value) <= LARGEST:  # refuses NaN too
            raise Malformed(place, "a finite number")
        return value
    if isinstance(value, list):
        return [
            _read_tree(item, f"{place}[{at}]", limits, left, depth - 1)
            for at, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return {
            Text(120).read(name, place): _read_tree(
                item, f"{place}.{name[:40]}", limits, left, depth - 1
            )
            for name, item in value.items()
        }
    raise Malformed(place, "JSON")
