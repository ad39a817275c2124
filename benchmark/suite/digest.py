"""Fingerprints of tasks: code without docstrings, comments and layout, plus cases, tolerances and
an epoch.

What a task uses is followed through the suite: a function's globals, the methods it calls on the
maker, the fields and class of a frozen dataclass. A helper that a task does not use does not
change its digest.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import functools
import hashlib
import inspect
import json
import linecache
import textwrap
import types
from collections.abc import Iterator
from typing import Any

from benchmark.suite.inputs import FAMILIES, Maker
from benchmark.suite.spec import Case, Task

EPOCH = (
    1  # raise when results of every task must be judged anew for a reason the code does not show
)
OWN = "benchmark.suite"
# Parts of a task that change what is judged; its category, difficulty and prose don't.
JUDGED = (
    "name",
    "signature",
    "function",
    "inputs",
    "check",
    "truth_function",
    "flops_model",
    "bytes_model",
    "mutates",
    "delegates",
    "draws",
)


def task_digest(task: Task) -> str:
    """SHA-256 over everything that decides the task's answers, tolerances and work."""
    parts = _Parts()
    for name in JUDGED:
        parts.add(name, getattr(task, name))
    if task.may_write:  # the digests of all others stay as they were before there was such a thing
        parts.add("may_write", task.may_write)
    for case in task.cases:
        parts.add(f"case {case.name}", case)
        parts.add(f"family {case.family}", FAMILIES[case.family])
    return parts.digest()


def suite_digest(tasks: tuple[Task, ...]) -> str:
    """SHA-256 over the digests of all tasks."""
    lines = sorted(f"{task.name} {task.digest}" for task in tasks)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def undecorated(function: Any) -> str:
    """A function's source as written, without its decorators."""
    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    return "".join(source.splitlines(keepends=True)[node.lineno - 1 :]).rstrip() + "\n"


class _Parts:
    """Collects named texts, each source once."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {"epoch": str(EPOCH)}

    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.texts, sort_keys=True).encode()).hexdigest()

    def add(self, name: str, value: Any) -> None:
        self.texts[name] = self._text(value)

    def _text(self, value: Any) -> str:
        if isinstance(value, types.FunctionType | type):
            return self._source(value)
        if isinstance(value, functools.partial):
            parts = value.func, value.args, value.keywords
            return f"partial({', '.join(map(self._text, parts))})"
        if isinstance(value, Task):
            return value.name  # a cost model that belongs to its task
        if dataclasses.is_dataclass(value):
            return self._record(value)
        if isinstance(value, dict):
            items = sorted((str(key), self._text(item)) for key, item in value.items())
            return json.dumps(items)
        if isinstance(value, tuple | list):
            return json.dumps([self._text(item) for item in value])
        if value is None or isinstance(value, str | int | float | bool | complex):
            return repr(value)
        return self._foreign(value)

    def _record(self, value: Any) -> str:
        shown = [
            f"{f.name}={self._text(getattr(value, f.name))}" for f in dataclasses.fields(value)
        ]
        head = type(value).__name__ if isinstance(value, Case) else self._source(type(value))
        return f"{head}({', '.join(shown)})"

    def _foreign(self, value: Any) -> str:
        """Something of torch or the standard library, by its name; objects with an address are
        refused.
        """
        named = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        text = f"{getattr(value, '__module__', '')}.{named}" if named else repr(value)
        if " at 0x" in text:
            raise TypeError(f"{text} has no stable text: use a function or a frozen dataclass")
        return text

    def _source(self, thing: Any) -> str:
        """The name of a function or class; its source and what it uses are noted once."""
        name = f"{thing.__module__}.{thing.__qualname__}"
        if "<lambda>" in name or "<locals>" in name:
            raise TypeError(
                f"{name}: lambdas and closures can't be fingerprinted, use a frozen dataclass"
            )
        if name not in self.texts and (thing.__module__.startswith(OWN) or _is_local(thing)):
            text, used = _definition(thing)
            self.texts[name] = text
            for label, value in used:
                self.texts[f"{name} uses {label}"] = self._text(value)
        return name


def _is_local(thing: Any) -> bool:
    """Code of a test or a plug-in: anything that is neither installed nor built in."""
    path = inspect.getsourcefile(thing) or ""
    return "site-packages" not in path and "lib/python" not in path


@functools.cache
def _definition(thing: Any) -> tuple[str, list[tuple[str, Any]]]:
    """A function's or class's normalized source, and what it uses, by name; tasks share most."""
    thing = inspect.unwrap(thing)  # a decorated one: what it does is in what it wraps
    path = inspect.getsourcefile(thing)
    if path is None:
        raise TypeError(f"{thing.__module__}.{thing.__qualname__} has no source to fingerprint")
    tree = _definitions(path)[thing.__qualname__]
    return _text_of(tree), sorted(_used(thing, tree), key=lambda pair: pair[0])


@functools.cache
def _definitions(path: str) -> dict[str, ast.AST]:
    """Every function and class of a file by its qualified name, without decorators, docstrings and
    layout. A file is parsed once: whole-suite digests need some thousand definitions.
    """
    found: dict[str, ast.AST] = {}
    _collect(ast.parse("".join(linecache.getlines(path))), "", found)
    return found


def _collect(parent: ast.AST, prefix: str, found: dict[str, ast.AST]) -> None:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            name = f"{prefix}{node.name}"
            found[name] = _normalized(node)
            inner = f"{name}." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."
            _collect(node, inner, found)
        else:
            _collect(node, prefix, found)


def _normalized(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            node.decorator_list = []
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _text_of(tree: ast.AST) -> str:
    """The code as Python 3.11 writes it. Later ones write f-strings in another way, and a site and
    its hosts need not be of one Python.
    """
    return ast.unparse(_FormattedAlike().visit(copy.deepcopy(tree)))


QUOTES = ("'", '"', '"""', "'''")
IN_PARENTHESES = (ast.IfExp, ast.Lambda, ast.NamedExpr, ast.Yield, ast.YieldFrom)


class _FormattedAlike(ast.NodeTransformer):
    """Puts a name in the place of each f-string: its text, which `unparse` then writes as it is."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Name:
        self.generic_visit(node)
        text = "".join(map(self._part, node.values))
        quote = next((one for one in QUOTES if one not in text), None)
        if quote is None or "\n" in text or text.endswith(quote[0]):
            raise TypeError(f"{text!r} has no text that all Pythons write alike: take it apart")
        return ast.Name(id=f"f{quote}{text}{quote}")

    def _part(self, node: ast.expr) -> str:
        if isinstance(node, ast.Constant):
            text = str(node.value).replace("{", "{{").replace("}", "}}")
            return text.encode("unicode_escape").decode() if "\\" in repr(text) else text
        assert isinstance(node, ast.FormattedValue)
        value = ast.unparse(node.value)
        if isinstance(node.value, IN_PARENTHESES):
            value = f"({value})"
        space = " " if value.startswith("{") else ""
        kind = f"!{chr(node.conversion)}" if node.conversion != -1 else ""
        form = f":{_spec(node.format_spec)}" if node.format_spec else ""
        return f"{{{space}{value}{kind}{form}}}"


def _spec(text: ast.expr) -> str:
    """What stands behind the colon: an f-string that was put in a name's place, without quotes."""
    assert isinstance(text, ast.Name)
    return text.id[2:-1]


def _used(thing: Any, tree: ast.AST) -> Iterator[tuple[str, Any]]:
    """Globals of the definition that are code or constants of the suite, and the maker's methods
    by name.
    """
    scope = inspect.getmodule(thing).__dict__ if isinstance(thing, type) else thing.__globals__
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for name in names & scope.keys():
        if _is_ours(scope[name]):
            yield name, scope[name]
    for attribute in {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}:
        method = inspect.getattr_static(Maker, attribute, None)
        if thing is not Maker and isinstance(method, types.FunctionType):
            yield f"Maker.{attribute}", method


def _is_ours(value: Any) -> bool:
    if isinstance(value, types.FunctionType | type):
        machinery = value in (Maker, Task) or value.__name__ in (
            "Arguments",
            "Case",
            "Comparison",
            "Trial",
        )
        return value.__module__.startswith(OWN) and not machinery
    return isinstance(value, str | int | float | bool | tuple) or (
        dataclasses.is_dataclass(value) and type(value).__module__.startswith(OWN)
    )
