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
    """One published task. `name` is its entry point; `aliases` are what its file is called, what
    TritonBench-T calls it, and what a dotted name in its prompt becomes (`linalg.svd`:
    `linalg_svd`). `dtypes` are those of the published tests' and timings' tensors; `any_layout`:
    published tests hand it tensors that aren't contiguous.
    """

    name: str
    category: str
    difficulty: int
    signature: str
    dtypes: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    any_layout: bool = False


@functools.cache
def published() -> dict[str, Published]:
    """All published tasks by name."""
    text = resources.files("benchmark.suite").joinpath("published.json").read_text("utf-8")
    found = {}
    for row in json.loads(text):
        lists = {key: tuple(row.get(key, ())) for key in ("aliases", "dtypes")}
        found[row["name"]] = Published(**(row | lists))
    return found


def missing(names: tuple[str, ...]) -> tuple[str, ...]:
    """Published tasks that are not among the names."""
    return tuple(name for name in published() if name not in names)
