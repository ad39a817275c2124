"""Pure: what changed between two versions of a task's contract."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# What a version keeps beside its reference source; each is a column of Task.
FACTS = (
    "signature",
    "description",
    "tolerance",
    "difficulty",
    "dtypes",
    "differences",
    "delegates",
    "cases",
)


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is not as it was. `lines` starts with "-" for gone and "+" for new."""

    what: str
    lines: tuple[str, ...]


def kept(task: Any) -> dict[str, Any]:
    """Of anything that has a task's facts: what its version keeps."""
    return {name: getattr(task, name) for name in FACTS}


def changes(
    old: Mapping[str, Any], new: Mapping[str, Any], old_source: str, new_source: str
) -> tuple[Change, ...]:
    """Empty contracts were not kept: of these only the sources are compared."""
    found = [
        Change(name.replace("_", " "), tuple(_lines(old[name], new[name])))
        for name in FACTS
        if name in old and name in new and old[name] != new[name]
    ]
    if old_source != new_source:
        found.append(Change("reference source", tuple(_diff(old_source, new_source))))
    return tuple(found)


def _lines(old: Any, new: Any) -> Iterable[str]:
    if isinstance(old, list) and isinstance(new, list):
        yield from (f"- {_word(item)}" for item in old if item not in new)
        yield from (f"+ {_word(item)}" for item in new if item not in old)
    elif isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        yield from _diff(old, new)
    else:
        yield from (f"- {old}", f"+ {new}")


def _word(item: Any) -> str:
    """A list's item in one line: a case by its facts."""
    return " · ".join(map(str, item.values())) if isinstance(item, Mapping) else str(item)


def _diff(old: str, new: str) -> Iterable[str]:
    """A unified diff without its head."""
    found = difflib.unified_diff(old.splitlines(), new.splitlines(), n=2, lineterm="")
    return list(found)[2:]
