"""The registry: category decorators that register tasks, and look-up by name. Task modules load on
first use.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Callable
from typing import Any

from benchmark import vocabulary
from benchmark.suite import promised
from benchmark.suite.manifest import published
from benchmark.suite.spec import Task

MACHINERY = {
    "checks",
    "cost",
    "digest",
    "inputs",
    "manifest",
    "mutants",
    "parameters",
    "promised",
    "prompts",
    "proving",
    "registry",
    "scenes",
    "spec",
    "trees",
}
_tasks: dict[str, Task] = {}
_aliases: dict[str, str] = {}
_loading = threading.RLock()
_loaded = False


class UnknownTask(KeyError):  # noqa: N818 - says what it is, as http.Http404 does
    """No task of this name; `near` are names that look like it."""

    def __init__(self, name: str, near: tuple[str, ...]):
        self.name, self.near = name, near
        super().__init__(name)

    def __str__(self) -> str:
        hint = f"did you mean {', '.join(self.near)}?" if self.near else "`kbx tasks` lists them"
        return f"no task is named {self.name!r}; {hint}"


def category(name: str) -> Callable[..., Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """The decorator factory of a category, by its published name.

    `activation = category("Activation")`, then `@activation("gelu", inputs=..., cases=...,
    check=..., flops=...)` above the reference. It registers a `Task` and returns the function
    unchanged.
    """
    if name not in vocabulary.CATEGORY_BY_NAME:
        known = ", ".join(vocabulary.CATEGORY_BY_NAME)
        raise ValueError(f"unknown category {name!r}; known are {known}")

    def decorator(task: str, **parts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return _Registration(name, task, parts)

    return decorator


class _Registration:
    """Registers the function it is put on, with category, difficulty and signature as published."""

    def __init__(self, category_name: str, task: str, parts: dict[str, Any]):
        fact = published().get(task)
        if fact is None:
            raise ValueError(
                f"{task!r} is not a published task: see benchmark/suite/published.json"
            )
        if fact.category != category_name:
            raise ValueError(f"{task!r} is published in {fact.category}, not in {category_name}")
        self.fact, self.parts = fact, dict(parts)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        flops, traffic = self.parts.pop("flops"), self.parts.pop("bytes", None)
        truth = self.parts.pop("truth", None)
        cases, beyond = promised.split(self.fact, self.parts.pop("cases"))
        differences = (*self.parts.pop("differences", ()), *promised.note(beyond))
        _register(
            Task(
                name=self.fact.name,
                category=self.fact.category,
                difficulty=self.fact.difficulty,
                signature=self.fact.signature,
                aliases=self.fact.aliases,
                function=function,
                cases=cases,
                beyond=beyond,
                differences=differences,
                flops_model=flops,
                bytes_model=traffic,
                truth_function=truth,
                **self.parts,
            )
        )
        return function


def _register(task: Task) -> None:
    if task.name in _tasks:
        raise ValueError(f"two tasks are named {task.name!r}")
    names = [case.name for case in (*task.cases, *task.beyond)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"task {task.name}: case names used twice: {', '.join(twice)}")
    _tasks[task.name] = task
    _aliases.update(dict.fromkeys(task.aliases, task.name))


def _load() -> None:
    """Import every module below `benchmark.suite` but the machinery: they register their tasks."""
    global _loaded
    with _loading:
        if not _loaded:
            package = importlib.import_module("benchmark.suite")
            for found in pkgutil.walk_packages(package.__path__, "benchmark.suite."):
                if found.name.split(".")[2] not in MACHINERY:
                    importlib.import_module(found.name)
            _loaded = True


def all_tasks() -> tuple[Task, ...]:
    """Every task, ordered by category as on the site, then by name."""
    _load()
    order = list(vocabulary.CATEGORY_BY_NAME)
    return tuple(sorted(_tasks.values(), key=lambda task: (order.index(task.category), task.name)))


def names() -> tuple[str, ...]:
    """The names of all tasks, in the same order."""
    return tuple(task.name for task in all_tasks())


def resolve(name: str) -> str | None:
    """The task's name for a name or an alias of it; None when there is none."""
    _load()
    return name if name in _tasks else _aliases.get(name)


def get(name: str) -> Task:
    """The task of this name or alias; UnknownTask with near misses otherwise."""
    resolved = resolve(name)
    if resolved is None:
        near = difflib.get_close_matches(name, [*_tasks, *_aliases], n=3)
        raise UnknownTask(name, tuple(near))
    return _tasks[resolved]


def suite_digest() -> str:
    """The fingerprint of the whole suite. (Not `digest`: a module has that name.)"""
    from benchmark.suite import digest

    return digest.suite_digest(all_tasks())
