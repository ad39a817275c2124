"""Pure: what becomes of the same candidate on several devices.

Compared is only what was judged twice: the run that counts for a method on a task on one device,
with the one on another, where both are of the same candidate, or of the same source sent twice. A
speedup is compared where both runs
passed and were timed; a device that only judges correctness stands in no speedup.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean, median

from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.lazily import Rows
from leaderboard.rows import GpuRow, Result
from leaderboard.statistics.arrays import Array, numpy
from leaderboard.statistics.correlation import Agreement, agreement

TAIL = 40  # one part in 40 beyond each end: 95 % between; whole, as 2**n is exact
# Bins of the largest over the smallest speedup: quarter powers of two, wide enough to count in.
BIN = 0.25
KEPT_SHARES = 512  # of a method on the devices of a page: 10 KB each


# What tells a candidate from all others, in the order of the columns of `ids`.
CANDIDATE = ("method", "task", "submission", "round")
METHOD, TASK, SUBMISSION, ROUND = range(len(CANDIDATE))
Sent = tuple[int, int, int]  # a candidate's submission, task and round


@dataclass(frozen=True, slots=True)
class Column:
    """A device's results that count. `ids`: results x `CANDIDATE`, whole numbers. `solved`: 1 or 0;
    `speed`: NaN unless it passed and was timed on a device that times.
    """

    gpu: GpuRow
    ids: Array
    results: Sequence[Result]
    solved: Array
    speed: Array


@dataclass(frozen=True, slots=True)
class Grid:
    """Candidates x devices. `ids`, `solved` and `speed` as in a column, the latter -1 and NaN where
    the candidate was not judged; `at`: where its result stands in the device's column, else -1.
    """

    ids: Array
    columns: Sequence[Column]
    solved: Array
    speed: Array
    at: Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def gpus(self) -> list[GpuRow]:
        return [column.gpu for column in self.columns]

    def only(self, kept: Array) -> "Grid":
        """Those for which `kept` holds, or whose row numbers it has, in their order."""
        return Grid(
            self.ids[kept], self.columns, self.solved[kept], self.speed[kept], self.at[kept]
        )

    def judged_on_several(self) -> "Grid":
        return self.only((self.solved >= 0).sum(axis=1) > 1)

    def candidate(self, row: int) -> tuple[int, int]:
        """Its method and task."""
        return self.ids.item(row, METHOD), self.ids.item(row, TASK)

    def result(self, row: int, column: int) -> tuple[GpuRow, Result]:
        found = self.columns[column]
        return found.gpu, found.results[self.at.item(row, column)]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A candidate that passes on some devices and fails on others, with the runs that say so."""

    method: int
    task: int
    passed: tuple[tuple[GpuRow, Result], ...]
    failed: tuple[tuple[GpuRow, Result], ...]

    @property
    def among_gpus(self) -> bool:
        """Whether two GPUs disagree, not only a GPU with a device that judges correctness."""
        return any(gpu.can_time for gpu, _ in self.passed) and any(
            gpu.can_time for gpu, _ in self.failed
        )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two devices: how many candidates both judged, with what outcome, and how alike the orders.

    `kernels` compares the speedups of candidates timed on both; `methods` the methods' places on
    the two boards. Each None where one of the two devices can't time, or is without a ranking.
    """

    left: GpuRow
    right: GpuRow
    both: int
    only_left: int
    only_right: int
    neither: int
    kernels: Agreement | None
    methods: Agreement | None

    @property
    def judged(self) -> int:
        return self.both + self.only_left + self.only_right + self.neither

    @property
    def differ(self) -> int:
        return self.only_left + self.only_right


@dataclass(frozen=True, slots=True)
class Ratio:
    """A candidate's largest over its smallest speedup, with the runs."""

    method: int
    task: int
    ratio: float
    gpus: int
    best: tuple[GpuRow, Result]
    worst: tuple[GpuRow, Result]


class Disagreements(Rows[Disagreement]):
    """`candidates`: their methods and tasks; `among_gpus`: what each row says of itself."""

    def __init__(self, differ: Grid) -> None:
        super().__init__(len(differ), lambda row: _disagreement(differ, row))
        self.candidates: list[tuple[int, int]] = list(
            map(tuple, differ.ids[:, [METHOD, TASK]].tolist())
        )
        timing = numpy().array([gpu.can_time for gpu in differ.gpus], dtype=bool)
        passed, failed = ((differ.solved[:, timing] == word).any(axis=1) for word in (1, 0))
        self.among_gpus: list[bool] = (passed & failed).tolist()


class Ratios(Rows[Ratio]):
    """Largest first; `values` has the ratios alone."""

    def __init__(self, found: Grid) -> None:
        """Of candidates that are timed on two GPUs or more."""
        np = numpy()
        best, worst = _ends(found.speed)
        rows = np.arange(len(found))
        values = found.speed[rows, best] / found.speed[rows, worst]
        order = np.lexsort((found.ids[:, TASK], found.ids[:, METHOD], -values))
        timed = (~np.isnan(found.speed)).sum(axis=1)
        self.values: list[float] = values[order].tolist()

        def ratio(place: int) -> Ratio:
            row = order.item(place)
            ends = (found.result(row, end.item(row)) for end in (best, worst))
            return Ratio(*found.candidate(row), self.values[place], timed.item(row), *ends)

        super().__init__(len(found), ratio)


@dataclass(frozen=True, slots=True)
class RatioSummary:
    """Of `n` candidates timed on two GPUs or more. `median` with its distribution-free interval."""

    n: int
    median: float
    median_interval: Interval | None
    mean: float
    maximum: float
    above_two: int


@dataclass(frozen=True, slots=True)
class Relative:
    """A method's speedup as a share of that on its own best GPU, over the same candidates.

    `n` candidates passed and were timed on every GPU of `shares`; the best one's share is 1.
    """

    n: int
    best: int
    shares: Mapping[int, Interval]


def column(gpu: GpuRow, results: Iterable[Result]) -> Column:
    np = numpy()
    judged = [result for result in results if result.is_judged]
    solved = [result.is_solved for result in judged]
    speeds = [
        result.speedup.value if passed and gpu.can_time and result.speedup else math.nan
        for result, passed in zip(judged, solved, strict=True)
    ]
    fields = dict(zip(Result._fields, zip(*judged, strict=True), strict=False))  # none of no result
    ids = np.array([fields.get(name, ()) for name in CANDIDATE], dtype=np.int64).T
    return Column(gpu, ids, judged, np.array(solved, dtype=np.int8), np.array(speeds))


def submissions_of(columns: Iterable[Column]) -> dict[int, int]:
    """Method by submission, of methods whose results come from more than one: what one GPU judged
    of a method may have been sent to another by itself.
    """
    np = numpy()
    ids = [column.ids[:, [METHOD, SUBMISSION]] for column in columns]
    pairs = np.unique(np.concatenate(ids), axis=0).tolist() if ids else []
    several = Counter(method for method, _ in pairs)
    return {submission: method for method, submission in pairs if several[method] > 1}


def held_together(column: Column, first: Mapping[Sent, int]) -> Column:
    """With each candidate that was sent before under its `first` submission."""
    if not first:
        return column
    ids = column.ids.copy()
    names = ids[:, [SUBMISSION, TASK, ROUND]].tolist()
    ids[:, SUBMISSION] = [first.get((one, task, at), one) for one, task, at in names]
    return replace(column, ids=ids)


def grid(columns: Sequence[Column]) -> Grid:
    """Results held together by candidate, in the order in which the columns name them."""
    np = numpy()
    numbers = _numbered([column.ids for column in columns])
    known = _known(numbers)
    size = (len(known), len(columns))
    at = np.full(size, -1)
    for place, own in enumerate(numbers):
        at[np.searchsorted(known, own), place] = np.arange(len(own))
    at = at[_order(at)]
    solved, speed = np.full(size, -1, dtype=np.int8), np.full(size, np.nan)
    ids = np.empty((len(known), len(CANDIDATE)), dtype=np.int64)
    for place, one in enumerate(columns):
        rows = (at[:, place] >= 0).nonzero()[0]
        own = at[rows, place]
        ids[rows] = one.ids[own]
        solved[rows, place], speed[rows, place] = one.solved[own], one.speed[own]
    return Grid(ids, columns, solved, speed, at)


def _numbered(ids: Sequence[Array]) -> list[Array]:
    """Of each column a number a row, the same where the ids are, so that one is sorted, not four:
    its digits are the ids, where 63 bits hold them.
    """
    np = numpy()
    if not ids:
        return []
    sizes = [1 + most for most in np.max([own.max(axis=0, initial=0) for own in ids], 0).tolist()]
    if math.prod(sizes) >= 1 << 63:
        together = np.unique(np.concatenate(ids), axis=0, return_inverse=True)[1].ravel()
        return list(np.split(together, np.cumsum([len(own) for own in ids])[:-1]))
    weights = [math.prod(sizes[place + 1 :]) for place in range(len(sizes))]
    return [own @ np.array(weights, dtype=np.int64) for own in ids]


def _known(numbers: Sequence[Array]) -> Array:
    """All different numbers in their order. Most columns have the same, so only what the first one
    hasn't is sorted beside it.
    """
    np = numpy()
    first = _different(numbers[0]) if numbers else np.array([], dtype=np.int64)
    more = [own[~_has(first, own)] for own in numbers[1:]]
    return _different(np.concatenate([first, *more])) if any(map(len, more)) else first


def _different(numbers: Array) -> Array:
    """In their order. Sorted: numpy's own `unique` hashes them and takes four times as long."""
    np = numpy()
    ordered = np.sort(numbers)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]


def _has(known: Array, numbers: Array) -> Array:
    """Whether each of `numbers` is among the `known` ones, which are in order."""
    if not len(known):
        return numpy().zeros(len(numbers), dtype=bool)
    return known[numpy().searchsorted(known, numbers).clip(max=len(known) - 1)] == numbers


def _order(at: Array) -> Array:
    """Rows by the first column that has them and their place in it."""
    np = numpy()
    if not at.size:
        return np.arange(len(at))
    first = (at >= 0).argmax(axis=1)
    return np.lexsort((at[np.arange(len(at)), first], first))


def mixed(found: Grid) -> int:
    """Tasks of methods for which not every device judged the same candidate."""
    np = numpy()
    if not len(found):
        return 0
    methods, tasks = found.ids[:, METHOD], found.ids[:, TASK]
    kinds = np.unique(methods * (1 + tasks.max()) + tasks, return_counts=True)[1]
    return int((kinds > 1).sum())


def disagreements(found: Grid) -> Disagreements:
    return Disagreements(
        found.only((found.solved == 1).any(axis=1) & (found.solved == 0).any(axis=1))
    )


def _disagreement(differ: Grid, row: int) -> Disagreement:
    solved = differ.solved[row].tolist()
    passed, failed = (
        tuple(differ.result(row, at) for at, own in enumerate(solved) if own == word)
        for word in (1, 0)
    )
    return Disagreement(*differ.candidate(row), passed, failed)


def ratios(found: Grid) -> Ratios:
    """Of candidates timed on two GPUs or more."""
    return Ratios(found.only((~numpy().isnan(found.speed)).sum(axis=1) > 1))


def _ends(speed: Array) -> tuple[Array, Array]:
    """Columns of each row's largest and smallest speed, the first of equals. Every row has one."""
    np = numpy()
    if not len(speed):
        return np.array([], dtype=int), np.array([], dtype=int)
    return np.nanargmax(speed, axis=1), np.nanargmin(speed, axis=1)


def ratio_summary(values: Sequence[float]) -> RatioSummary | None:
    if not values:
        return None
    return RatioSummary(
        n=len(values),
        median=median(values),
        median_interval=median_interval(values),
        mean=fmean(values),
        maximum=max(values),
        above_two=sum(value > 2 for value in values),
    )


def median_interval(values: Sequence[float]) -> Interval | None:
    """Between the order statistics that hold the median with 95 % at least; None below 6 values.

    Exact and free of the distribution: the count of values below the median is binomial(n, 1/2).
    """
    ordered, n = sorted(values), len(values)
    below = _outside(n)
    if not below:
        return None
    return Interval(median(ordered), ordered[below - 1], ordered[n - below])


def _outside(n: int) -> int:
    """The largest b for which fewer than b of n throws of a fair coin are heads by one chance in
    `TAIL` at most. Counted from the middle down, which is nearer than from 0: some root of n steps.
    """
    below = (n + 1) // 2
    term = math.comb(n, below)  # ways to throw `below` heads
    fewer = 1 << (n - 1) if n % 2 else (2**n - term) // 2  # ways to throw fewer
    limit = 2**n // TAIL
    while fewer > limit:
        term = term * below // (n - below + 1)
        below -= 1
        fewer -= term
    return below


def binned(values: Iterable[float]) -> tuple[tuple[float, float, int], ...]:
    """(from, to, count) over bins of a quarter power of two, from 1, empty ones between too."""
    counts = Counter(int(math.log2(value) / BIN) for value in values)
    if not counts:
        return ()
    return tuple(
        (2 ** (place * BIN), 2 ** ((place + 1) * BIN), counts[place])
        for place in range(max(counts) + 1)
    )


def relatives(found: Grid) -> dict[int, Relative]:
    """`relative` of each method that has one."""
    np = numpy()
    methods, counts = np.unique(found.ids[:, METHOD], return_counts=True)
    rows = np.split(np.argsort(found.ids[:, METHOD], kind="stable"), np.cumsum(counts)[:-1])
    own = {
        method: relative(found.only(mine))
        for method, mine in zip(methods.tolist(), rows, strict=False)  # no method: one empty part
    }
    return {method: shares for method, shares in own.items() if shares}


def relative(own: Grid) -> Relative | None:
    """A method's GPUs against its best one, over candidates timed on all of them.

    The same candidates on each: a mean over what each GPU happens to solve would compare tasks,
    not GPUs. None where the method is timed on fewer than two GPUs or no candidate on all.
    """
    np = numpy()
    timed = ~np.isnan(own.speed)
    used = timed.any(axis=0).nonzero()[0]
    common = own.speed[timed[:, used].all(axis=1)][:, used]
    if len(used) < 2 or not len(common):
        return None
    gpus = tuple(own.gpus[at].id for at in used.tolist())
    return _shares(gpus, common.tobytes())


@lru_cache(maxsize=KEPT_SHARES)
def _shares(gpus: tuple[int, ...], speeds: bytes) -> Relative:
    """Of candidates x GPUs, float64, row by row. Most methods are as they were when a result of
    one has come.
    """
    np = numpy()
    common = np.frombuffer(speeds).reshape(-1, len(gpus))
    means = np.log(common).mean(axis=0).tolist()
    best = max(range(len(gpus)), key=lambda at: (means[at], -gpus[at]))
    shares = (common / common[:, [best]]).T.tolist()
    entries = [
        ranking.Entry(str(gpu), dict(enumerate(share)))
        for gpu, share in zip(gpus, shares, strict=True)
    ]
    intervals = ranking.speedup_intervals(entries, range(len(common)))
    found = {gpu: own for gpu, own in zip(gpus, intervals, strict=True) if own}
    return Relative(len(common), gpus[best], found)


def pair(
    found: Grid,
    left: int,
    right: int,
    left_places: Mapping[int, int],
    right_places: Mapping[int, int],
) -> Pair:
    """Two columns; nothing of the others is in it. `..._places`: method -> its place on the
    device's board, by what ranks there.
    """
    first, second = found.gpus[left], found.gpus[right]
    judged = (found.solved[:, [left, right]] >= 0).all(axis=1)
    solved = [found.solved[judged, column] == 1 for column in (left, right)]
    return Pair(
        first,
        second,
        both=int((solved[0] & solved[1]).sum()),
        only_left=int((solved[0] & ~solved[1]).sum()),
        only_right=int((~solved[0] & solved[1]).sum()),
        neither=int((~solved[0] & ~solved[1]).sum()),
        kernels=_kernels(found.speed[:, [left, right]], found.ids[:, TASK])
        if first.can_time and second.can_time
        else None,
        methods=_methods(left_places, right_places),
    )


def _kernels(speeds: Array, tasks: Array) -> Agreement:
    """Over candidates timed on both. Those for one task share its baseline, so intervals count
    tasks, not candidates, as independent: never too narrow for that reason."""
    timed = ~numpy().isnan(speeds).any(axis=1)
    left, right = speeds[timed].T
    return agreement(left, right, independent=len(numpy().unique(tasks[timed])))


def _methods(left: Mapping[int, int], right: Mapping[int, int]) -> Agreement | None:
    ranked = sorted(left.keys() & right.keys())
    if not ranked:
        return None
    return agreement([left[m] for m in ranked], [right[m] for m in ranked])
