"""The only place that ranks: tasks solved, then geometric-mean speedup, with rank intervals.

The interval comes from a paired bootstrap over tasks: each draw takes the same tasks, with
replacement, for every method, and ranks them anew. Standard library only, as the web process has
no numpy; instead the sums of all methods are carried in one integer, a 64-bit lane for each with
tasks solved, tasks timed and the sum of log2 speedups side by side, so that adding a drawn task's
integer adds it to every method at once.
"""

import math
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from leaderboard.figures import Interval

DRAWS = 1000
SEED = 176  # fixed, so that a page shows the same interval on each visit
TAIL = 0.025
LANE_BYTES = 8
COUNT_BITS, LOG_BITS = 12, 40  # of a lane: solved, timed, sum of logs
MOST_TASKS = (1 << COUNT_BITS) - 1
LOG_MASK = (1 << LOG_BITS) - 1
TIMED_MASK = MOST_TASKS << LOG_BITS
LOG_SCALE = 1 << 20  # of log2 speedups in fixed point: finer than the three digits shown
LOG_OFFSET = 64  # keeps them positive; a speedup beyond 2**-64 or 2**64 counts as that
A_TASK_MORE = float(4 * LOG_OFFSET * LOG_SCALE)  # outweighs every mean
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Entry:
    """What a method solved: speedup by task, None where it solved but was not timed."""

    key: str
    solved: Mapping[Any, float | None]


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry's place. Entries of one `group` can't be told apart from the group's first."""

    key: str
    rank: int
    rank_low: int
    rank_high: int
    group: int
    solved: int
    timed: int
    speedup: Interval | None


@dataclass(frozen=True, slots=True)
class Draw:
    """One resampling, by entry. `means`: of log2 speedups as lanes hold them, 0 where none was
    timed, which so comes after those that solved as many. `keys`: what is ranked, most first.
    """

    means: Sequence[float]
    keys: Sequence[float]


def rank(
    entries: Sequence[Entry], tasks: Sequence[Hashable], draws: int = DRAWS, seed: int = SEED
) -> list[Placed]:
    """Entries best first. `tasks` is the whole selection, so unsolved tasks weigh in the draws."""
    if not entries:
        return []
    if len(tasks) > MOST_TASKS:
        raise ValueError(f"{len(tasks)} tasks to rank by; at most {MOST_TASKS} fit into a lane")
    lanes = [_lanes(entries, task) for task in tasks]
    whole = _unpack(sum(lanes), len(entries))
    sample = _bootstrap(lanes, len(entries), draws, seed)
    ranks = _rank_intervals(sample, len(entries))
    columns = list(zip(whole.means, *[draw.means for draw in sample], strict=True))
    positions = competition_ranks(whole.keys)
    order = sorted(range(len(entries)), key=lambda i: (positions[i], entries[i].key))
    groups = _tie_groups([ranks[i] for i in order])
    return [
        Placed(
            key=entries[i].key,
            rank=positions[i],
            rank_low=min(ranks[i][0], positions[i]),
            rank_high=max(ranks[i][1], positions[i]),
            group=group,
            solved=sum(1 for task in tasks if task in entries[i].solved),
            timed=sum(1 for task in tasks if entries[i].solved.get(task) is not None),
            speedup=_speedup(*columns[i]),
        )
        for i, group in zip(order, groups, strict=True)
    ]


def competition_ranks(keys: Sequence[float]) -> list[int]:
    """1, 2, 2, 4, the largest key first: equals share the better rank."""
    worst_first = zip(sorted(keys), range(len(keys), 0, -1), strict=True)
    best = dict(worst_first)  # of equal keys the last one stays: the better rank
    return list(map(best.__getitem__, keys))


def geometric_mean(values: Sequence[float]) -> float | None:
    """Of positive ratios; None for none."""
    if not values:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _lanes(entries: Sequence[Entry], task: Hashable) -> int:
    """What a task adds to every entry, in one integer."""
    words = b"".join(_lane(entry, task).to_bytes(LANE_BYTES, "little") for entry in entries)
    return int.from_bytes(words, "little")


def _lane(entry: Entry, task: Hashable) -> int:
    if task not in entry.solved:
        return 0
    solved = 1 << COUNT_BITS + LOG_BITS
    speedup = entry.solved[task]
    if speedup is None:
        return solved
    log = min(max(math.log2(speedup), -LOG_OFFSET), LOG_OFFSET)
    return solved | 1 << LOG_BITS | max(1, round((log + LOG_OFFSET) * LOG_SCALE))


def _unpack(total: int, count: int) -> Draw:
    words = memoryview(total.to_bytes(count * LANE_BYTES, "little")).cast("Q").tolist()
    means = [
        (word & LOG_MASK) / (word >> LOG_BITS & MOST_TASKS) if word & TIMED_MASK else 0.0
        for word in words
    ]
    keys = [
        (word >> COUNT_BITS + LOG_BITS) * A_TASK_MORE + mean
        for word, mean in zip(words, means, strict=True)
    ]
    return Draw(means, keys)


def _bootstrap(lanes: Sequence[int], count: int, draws: int, seed: int) -> list[Draw]:
    if not lanes:
        return []
    return [
        _unpack(sum(map(lanes.__getitem__, drawn)), count)
        for drawn in _resamplings(len(lanes), draws, seed)
    ]


@lru_cache(maxsize=32)  # a selection's size has always the same draws; a handful of sizes are asked
def _resamplings(size: int, draws: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """Positions of the drawn tasks, for each draw."""
    generator = random.Random(seed)  # noqa: S311  resampling, no secret
    return tuple(tuple(generator.choices(range(size), k=size)) for _ in range(draws))


def _rank_intervals(sample: Sequence[Draw], count: int) -> list[tuple[int, int]]:
    if not sample:
        return [(1, count)] * count
    columns = map(sorted, zip(*[competition_ranks(draw.keys) for draw in sample], strict=True))
    return [(_low(column), _high(column)) for column in columns]


def _low(column: Sequence[Number]) -> Number:
    return column[math.floor(TAIL * (len(column) - 1))]


def _high(column: Sequence[Number]) -> Number:
    return column[math.ceil((1 - TAIL) * (len(column) - 1))]


def _tie_groups(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """Groups from the top: an entry joins while its interval overlaps that of the group's first."""
    groups: list[int] = []
    first, group = (0, 0), 0
    for low, high in intervals:
        if low > first[1]:
            first, group = (low, high), group + 1
        groups.append(group)
    return groups


def _speedup(mean: float, *drawn: float) -> Interval | None:
    """The geometric mean with its bootstrap interval over tasks."""
    if not mean:
        return None
    column = sorted(filter(None, drawn)) or [mean]
    low, high = min(_low(column), mean), max(_high(column), mean)
    return Interval(*(2 ** (value / LOG_SCALE - LOG_OFFSET) for value in (mean, low, high)))
