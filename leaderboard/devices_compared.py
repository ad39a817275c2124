"""Pure: what becomes of the same candidate on several devices.

Compared is only what was judged twice: the run that counts for a method on a task on one device,
with the one on another, where both are of the same candidate. A speedup is compared where both runs
passed and were timed; a device that only judges correctness stands in no speedup.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, median
from typing import NamedTuple

from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.rows import GpuRow, Result
from leaderboard.statistics.arrays import Array, numpy
from leaderboard.statistics.correlation import Agreement, agreement

TAIL = 40  # one part in 40 beyond each end: 95 % between; whole, as 2**n is exact
# Bins of the largest over the smallest speedup: quarter powers of two, wide enough to count in.
BIN = 0.25
KEPT_SHARES = 512  # of a method on the devices of a page: 10 KB each


class Place(NamedTuple):
    """One candidate of a method for a task: its submission and round tell it from the others."""

    method: int
    task: int
    submission: int
    round: int


@dataclass(frozen=True, slots=True)
class Column:
    """A device's results that count. `solved`: 1 or 0; `speed`: NaN unless it passed and was timed
    on a device that times.
    """

    gpu: GpuRow
    places: Sequence[Place]
    results: Sequence[Result]
    solved: Array
    speed: Array


@dataclass(frozen=True, slots=True)
class Grid:
    """Candidates x devices. `solved` and `speed` as in a column, -1 and NaN where the candidate was
    not judged; `at`: where its result stands in the device's column.
    """

    places: Sequence[Place]
    columns: Sequence[Column]
    solved: Array
    speed: Array
    at: Array

    @property
    def gpus(self) -> list[GpuRow]:
        return [column.gpu for column in self.columns]

    def only(self, kept: Array) -> "Grid":
        """Those for which `kept` holds."""
        places = [self.places[row] for row in kept.nonzero()[0].tolist()]
        return Grid(places, self.columns, self.solved[kept], self.speed[kept], self.at[kept])

    def judged_on_several(self) -> "Grid":
        return self.only((self.solved >= 0).sum(axis=1) > 1)

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
    places = [Place(r.method, r.task, r.submission, r.round) for r in judged]
    return Column(gpu, places, judged, np.array(solved, dtype=np.int8), np.array(speeds))


def grid(columns: Sequence[Column]) -> Grid:
    """Results held together by candidate."""
    np = numpy()
    rows: dict[Place, int] = {}
    taken = [[rows.setdefault(place, len(rows)) for place in one.places] for one in columns]
    size = (len(rows), len(columns))
    solved, speed = np.full(size, -1, dtype=np.int8), np.full(size, np.nan)
    at = np.full(size, -1)
    for number, (one, own) in enumerate(zip(columns, taken, strict=True)):
        own = np.array(own, dtype=int)
        solved[own, number], speed[own, number] = one.solved, one.speed
        at[own, number] = np.arange(len(own))
    return Grid(list(rows), columns, solved, speed, at)


def mixed(found: Grid) -> int:
    """Tasks of methods for which not every device judged the same candidate."""
    kinds = Counter((place.method, place.task) for place in found.places)
    return sum(count > 1 for count in kinds.values())


def disagreements(found: Grid) -> tuple[Disagreement, ...]:
    differ = found.only((found.solved == 1).any(axis=1) & (found.solved == 0).any(axis=1))
    return tuple(
        Disagreement(
            place.method,
            place.task,
            tuple(differ.result(row, at) for at, word in enumerate(solved) if word == 1),
            tuple(differ.result(row, at) for at, word in enumerate(solved) if word == 0),
        )
        for row, (place, solved) in enumerate(
            zip(differ.places, differ.solved.tolist(), strict=True)
        )
    )


def ratios(found: Grid) -> tuple[Ratio, ...]:
    """Largest first: candidates timed on two GPUs or more."""
    np = numpy()
    several = found.only((~np.isnan(found.speed)).sum(axis=1) > 1)
    if not several.places:
        return ()
    best, worst = np.nanargmax(several.speed, axis=1), np.nanargmin(several.speed, axis=1)
    rows = np.arange(len(best))
    values = several.speed[rows, best] / several.speed[rows, worst]
    timed = (~np.isnan(several.speed)).sum(axis=1)
    methods, tasks, *_ = np.array(several.places).T
    order = np.lexsort((tasks, methods, -values))
    return tuple(
        Ratio(
            several.places[row].method,
            several.places[row].task,
            float(values[row]),
            int(timed[row]),
            several.result(row, best.item(row)),
            several.result(row, worst.item(row)),
        )
        for row in order.tolist()
    )


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
    limit, below, term, outside = 2**n // TAIL, 0, 1, 0
    while outside + term <= limit:  # the probability of at most `below` values, times 2**n
        outside += term
        term = term * (n - below) // (below + 1)
        below += 1
    if not below:
        return None
    return Interval(median(ordered), ordered[below - 1], ordered[n - below])


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
    methods = numpy().array([place.method for place in found.places], dtype=int)
    own = {method: relative(found.only(methods == method)) for method in set(methods.tolist())}
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
    placed = ranking.rank(entries, range(len(common)))
    return Relative(len(common), gpus[best], {int(p.key): p.speedup for p in placed if p.speedup})


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
    tasks = numpy().array([place.task for place in found.places], dtype=int)
    solved = [found.solved[judged, column] == 1 for column in (left, right)]
    return Pair(
        first,
        second,
        both=int((solved[0] & solved[1]).sum()),
        only_left=int((solved[0] & ~solved[1]).sum()),
        only_right=int((~solved[0] & solved[1]).sum()),
        neither=int((~solved[0] & ~solved[1]).sum()),
        kernels=_kernels(found.speed[:, [left, right]], tasks)
        if first.can_time and second.can_time
        else None,
        methods=_methods(left_places, right_places),
    )


def _kernels(speeds: Array, tasks: Array) -> Agreement:
    """Over candidates timed on both. Those for one task share its baseline, so intervals count
    tasks, not candidates, as independent: never too narrow for that reason."""
    timed = ~numpy().isnan(speeds).any(axis=1)
    left, right = speeds[timed].T
    return agreement(left, right, independent=len(set(tasks[timed].tolist())))


def _methods(left: Mapping[int, int], right: Mapping[int, int]) -> Agreement | None:
    ranked = sorted(left.keys() & right.keys())
    if not ranked:
        return None
    return agreement([left[m] for m in ranked], [right[m] for m in ranked])
