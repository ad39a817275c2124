"""Which task a name, a path or a generation prompt is about."""

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from runner.intake.model import UNKNOWN, KnownTasks, Refused, shown

_NEAR = 3  # near misses in a message
_LONGEST = 200  # characters of a name that are compared: the comparison is quadratic
_PREFIX = "fused_"  # TritonBench-T calls fused_relu_sqrt relu_sqrt
_ROUND = re.compile(r"round[_-]?(\d{1,9})", re.IGNORECASE)
# "predictions_round_1.jsonl", "relu.round2.py": at the end of a file's name, behind a separator.
_ROUND_AT_END = re.compile(r"(.*)[_.-]round[_-]?(\d{1,9})", re.IGNORECASE | re.DOTALL)
_DESCRIPTION = "Functional Description:"
_WRAPPER = "Wrapper Entry Information:"
# A dotted name with its bracket right behind: "linalg.svd(A, ...)", but not "input (Tensor): the
# input".
_SIGNATURE = re.compile(r"\s*(?:`+\s*)?(?:(?:async\s+)?def\s+)?([A-Za-z_][\w.]*)\(")


@dataclass(frozen=True)
class Named:
    """A task, and, where it was named in another way than by its slug, a note that says so."""

    task: str
    notes: tuple[str, ...] = ()


def named(name: str, known: KnownTasks) -> Named | None:
    """The task of a name: its slug, else an alias, a qualified, a prefix-less or an otherwise
    written form of it.
    """
    for spelling in (name, name.rpartition(".")[2]):
        for slug in (spelling, known.aliases.get(spelling, ""), f"{_PREFIX}{spelling}"):
            if slug in known.names:
                return _noted(name, slug)
    return _loosely(name, known)


def asked(name: str, known: KnownTasks) -> Named:
    """As `named`; an unknown name raises Refused with its near misses."""
    found = named(name, known)
    if found:
        return found
    near = near_misses(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else "see the list of tasks"
    raise Refused(f"no task is called {shown(name)!r}", hint, UNKNOWN)


def near_misses(name: str, known: KnownTasks) -> list[str]:
    """The slugs that a mistyped name comes near, best first."""
    spellings = {**known.aliases, **{slug: slug for slug in known.names}}
    close = difflib.get_close_matches(name[:_LONGEST], spellings, n=_NEAR)
    return list(dict.fromkeys(spellings[match] for match in close))


def of_prompt(prompt: str, known: KnownTasks) -> Named | None:
    """The task that a generation prompt asks for; Refused if it asks for an unknown one; None if it
    names none.
    """
    signature = _SIGNATURE.match(prompt.partition(_WRAPPER)[2])
    if signature:
        return asked(signature[1], known)
    description = _plain(prompt.partition(_DESCRIPTION)[2].partition(_WRAPPER)[0])
    matching = [
        slug
        for slug, text in known.descriptions.items()
        if description and _plain(text) == description
    ]
    return Named(matching[0], ("found by its description",)) if len(matching) == 1 else None


def of_path(path: str, known: KnownTasks) -> Named | None:
    """The task that a file is named after, else the nearest folder around it that is named like a
    task.
    """
    *folders, file = PurePosixPath(path.replace("\\", "/")).parts or ("",)
    found = named(stem(file), known) or named(_without_round(stem(file)), known)
    if found:
        return found
    for folder in reversed(folders):
        slug = named(folder, known)
        if slug:
            return Named(slug.task, (*slug.notes, f"named by its folder {shown(folder)!r}"))
    return None


def of_functions(functions: Iterable[str], known: KnownTasks) -> Named | None:
    """The one task that a source defines a top-level function for; None if there are none or
    several.
    """
    found = {task.task: name for name in functions if (task := named(name, known))}
    if len(found) != 1:
        return None
    ((slug, name),) = found.items()
    return Named(slug, (f"named by its function {shown(name)!r}",))


def stem(file: str) -> str:
    """The last part of a path without a .py at its end: "Math/abs.py" -> "abs"."""
    base = file.replace("\\", "/").rpartition("/")[2]
    return base[:-3] if base.lower().endswith(".py") else base


def round_of_path(path: str) -> int | None:
    """The round that the file's own name, or the innermost folder around it, tells."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    for part in reversed(parts):
        stem_ = _stem_of_any(part)
        match = _ROUND.fullmatch(stem_) or _ROUND_AT_END.fullmatch(stem_)
        if match:
            return int(match[match.lastindex or 1])
    return None


def _stem_of_any(file: str) -> str:
    return file.rpartition(".")[0] or file


def _without_round(name: str) -> str:
    """A file's stem without a round at its end: "relu_round_1" -> "relu"."""
    match = _ROUND_AT_END.fullmatch(name)
    return match[1] if match else name


def _noted(name: str, slug: str) -> Named:
    return Named(slug) if name == slug else Named(slug, (f"{shown(name)!r} is {slug} here",))


def _loosely(name: str, known: KnownTasks) -> Named | None:
    """A name written in another case or with hyphens, if that leaves one task."""
    wanted = _folded(name)
    matching = [slug for slug in known.names if _folded(slug) in (wanted, f"{_PREFIX}{wanted}")]
    return _noted(name, matching[0]) if len(matching) == 1 else None


def _folded(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".")
