"""What compilers say of the candidates that count, by architecture: no GPU is needed for it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from benchmark import vocabulary
from benchmark.architectures import ARCHITECTURES, Architecture
from benchmark.models import Candidate, Method, StaticBuild, Submission, Task
from leaderboard.derived import Derived
from leaderboard.rows import GpuRow, MethodRow
from leaderboard.selectors.board import method_row

NEWEST_FIRST = ("submission__created_at", "submission_id", "round")


@dataclass(frozen=True, slots=True)
class Build:
    """A source on an architecture; sizes in bytes, registers per thread, spills in words."""

    state: str
    reason: str
    registers: int | None
    spills: int | None
    shared_bytes: int | None
    shared_limit: int


@dataclass(frozen=True, slots=True)
class BuildCell:
    """A method's candidates on an architecture, by state, of all that were tried there."""

    built: int
    failed: int
    untraced: int
    spilling: int

    @property
    def traced(self) -> int:
        return self.built + self.failed

    @property
    def step(self) -> int:
        """0 to 8: the step on the colour ramp."""
        return round(8 * self.built / self.traced) if self.traced else 0


@dataclass(frozen=True, slots=True)
class BuildRow:
    """`candidates`: the method's last ones, one a task; `cells` follow the architectures."""

    method: MethodRow
    candidates: int
    cells: tuple[BuildCell, ...]


@dataclass(frozen=True, slots=True)
class Unportable:
    """A candidate that builds for some architectures and not for others."""

    method: MethodRow
    task: str
    built: tuple[str, ...]
    failed: tuple[tuple[str, tuple[str, ...]], ...]  # (reason, architectures)


@dataclass(frozen=True, slots=True)
class Builds:
    architectures: tuple[Architecture, ...]
    rows: tuple[BuildRow, ...]
    unportable: tuple[Unportable, ...]
    tried: int
    triton: tuple[str, ...]


_KEPT: Derived[Builds | None] = Derived(1)


def kept_builds(gpus: tuple[GpuRow, ...]) -> Builds | None:
    """`builds`, as long as the kept `gpus` are the same: recording a build makes others of them."""
    made_of = [gpus] if gpus else [object()]  # every empty tuple is the same one
    return _KEPT.get("builds", made_of, builds)


def builds() -> Builds | None:
    """None where nothing was compiled yet. Four queries at most."""
    if not StaticBuild.objects.exists():
        return None
    found, triton = _builds()
    last = tuple(_last_candidates())
    used = {architecture for by_architecture in found.values() for architecture in by_architecture}
    shown = tuple(one for one in ARCHITECTURES if one.slug in used)
    methods = {m.pk: method_row(m) for m in Method.objects.filter(pk__in={m for m, _, _ in last})}
    own: dict[int, list[tuple[str, Mapping[str, Build]]]] = {id: [] for id in methods}
    for method, task, source in last:
        own[method].append((task, found.get(source, {})))
    return Builds(
        architectures=shown,
        rows=tuple(
            _row(methods[id], mine, shown)
            for id, mine in own.items()
            if any(by_architecture for _, by_architecture in mine)
        ),
        unportable=tuple(
            row for id, mine in own.items() for row in _unportable(methods[id], mine, shown)
        ),
        tried=sum(bool(found.get(source)) for _, _, source in last),
        triton=triton,
    )


def _builds() -> tuple[dict[str, dict[str, Build]], tuple[str, ...]]:
    """Source -> architecture -> its newest build; and the Triton versions behind them."""
    fields = ("state", "reason", "registers", "spills", "shared_bytes", "shared_limit")
    rows = StaticBuild.objects.newest().filter(
        source__candidates__submission__in=Submission.objects.listed()
    )
    found: dict[str, dict[str, Build]] = {}
    triton = set()
    for source, architecture, version, *facts in (
        rows.order_by()
        .distinct()
        .values_list("source_id", "architecture", "triton_version", *fields)
    ):
        found.setdefault(source, {})[architecture] = Build(*facts)
        triton.add(version)
    return found, tuple(sorted(triton))


def _last_candidates() -> Iterable[tuple[int, str, str]]:
    """(method, task, source): of the newest listed submission the last round, as boards choose."""
    place = Window(
        RowNumber(),
        partition_by=["submission__method_id", "task_id"],
        order_by=[F(name).desc() for name in NEWEST_FIRST],
    )
    return (
        Candidate.objects.filter(
            submission__in=Submission.objects.listed(), task__in=Task.objects.current()
        )
        .annotate(newness=place)
        .filter(newness=1)
        .order_by("submission__method__name", "task__slug")
        .values_list("submission__method_id", "task__slug", "source_id")
    )


def _row(
    method: MethodRow,
    mine: Sequence[tuple[str, Mapping[str, Build]]],
    shown: Sequence[Architecture],
) -> BuildRow:
    return BuildRow(
        method,
        len(mine),
        tuple(_cell([b[one.slug] for _, b in mine if one.slug in b]) for one in shown),
    )


def _cell(tried: Sequence[Build]) -> BuildCell:
    states = Counter(build.state for build in tried)
    return BuildCell(
        states[vocabulary.BUILT],
        states[vocabulary.BUILD_FAILED],
        states[vocabulary.UNTRACED],
        sum(bool(build.spills) for build in tried if build.state == vocabulary.BUILT),
    )


def _unportable(
    method: MethodRow,
    mine: Iterable[tuple[str, Mapping[str, Build]]],
    shown: Sequence[Architecture],
) -> Iterable[Unportable]:
    for task, on in mine:
        ordered = [(one.slug, on[one.slug]) for one in shown if one.slug in on]
        built = tuple(slug for slug, build in ordered if build.state == vocabulary.BUILT)
        failed: dict[str, tuple[str, ...]] = {}
        for slug, build in ordered:
            if build.state == vocabulary.BUILD_FAILED:
                failed[build.reason] = (*failed.get(build.reason, ()), slug)
        if built and failed:
            yield Unportable(method, task, built, tuple(failed.items()))
