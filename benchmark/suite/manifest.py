"""The names that the published benchmark fixed: category, difficulty and signature of each of its
tasks.

Facts of the publication (`published.json`), so that predictions made for it run here unchanged.
The tasks' content is ours.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Published:
    """One published task; `name` is its entry point, `aliases` are other names of its file."""

    name: str
    category: str
    difficulty: int
    signature: str
    aliases: tuple[str, ...] = ()


@functools.cache
def published() -> dict[str, Published]:
    """All published tasks by name."""
    text = resources.files("benchmark.suite").joinpath("published.json").read_text("utf-8")
    rows = (row | {"aliases": tuple(row.get("aliases", ()))} for row in json.loads(text))
    return {row["name"]: Published(**row) for row in rows}


def missing(names: tuple[str, ...]) -> tuple[str, ...]:
    """Published tasks that are not among the names."""
    return tuple(name for name in published() if name not in names)
