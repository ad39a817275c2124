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

    def speedups(self, gpus: Iterable[GpuRow]) -> dict[int, float]:
        """By device, where it passed and was timed."""
        return {
            gpu.id: result.speedup.value
            for gpu in gpus
            if gpu.can_time and (result := self.on.get(gpu.id))
            if result.is_solved and result.speedup
        }


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


def disagreements(found: Iterable[Candidate], gpus: Sequence[GpuRow]) -> tuple[Disagreement, ...]:
    rows = (
        Disagreement(
            candidate.method,
            candidate.task,
            _with_outcome(candidate, gpus, solved=True),
            _with_outcome(candidate, gpus, solved=False),
        )
        for candidate in found
    )
    return tuple(row for row in rows if row.passed and row.failed)


def pairs(
    found: Sequence[Candidate],
    gpus: Sequence[GpuRow],
    places: Mapping[int, Mapping[int, int]],
) -> tuple[Pair, ...]:
    """Every two devices. `places`: device -> method -> place on its board, by what ranks there."""
    return tuple(_pair(found, left, right, places) for left, right in combinations(gpus, 2))


def ratios(found: Iterable[Candidate], gpus: Sequence[GpuRow]) -> tuple[Ratio, ...]:
    """Largest first: candidates timed on two GPUs or more."""
    by_id = {gpu.id: gpu for gpu in gpus}
    rows = []
    for candidate in found:
        speedups = candidate.speedups(gpus)
        if len(speedups) > 1:
            best = max(speedups, key=speedups.__getitem__)
            worst = min(speedups, key=speedups.__getitem__)
            rows.append(
                Ratio(
                    candidate.method,
                    candidate.task,
                    speedups[best] / speedups[worst],
                    len(speedups),
                    (by_id[best], candidate.on[best]),
                    (by_id[worst], candidate.on[worst]),
                )
            )
    return tuple(sorted(rows, key=lambda row: (-row.ratio, row.method, row.task)))


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


def relative(own: Sequence[Candidate], gpus: Sequence[GpuRow]) -> Relative | None:
    """A method's GPUs against its best one, over candidates timed on all of them.

    The same candidates on each: a mean over what each GPU happens to solve would compare tasks,
    not GPUs. None where the method is timed on fewer than two GPUs or no candidate on all.
    """
    timed = [candidate.speedups(gpus) for candidate in own]
    used = {gpu for speedups in timed for gpu in speedups}
    common = [speedups for speedups in timed if speedups.keys() == used]
    if len(used) < 2 or not common:
        return None
    means = {gpu: fmean(math.log(speedups[gpu]) for speedups in common) for gpu in used}
    best = max(sorted(used), key=means.__getitem__)
    entries = [
        ranking.Entry(str(gpu), {i: s[gpu] / s[best] for i, s in enumerate(common)}) for gpu in used
    ]
    placed = ranking.rank(entries, range(len(common)))
    return Relative(len(common), best, {int(p.key): p.speedup for p in placed if p.speedup})


def _with_outcome(
    candidate: Candidate, gpus: Iterable[GpuRow], solved: bool
) -> tuple[tuple[GpuRow, Result], ...]:
    return tuple(
        (gpu, result)
        for gpu in gpus
        if (result := candidate.on.get(gpu.id)) and result.is_solved is solved
    )


def _pair(
    found: Iterable[Candidate],
    left: GpuRow,
    right: GpuRow,
    places: Mapping[int, Mapping[int, int]],
) -> Pair:
    judged = [c for c in found if left.id in c.on and right.id in c.on]
    outcomes = [(c.on[left.id].is_solved, c.on[right.id].is_solved) for c in judged]
    return Pair(
        left,
        right,
        both=outcomes.count((True, True)),
        only_left=outcomes.count((True, False)),
        only_right=outcomes.count((False, True)),
        neither=outcomes.count((False, False)),
        kernels=_kernels(judged, left, right),
        methods=_methods(places.get(left.id, {}), places.get(right.id, {})),
    )


def _kernels(judged: Iterable[Candidate], left: GpuRow, right: GpuRow) -> Agreement | None:
    """Over candidates timed on both. Those for one task share its baseline, so intervals count
    tasks, not candidates, as independent: never too narrow for that reason."""
    if not (left.can_time and right.can_time):
        return None
    timed = [(c.task, s) for c in judged if len(s := c.speedups([left, right])) == 2]
    return agreement(
        [speedups[left.id] for _, speedups in timed],
        [speedups[right.id] for _, speedups in timed],
        independent=len({task for task, _ in timed}),
    )


def _methods(left: Mapping[int, int], right: Mapping[int, int]) -> Agreement | None:
    ranked = sorted(left.keys() & right.keys())
    if not ranked:
        return None
    return agreement([left[m] for m in ranked], [right[m] for m in ranked])
