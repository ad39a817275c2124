"""The only place that ranks: tasks solved, then geometric-mean speedup, with rank intervals.

The interval comes from a paired bootstrap over tasks: each draw takes the same tasks, with
replacement, for every method, and ranks them anew. Standard library only, as the web process has
no numpy; instead the sums of all methods are carried in one integer, a 64-bit lane for each with
the sum of log2 speedups in 32 bits, tasks timed and tasks solved in 16 each, so that adding a drawn
task's integer adds it to every method at once.
"""

import math
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

from leaderboard.figures import Interval

DRAWS = 1000
SEED = 176  # fixed, so that a page shows the same interval on each visit
TAIL = 0.025
LANE_BYTES = 8
TIMED, SOLVED = 1 << 32, 1 << 48  # one task, in a lane
MOST_TASKS = (1 << 16) - 1
LOG_OFFSET = 64  # keeps them positive; a speedup beyond 2**-64 or 2**64 counts as that
MOST_LOGS = 1 << 32  # what their sum stays below, and so outweighs every mean
FEW = 6  # timed tasks below which resampling them says too little about others
LEAST_SPREAD = 1.0  # of log2 speedups over tasks, where too few were timed to tell: a doubling
# Student's 97.5 % quantile by degrees of freedom; of those that aren't here the next lower holds.
STUDENT = {0: 1.96, 1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 8: 2.306}
STUDENT |= {10: 2.228, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.0, 120: 1.98}
NEIGHBOURS = 2  # tasks of a handful: with 1000 draws of 176, less than half the additions
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
    """One resampling, by entry. `means`: of log2 speedups in the lanes' fixed point, 0 where none
    was timed, which so comes after those that solved as many. `keys`: what is ranked, most first.
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
    scale = MOST_LOGS // (2 * LOG_OFFSET * max(1, len(tasks))) - 1
    lanes = [_lanes(entries, task, scale) for task in tasks]
    whole = _unpack(sum(lanes), len(entries))
    sample = _bootstrap(lanes, len(entries), draws, seed)
    ranks = _rank_intervals(sample, len(entries))
    columns = list(zip(whole.means, *[draw.means for draw in sample], strict=True))
    logs = [_logs(entry, tasks) for entry in entries]
    doubt = _doubt(logs)
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
            timed=len(logs[i]),
            speedup=_speedup(scale, _own_doubt(doubt, len(logs[i])), *columns[i]),
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


def _lanes(entries: Sequence[Entry], task: Hashable, scale: int) -> int:
    """What a task adds to every entry, in one integer."""
    words = b"".join(_lane(e, task, scale).to_bytes(LANE_BYTES, "little") for e in entries)
    return int.from_bytes(words, "little")


def _lane(entry: Entry, task: Hashable, scale: int) -> int:
    if task not in entry.solved:
        return 0
    speedup = entry.solved[task]
    if speedup is None:
        return SOLVED
    log = min(max(math.log2(speedup), -LOG_OFFSET), LOG_OFFSET)
    return SOLVED + TIMED + max(1, round((log + LOG_OFFSET) * scale))


def _unpack(total: int, count: int) -> Draw:
    lanes = memoryview(total.to_bytes(count * LANE_BYTES, "little"))
    halves, quarters = lanes.cast("I"), lanes.cast("H")
    logs, timed, solved = halves[::2].tolist(), quarters[2::4].tolist(), quarters[3::4].tolist()
    means = [log / count if count else 0.0 for log, count in zip(logs, timed, strict=True)]
    keys = [MOST_LOGS * count + mean for count, mean in zip(solved, means, strict=True)]
    return Draw(means, keys)


def _bootstrap(lanes: Sequence[int], count: int, draws: int, seed: int) -> list[Draw]:
    if not lanes:
        return []
    shared = _resamplings(len(lanes), draws, seed)
    handfuls = [sum(map(lanes.__getitem__, tasks)) for tasks in shared.handfuls]
    return [_unpack(sum(map(handfuls.__getitem__, draw)), count) for draw in shared.draws]


@dataclass(frozen=True, slots=True)
class Resamplings:
    """Draws of tasks. What a draw takes of a few neighbours is a handful, and most handfuls are in
    many draws: each is added up once, and a draw is a sum of handfuls.
    """

    handfuls: tuple[tuple[int, ...], ...]  # positions of tasks
    draws: tuple[tuple[int, ...], ...]  # positions of handfuls


@lru_cache(maxsize=32)  # a selection's size has always the same draws; a handful of sizes are asked
def _resamplings(size: int, draws: int, seed: int) -> Resamplings:
    generator = random.Random(seed)  # noqa: S311  resampling, no secret
    handfuls: dict[tuple[int, ...], int] = {}
    drawn: list[tuple[int, ...]] = []
    for _ in range(draws):
        tasks = sorted(generator.choices(range(size), k=size))
        taken = [tuple(group) for _, group in groupby(tasks, lambda task: task // NEIGHBOURS)]
        drawn.append(tuple(handfuls.setdefault(few, len(handfuls)) for few in taken))
    return Resamplings(tuple(handfuls), tuple(drawn))


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


def _logs(entry: Entry, tasks: Sequence[Hashable]) -> list[float]:
    """log2 of the speedups that an entry was timed with."""
    speeds = [entry.solved.get(task) for task in tasks]
    return [math.log2(speed) for speed in speeds if speed is not None]


def _doubt(logs: Sequence[Sequence[float]]) -> float:
    """Half the 95 % interval of one log2 speedup as the mean of a method: Student's, with the
    spread over tasks pooled over all methods, as one with a task or two has none of its own.
    """
    freedom = sum(len(own) - 1 for own in logs if own)
    squares = math.fsum(_squares(own) for own in logs if own)
    spread = math.sqrt(squares / freedom) if freedom else 0.0
    quantile = STUDENT[max(known for known in STUDENT if known <= freedom)]
    return quantile * max(spread, LEAST_SPREAD)


def _squares(own: Sequence[float]) -> float:
    mean = math.fsum(own) / len(own)
    return math.fsum((log - mean) ** 2 for log in own)


def _own_doubt(doubt: float, timed: int) -> float:
    return doubt / math.sqrt(timed) if 0 < timed < FEW else 0.0


def _speedup(scale: int, doubt: float, mean: float, *drawn: float) -> Interval | None:
    """The geometric mean with its bootstrap interval over tasks, or with `doubt`, in log2, where
    that is wider.
    """
    if not mean:
        return None
    column = sorted(filter(None, drawn)) or [mean]
    away = doubt * scale
    low, high = min(_low(column), mean - away), max(_high(column), mean + away)
    return Interval(*(2 ** (value / scale - LOG_OFFSET) for value in (mean, low, high)))
