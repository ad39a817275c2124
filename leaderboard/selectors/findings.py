"""The findings of a choice: its results as counts, shares and roofline, and published figures."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

from django.db.models import QuerySet

from benchmark import vocabulary
from benchmark.models import CountingRun, Gpu
from leaderboard.derived import Derived, Latest
from leaderboard.findings import attribution, published, roofline, shares, taxonomy
from leaderboard.findings.attribution import Absent, Attribution, Tally
from leaderboard.findings.published import Published
from leaderboard.findings.roofline import CaseTimes, Kernel, Roof, Summary
from leaderboard.findings.shares import Speeds
from leaderboard.findings.taxonomy import Ended, Endings
from leaderboard.models import Publication
from leaderboard.rows import MethodRow, Result, TaskRow
from leaderboard.selectors.board import BoardData, in_round, listed_counting

PAPER = "kernelbench-x"  # the publication whose questions the page asks
KEPT = 8
NAMED = 500  # new runs that are asked for by name; with more, all are read
BANDWIDTH = "run__environment__board__copy_bytes_per_second"


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


Reached = tuple[Kernel, float, bool]  # kernel, bandwidth, whether measured
Held = dict[str, tuple[tuple[str, str, str], Reached | None]]  # by run: names, None: untimed

_KEPT: Derived[Findings] = Derived(KEPT)
_REACHED: Derived[Held] = Derived(KEPT)
_ROOFS: Latest[Roof] = Latest()


def findings(data: BoardData) -> Findings:
    """Kept as long as the board's data are the same object, and the GPU's peaks the same."""
    gpu = Gpu.objects.filter(pk=data.choice.gpu.id).first()
    roof = _ROOFS.of(data.choice.gpu.id, _roof(gpu))
    return _KEPT.get(data.choice.query, [data, roof], lambda: _findings(data, roof))


def forget() -> None:
    """For tests: what is worked out again must be the same."""
    for kept in (_KEPT, _REACHED, _ROOFS):
        kept.forget()


def _roof(gpu: Gpu | None) -> Roof:
    """By the data sheet."""
    if gpu is None:
        return Roof(None)
    return Roof(gpu.peak_bandwidth, dict(gpu.peak_flops), gpu.peak_source)


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


Place = tuple[int, int]  # method, task


@dataclass(frozen=True, slots=True)
class Judged:
    """A result that counts, with its method and task."""

    method: MethodRow
    name: str
    task: TaskRow
    result: Result


def _findings(data: BoardData, roof: Roof) -> Findings:
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
        roofline=_roofline(data, judged, roof),
    )


def _judged(data: BoardData) -> Iterator[Judged]:
    methods = {method.id: method for method in data.methods}
    tasks = {task.id: task for task in data.tasks}
    alike = Counter(method.name for method in data.methods)
    names = {
        method.id: method.name if alike[method.name] == 1 else f"{method.name} ({method.slug})"
        for method in data.methods
    }
    for (method, task), result in data.results.items():
        if result.is_judged:
            yield Judged(methods[method], names[method], tasks[task], result)


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


def _roofline(data: BoardData, judged: Iterable[Judged], roof: Roof) -> Roofline:
    solved = {
        (one.method.id, one.task.id): one
        for one in judged
        if one.result.is_solved and one.result.speedup
    }
    reached = _reached(data, solved, roof)
    kernels = [kernel for kernel, _, _ in reached]
    return Roofline(
        kernels=tuple(sorted(kernels, key=lambda kernel: (kernel.method, kernel.task))),
        best=roofline.best_by_task(kernels),
        overall=roofline.summary("all kernels", kernels),
        by_category=roofline.summaries(kernels, "category"),
        by_method=roofline.summaries(kernels, "method"),
        bandwidth=median(bandwidth for _, bandwidth, _ in reached) if reached else None,
        measured=sum(is_measured for _, _, is_measured in reached),
        peak_bandwidth=roof.bandwidth,
        peak_source=roof.source,
        above=sum(kernel.share > 1 for kernel in kernels),
    )


def _reached(
    data: BoardData, solved: Mapping[Place, Judged], roof: Roof
) -> list[tuple[Kernel, float, bool]]:
    """A run is a fact: what was worked out of its cases stays, so that a new result costs its own
    cases and not everybody's.
    """
    held = _REACHED.get(data.choice.query, [roof], dict)
    by_key = {one.result.key: one for one in solved.values()}
    new = {
        (one.method.id, one.task.id): one
        for key, one in by_key.items()
        if key not in held or held[key][0] != _names(one)
    }
    found = _work_out(data, new, roof)
    held |= {one.result.key: (_names(one), found.get(one.result.key)) for one in new.values()}
    for key in held.keys() - by_key.keys():
        del held[key]
    return [reached for key in by_key if (reached := held[key][1])]


def _work_out(data: BoardData, new: Mapping[Place, Judged], roof: Roof) -> dict[str, Reached]:
    """By run. Two queries, none where nothing is new."""
    if not new:
        return {}
    passed = _passed(data)
    if len(new) <= NAMED:
        passed = passed.filter(uuid__in=[one.result.run for one in new.values()])
    times, copied = _case_times(passed), _bandwidths(passed)
    used = {place: copied.get(place) or roof.bandwidth for place in times if place in new}
    bounded = {place: bandwidth for place, bandwidth in used.items() if bandwidth}
    kernels = roofline.kernels(
        [_of(new[place]) for place in bounded],
        [times[place] for place in bounded],
        [Roof(bandwidth, roof.peaks) for bandwidth in bounded.values()],
    )
    places = {new[place].result.run: place for place in bounded}
    found = ((kernel, places[kernel.run]) for kernel in kernels)
    return {
        new[place].result.key: (kernel, bounded[place], place in copied) for kernel, place in found
    }


def _names(one: Judged) -> tuple[str, str, str]:
    """What a kernel's point is labelled by, which may change."""
    return one.name, one.task.slug, one.task.category_label


def _of(one: Judged) -> roofline.Of:
    return (*_names(one), one.result.run)


def _passed(data: BoardData) -> QuerySet[CountingRun]:
    """The runs that count for the choice and passed; all of the task's, whatever it narrows."""
    choice = data.choice
    counting = listed_counting().filter(
        gpu=choice.gpu.id, origin=choice.lane, verdict=vocabulary.PASSED
    )
    if choice.category:
        counting = counting.filter(task__category=choice.category)
    return in_round(counting, choice.round)


def _case_times(passed: QuerySet[CountingRun]) -> dict[Place, list[CaseTimes]]:
    """Timed cases of the runs. One query."""
    fields = ("dtype", "bytes", "flops", "candidate_ms", "reference_ms")
    names = [f"run__measurements__{name}" for name in fields]
    timed = passed.filter(run__measurements__candidate_ms__isnull=False)
    times: dict[Place, list[CaseTimes]] = {}
    rows = timed.values_list("method_id", "task_id", *names)
    for method, task, dtype, moved, flops, candidate, reference in rows.iterator(chunk_size=5000):
        case = CaseTimes(dtype, moved or 0.0, flops or 0.0, candidate, reference)
        times.setdefault((method, task), []).append(case)
    return times


def _bandwidths(passed: QuerySet[CountingRun]) -> dict[Place, float]:
    """Bytes per second that a copy reached on the run's board, where the run recorded it."""
    rows = passed.filter(**{f"{BANDWIDTH}__gt": 0})
    return {
        (method, task): float(rate)
        for method, task, rate in rows.values_list("method_id", "task_id", BANDWIDTH)
        if isinstance(rate, int | float)
    }
