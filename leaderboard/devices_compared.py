"""Pure: what becomes of the same candidate on several devices.

Compared is only what was judged twice: the run that counts for a method on a task on one device,
with the one on another, where both are of the same candidate. A speedup is compared where both runs
passed and were timed; a device that only judges correctness stands in no speedup.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.rows import GpuRow, Result
from leaderboard.statistics.arrays import Array, numpy
from leaderboard.statistics.correlation import Agreement, agreement

TAIL = 40  # one part in 40 beyond each end: 95 % between; whole, as 2**n is exact
# Bins of the largest over the smallest speedup: quarter powers of two, wide enough to count in.
BIN = 0.25


@dataclass(frozen=True, slots=True)
class Judged:
    """The run that counts for a method on a task and a device, and what tells its candidate apart
    from the method's others for the task.
    """

    gpu: int
    candidate: Hashable
    result: Result


@dataclass(frozen=True, slots=True)
class Candidate:
    """One candidate of a method for a task, with its result on each device that judged it."""

    method: int
    task: int
    key: Hashable
    on: Mapping[int, Result]


@dataclass(frozen=True, slots=True)
class Grid:
    """Candidates x devices, as arrays to compare columns of. `solved`: 1, 0, or -1 where it was not
    judged; `speed`: NaN unless it passed and was timed on a device that times.
    """

    candidates: Sequence[Candidate]
    gpus: Sequence[GpuRow]
    solved: Array
    speed: Array

    def only(self, rows: Array) -> "Grid":
        """Those at these positions."""
        kept = [self.candidates[row] for row in rows.tolist()]
        return Grid(kept, self.gpus, self.solved[rows], self.speed[rows])


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


def candidates(judged: Iterable[Judged]) -> tuple[Candidate, ...]:
    """Results that count, held together by candidate."""
    found: dict[tuple[int, int, Hashable], dict[int, Result]] = {}
    for one in judged:
        if one.result.is_judged:
            place = (one.result.method, one.result.task, one.candidate)
            found.setdefault(place, {})[one.gpu] = one.result
    return tuple(Candidate(*place, on) for place, on in found.items())


def mixed(found: Sequence[Candidate]) -> int:
    """Tasks of methods for which not every device judged the same candidate."""
    kinds = Counter((candidate.method, candidate.task) for candidate in found)
    return sum(count > 1 for count in kinds.values())


def grid(found: Sequence[Candidate], gpus: Sequence[GpuRow]) -> Grid:
    np = numpy()
    columns = {gpu.id: (at, gpu.can_time) for at, gpu in enumerate(gpus)}
    size = (len(found), len(gpus))
    solved, speed = np.full(size, -1, dtype=np.int8), np.full(size, np.nan)
    for row, candidate in enumerate(found):
        for gpu, result in candidate.on.items():
            if gpu not in columns:
                continue
            column, can_time = columns[gpu]
            passed = result.is_solved
            solved[row, column] = passed
            if passed and can_time and result.speedup:
                speed[row, column] = result.speedup.value
    return Grid(found, gpus, solved, speed)


def disagreements(found: Grid) -> tuple[Disagreement, ...]:
    differ = (found.solved == 1).any(axis=1) & (found.solved == 0).any(axis=1)
    return tuple(
        Disagreement(
            candidate.method,
            candidate.task,
            _with_outcome(candidate, found.gpus, solved=True),
            _with_outcome(candidate, found.gpus, solved=False),
        )
        for candidate in found.only(differ.nonzero()[0]).candidates
    )


def pairs(found: Grid, places: Mapping[int, Mapping[int, int]]) -> tuple[Pair, ...]:
    """Every two devices. `places`: device -> method -> place on its board, by what ranks there."""
    tasks = numpy().array([candidate.task for candidate in found.candidates], dtype=int)
    columns = combinations(range(len(found.gpus)), 2)
    return tuple(_pair(found, left, right, tasks, places) for left, right in columns)


def ratios(found: Grid) -> tuple[Ratio, ...]:
    """Largest first: candidates timed on two GPUs or more."""
    np = numpy()
    timed = ~np.isnan(found.speed)
    several = found.only((timed.sum(axis=1) > 1).nonzero()[0])
    if not several.candidates:
        return ()
    best, worst = np.nanargmax(several.speed, axis=1), np.nanargmin(several.speed, axis=1)
    rows = (
        _ratio(candidate, several.gpus, speeds, ends)
        for candidate, speeds, *ends in zip(
            several.candidates, several.speed.tolist(), best.tolist(), worst.tolist(), strict=True
        )
    )
    return tuple(sorted(rows, key=lambda row: (-row.ratio, row.method, row.task)))


def _ratio(
    candidate: Candidate, gpus: Sequence[GpuRow], speeds: Sequence[float], ends: Sequence[int]
) -> Ratio:
    best, worst = ends
    return Ratio(
        candidate.method,
        candidate.task,
        speeds[best] / speeds[worst],
        sum(not math.isnan(speed) for speed in speeds),
        (gpus[best], candidate.on[gpus[best].id]),
        (gpus[worst], candidate.on[gpus[worst].id]),
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
    rows: dict[int, list[int]] = {}
    for row, candidate in enumerate(found.candidates):
        rows.setdefault(candidate.method, []).append(row)
    own = {method: relative(found.only(numpy().array(at))) for method, at in rows.items()}
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
    gpus = [own.gpus[column].id for column in used.tolist()]
    means = np.log(common).mean(axis=0).tolist()
    best = max(range(len(gpus)), key=lambda at: (means[at], -gpus[at]))
    shares = (common / common[:, [best]]).T.tolist()
    entries = [
        ranking.Entry(str(gpu), dict(enumerate(share)))
        for gpu, share in zip(gpus, shares, strict=True)
    ]
    placed = ranking.rank(entries, range(len(common)))
    return Relative(len(common), gpus[best], {int(p.key): p.speedup for p in placed if p.speedup})


def _with_outcome(
    candidate: Candidate, gpus: Iterable[GpuRow], solved: bool
) -> tuple[tuple[GpuRow, Result], ...]:
    return tuple(
        (gpu, result)
        for gpu in gpus
        if (result := candidate.on.get(gpu.id)) and result.is_solved is solved
    )


def _pair(
    found: Grid, left: int, right: int, tasks: Array, places: Mapping[int, Mapping[int, int]]
) -> Pair:
    """Of two columns. `tasks` of the rows."""
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
        kernels=_kernels(found.speed[:, [left, right]], tasks)
        if first.can_time and second.can_time
        else None,
        methods=_methods(places.get(first.id, {}), places.get(second.id, {})),
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
