"""A source's static portability: what compilers say of it, architecture by architecture."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmark import vocabulary
from benchmark.architectures import ARCHITECTURES, Architecture
from benchmark.models import StaticBuild

WORDS = {
    vocabulary.BUILT: ("builds", "correct"),
    vocabulary.BUILD_FAILED: ("fails", "bad"),
    vocabulary.UNTRACED: ("unknown", "soft"),
    "": ("not compiled", "soft"),
}


@dataclass(frozen=True, slots=True)
class StaticRow:
    """An architecture's answer. `word` and `tone` for a page; figures are None where nothing was
    compiled; sizes in bytes, registers per thread, spills in 32-bit words per thread.
    """

    architecture: Architecture
    word: str
    tone: str
    reason: str
    kernels: tuple[dict[str, Any], ...]
    kernel_count: int
    registers: int | None
    spills: int | None
    shared_bytes: int | None
    shared_limit: int

    @property
    def shared_percent(self) -> float | None:
        """Of what a block may have there."""
        return None if self.shared_bytes is None else 100 * self.shared_bytes / self.shared_limit

    @property
    def is_tuned(self) -> bool:
        """Was a configuration chosen among several?"""
        return any((kernel.get("configurations") or 1) > 1 for kernel in self.kernels)


@dataclass(frozen=True, slots=True)
class Portability:
    """All architectures in their order; `rows` is empty where nothing was compiled yet."""

    rows: tuple[StaticRow, ...]
    built: int
    traced: int
    case: str
    triton_version: str
    compiled_at: datetime | None

    @property
    def common_reason(self) -> str:
        """The one reason that every architecture gives; empty when they differ."""
        reasons = {row.reason for row in self.rows}
        return reasons.pop() if len(reasons) == 1 else ""

    @property
    def is_tuned(self) -> bool:
        return any(row.is_tuned for row in self.rows)


def portability(source_sha256: str) -> Portability:
    """Whoever may see the source may see this: the caller has checked. One query."""
    oldest_first = StaticBuild.objects.filter(source=source_sha256).order_by("created_at", "id")
    found = {build.architecture: build for build in oldest_first}  # a newer Triton's supersedes
    rows = tuple(_row(one, found.get(one.slug)) for one in ARCHITECTURES) if found else ()
    last = max(found.values(), key=lambda build: build.created_at, default=None)
    states = [build.state for build in found.values()]
    return Portability(
        rows=rows,
        built=states.count(vocabulary.BUILT),
        traced=len(states) - states.count(vocabulary.UNTRACED),
        case=last.traced_case if last else "",
        triton_version=last.triton_version if last else "",
        compiled_at=last.created_at if last else None,
    )


def _row(one: Architecture, build: StaticBuild | None) -> StaticRow:
    word, tone = WORDS[build.state if build else ""]
    return StaticRow(
        architecture=one,
        word=word,
        tone=tone,
        reason=build.reason if build else "",
        kernels=tuple(build.kernels) if build else (),
        kernel_count=build.kernel_count if build else 0,
        registers=build.registers if build else None,
        spills=build.spills if build else None,
        shared_bytes=build.shared_bytes if build else None,
        shared_limit=build.shared_limit if build else one.shared_limit,
    )
