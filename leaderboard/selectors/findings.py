"""The findings of a choice: its results as counts, shares and roofline, and published figures."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from uuid import UUID

from benchmark import vocabulary
from benchmark.models import Gpu, Measurement, Run
from leaderboard.filters import Choice
from leaderboard.findings import attribution, published, roofline, shares, taxonomy
from leaderboard.findings.attribution import Absent, Attribution, Tally
from leaderboard.findings.published import Published
from leaderboard.findings.roofline import CaseTimes, Kernel, Roof, Summary
from leaderboard.findings.shares import Speeds
from leaderboard.findings.taxonomy import Ended, Endings
from leaderboard.models import Publication
from leaderboard.rows import MethodRow, Result, TaskRow
from leaderboard.selectors.board import BoardData

PAPER = "kernelbench-x"  # the publication whose questions the page asks
KEPT = 8
BATCH = 5000  # runs a query asks for by name; SQLite takes 32,766 parameters
BANDWIDTH = "environment__board__copy_bytes_per_second"


@dataclass(frozen=True, slots=True)
class Roofline:
    """`bandwidth`: the median of what was used, in bytes/s; `measured` of `kernels` come from a
    copy on the board itself, the rest from its data sheet.
    """

    kernels: tuple[Kernel, ...]
    best: tuple[Kernel, ...]
    overall: Summary | None
    by_category: tuple[Summary, ...]
    by_method: tuple[Summary, ...]
    bandwidth: float | None
    measured: int
    peak_bandwidth: float | None
    peak_source: str
    above: int


@dataclass(frozen=True, slots=True)
class Findings:
    """All of a choice's answers. `missing` are (method, task) pairs without a candidate."""

    methods: tuple[MethodRow, ...]
    judged: int
    held: int
    missing: int
    correct: Attribution | Absent
    called: Attribution | Absent
    pooled: Speeds
    speeds: tuple[Speeds, ...]
    endings: tuple[Endings, ...]
    all_endings: Endings
    words: tuple[str, ...]
    roofline: Roofline

    @property
    def commonest(self) -> tuple[str, int] | None:
        """The failure that ends most candidates."""
        return next(iter(self.all_endings.failures), None)


_kept: OrderedDict[Choice, tuple[BoardData, Findings]] = OrderedDict()


def findings(data: BoardData) -> Findings:
    """Kept as long as the board's data are the same object, which its generation decides."""
    found = _kept.get(data.choice)
    if found is None or found[0] is not data:
        found = (data, _findings(data))
        _kept[data.choice] = found
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return found[1]


def publications() -> tuple[Published, ...]:
    """Those that come with the site, and those imported; an import replaces what has its slug."""
    imported = {
        slug: published.parse(document)
        for slug, document in Publication.objects.values_list("slug", "document")
    }
    by_slug = {found.slug: found for found in shipped()} | imported
    return tuple(by_slug[slug] for slug in sorted(by_slug))


def paper() -> Published | None:
    """The paper's figures, as imported last or as they come with the site."""
    return next((found for found in publications() if found.slug == PAPER), None)


@lru_cache(maxsize=1)
def shipped() -> tuple[Published, ...]:
    return tuple(published.read(path) for path in sorted(published.FOLDER.glob("*.json")))


@dataclass(frozen=True, slots=True)
class Judged:
    """A result that counts, with its method and task."""

    method: MethodRow
    name: str
    task: TaskRow
    result: Result


def _findings(data: BoardData) -> Findings:
    judged = tuple(_judged(data))
    methods = {one.method.slug: one.method for one in judged}
    ids = {method.id for method in methods.values()}
    present = sum(result.method in ids for result in data.results.values())
    ended = [Ended(j.task.category_label, j.task.id, _word(j.result)) for j in judged]
    categories = [c.label for c in vocabulary.CATEGORIES]
    by_category = (
        taxonomy.endings(label, [one for one in ended if one.category == label])
        for label in categories
    )
    return Findings(
        methods=tuple(methods[slug] for slug in sorted(methods)),
        judged=len(judged),
        held=sum(not result.is_judged for result in data.results.values()),
        missing=len(methods) * len(data.tasks) - present,
        correct=attribution.attribute(_tallies(judged, "correct")),
        called=attribution.attribute(_tallies(judged, "called")),
        pooled=shares.speeds("all methods", _speedups(judged)),
        speeds=tuple(_speeds(judged)),
        endings=tuple(row for row in by_category if row.judged),
        all_endings=taxonomy.endings("all categories", ended),
        words=taxonomy.words_of([taxonomy.endings("", ended)]),
        roofline=_roofline(data, judged),
    )


def _judged(data: BoardData) -> Iterator[Judged]:
    methods = {method.id: method for method in data.methods}
    tasks = {task.id: task for task in data.tasks}
    names = [method.name for method in data.methods]
    for (method, task), result in data.results.items():
        if result.is_judged:
            row = methods[method]
            name = row.name if names.count(row.name) == 1 else f"{row.name} ({row.slug})"
            yield Judged(row, name, tasks[task], result)


def _tallies(judged: Iterable[Judged], outcome: str) -> tuple[Tally, ...]:
    """By category and method, in a fixed order: fits are kept by these."""
    cells: dict[tuple[str, str], list[int]] = {}
    for one in judged:
        cell = cells.setdefault((one.task.category_label, one.name), [0, 0])
        won = one.result.is_solved if outcome == "correct" else one.result.reached("call")
        cell[0] += won
        cell[1] += 1
    return tuple(Tally(*key, *cells[key]) for key in sorted(cells))


def _word(result: Result) -> str:
    return taxonomy.CORRECT if result.is_solved else result.word


def _speedups(judged: Iterable[Judged]) -> list[float]:
    return [
        one.result.speedup.value for one in judged if one.result.is_solved and one.result.speedup
    ]


def _speeds(judged: Sequence[Judged]) -> Iterator[Speeds]:
    by_name: dict[str, list[Judged]] = {}
    for one in judged:
        by_name.setdefault(one.name, []).append(one)
    for name in sorted(by_name):
        found = shares.speeds(name, _speedups(by_name[name]))
        if found.timed:
            yield found


def _roofline(data: BoardData, judged: Iterable[Judged]) -> Roofline:
    facts = Gpu.objects.filter(pk=data.choice.gpu.id).first()
    peak = facts.peak_bandwidth if facts else None
    solved = {j.result.run: j for j in judged if j.result.is_solved and j.result.speedup}
    copied = _bandwidths(list(solved))
    peaks = dict(facts.peak_flops) if facts else {}
    kernels, used = [], []
    for run, cases in _case_times(list(solved)).items():
        bandwidth = copied.get(run) or peak
        if not bandwidth:
            continue
        one = solved[run]
        of = (one.name, one.task.slug, one.task.category_label, run)
        found = roofline.kernel(of, cases, Roof(bandwidth, peaks))
        if found:
            kernels.append(found)
            used.append(bandwidth)
    return Roofline(
        kernels=tuple(sorted(kernels, key=lambda kernel: (kernel.method, kernel.task))),
        best=roofline.best_by_task(kernels),
        overall=roofline.summary("all kernels", kernels),
        by_category=tuple(_summaries(kernels, "category")),
        by_method=tuple(_summaries(kernels, "method")),
        bandwidth=median(used) if used else None,
        measured=sum(kernel.run in copied for kernel in kernels),
        peak_bandwidth=peak,
        peak_source=facts.peak_source if facts else "",
        above=sum(kernel.share > 1 for kernel in kernels),
    )


def _summaries(kernels: Sequence[Kernel], by: str) -> Iterator[Summary]:
    for name in sorted({getattr(kernel, by) for kernel in kernels}):
        found = roofline.summary(name, [k for k in kernels if getattr(k, by) == name])
        if found:
            yield found


def _case_times(runs: Sequence[UUID]) -> dict[UUID, list[CaseTimes]]:
    """Timed cases of these runs. A query for every 5000 runs."""
    fields = ("run__uuid", "dtype", "bytes", "flops", "candidate_ms", "reference_ms")
    times: dict[UUID, list[CaseTimes]] = {}
    for some in _batches(runs):
        timed = Measurement.objects.filter(run__uuid__in=some, candidate_ms__isnull=False)
        for run, dtype, moved, flops, candidate, reference in timed.order_by().values_list(*fields):
            case = CaseTimes(dtype, moved or 0.0, flops or 0.0, candidate, reference)
            times.setdefault(run, []).append(case)
    return times


def _bandwidths(runs: Sequence[UUID]) -> dict[UUID, float]:
    """Bytes per second that a copy reached on the run's board, where the run recorded it."""
    found: dict[UUID, float] = {}
    for some in _batches(runs):
        rows = Run.objects.filter(uuid__in=some).order_by().values_list("uuid", BANDWIDTH)
        found |= {
            uuid: float(rate) for uuid, rate in rows if isinstance(rate, int | float) and rate
        }
    return found


def _batches(runs: Sequence[UUID]) -> Iterator[tuple[UUID, ...]]:
    for start in range(0, len(runs), BATCH):
        yield tuple(runs[start : start + BATCH])
