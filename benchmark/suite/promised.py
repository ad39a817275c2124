"""What the published contract promises a candidate's author, and the cases that go beyond it.

Published prompts say nothing about memory layouts, and published tests and timings hand most tasks
contiguous float32 alone. A kernel written for that is right; so it is judged on that. What our
cases ask beyond it is still tried, and reported without deciding anything.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from benchmark.suite.manifest import Published
from benchmark.suite.spec import Case

# Integers aren't among these: where a task takes them, its description says so.
FLOATING = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def goes_beyond(fact: Published, case: Case) -> bool:
    """Whether a case asks for a memory layout or a floating dtype that the publication doesn't."""
    return _other_layout(fact, case) or _other_dtype(fact, case)


def split(fact: Published, cases: Iterable[Case]) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """The cases that decide, and the small ones that go beyond the publication.

    For each of the latter a twin decides in its place: the same sizes, spread and options, in a
    layout and dtype that were promised, so that nothing else goes unasked.
    """
    cases = tuple(cases)
    beyond = tuple(case for case in cases if case.kind == "small" and goes_beyond(fact, case))
    return tuple(_promised(fact, case, cases) for case in cases), beyond


def note(beyond: Iterable[Case]) -> tuple[str, ...]:
    """The difference from the published contract that these cases make, in a sentence."""
    cases = tuple(beyond)
    words = dict.fromkeys(
        [case.layout for case in cases if case.layout != "contiguous"]
        + [case.dtype for case in cases if case.dtype not in ("float32", "complex64")]
    )
    if not words:
        return ()
    return (
        f"beyond the published contract, which knows no such inputs ({', '.join(words)}): they are "
        "tried and reported, and don't decide the verdict",
    )


def _other_layout(fact: Published, case: Case) -> bool:
    return case.layout != "contiguous" and not fact.any_layout


def _other_dtype(fact: Published, case: Case) -> bool:
    by_signature = "dtype" in case.options  # a conversion was promised, so two dtypes were
    return case.dtype in FLOATING and case.dtype not in fact.dtypes and not by_signature


def _promised(fact: Published, case: Case, cases: tuple[Case, ...]) -> Case:
    """The case itself, or its twin within the publication."""
    if not goes_beyond(fact, case):
        return case
    changes: dict[str, Any] = {"name": f"{case.name}-plain"}
    if _other_layout(fact, case):
        changes["layout"] = "contiguous"
    if _other_dtype(fact, case):
        changes["dtype"] = next(dtype for dtype in ("float32", *FLOATING) if dtype in fact.dtypes)
        if case.kind == "timed":
            changes["sizes"] = _another_size(case, cases)
    return dataclasses.replace(case, **changes)


def _another_size(case: Case, cases: tuple[Case, ...]) -> dict[str, int]:
    """The sizes of a timed case, half as much where another one has the same: a wider dtype alone
    would time one thing twice.
    """
    sizes = dict(case.sizes)
    others = [dict(other.sizes) for other in cases if other.kind == "timed" and other is not case]
    first = next(iter(sizes))
    return sizes | {first: sizes[first] // 2} if sizes in others else sizes
