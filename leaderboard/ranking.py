"""The only place that ranks: tasks solved, then geometric-mean speedup, with rank intervals.

The interval comes from a paired bootstrap over tasks: each draw takes the same tasks, with
replacement, for every method, and ranks them anew. Standard library only, as the web process has
no numpy; instead the sums of all methods are carried in one integer, a 64-bit lane for each, so
that adding a drawn task's integer adds it to every method at once.
"""

import math
import random
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

from leaderboard.figures import Interval

DRAWS = 1000
SEED = 176  # fixed, so that a page shows the same interval on each visit
TAIL = 0.025
LANE_BYTES = 8
LOG_SCALE = 1 << 24  # of log2 speedups in fixed point: finer than the three digits shown
Number = TypeVar("Number", int, float)
LOG_OFFSET = 64  # keeps them positive: a speedup lies between 2**-64 and 2**64


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
    """One resampling: by entry, tasks solved and the mean log2 speedup (None: none timed)."""

    solved: tuple[int, ...]
    logs: tuple[float | None, ...]

    def order(self) -> list[tuple[int, float]]:
        """Sort keys, best first when ascending; an entry without a speedup comes last."""
        return [
            (-solved, math.inf if log is None else -log)
            for solved, log in zip(self.solved, self.logs, strict=True)
        ]


def rank(
    entries: Sequence[Entry], tasks: Sequence[Hashable], draws: int = DRAWS, seed: int = SEED
) -> list[Placed]:
    """Entries best first. `tasks` is the whole selection, so unsolved tasks weigh in the draws."""
    if not entries:
        return []
    lanes = [_lanes(entries, task) for task in tasks]
    whole = _unpack(sum(lanes), len(entries))
    sample = _bootstrap(lanes, len(entries), draws, seed)
    ranks = _rank_intervals(sample, len(entries))
    positions = _competition_ranks(whole.order())
    order = sorted(range(len(entries)), key=lambda i: (positions[i], entries[i].key))
    groups = _tie_groups([ranks[i] for i in order])
    return [
        Placed(
            key=entries[i].key,
            rank=positions[i],
            rank_low=min(ranks[i][0], positions[i]),
            rank_high=max(ranks[i][1], positions[i]),
            group=group,
            solved=whole.solved[i],
            timed=sum(1 for task in tasks if entries[i].solved.get(task) is not None),
            speedup=_speedup(whole.logs[i], [draw.logs[i] for draw in sample]),
        )
        for i, group in zip(order, groups, strict=True)
    ]


def geometric_mean(values: Sequence[float]) -> float | None:
    """Of positive ratios; None for none."""
    if not values:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _lanes(entries: Sequence[Entry], task: Hashable) -> int:
    """What a task adds to every entry: lanes of (solved, timed, log2 speedup) in one integer."""
    words: list[int] = []
    for entry in entries:
        if task not in entry.solved:
            words += [0, 0, 0]
            continue
        speedup = entry.solved[task]
        if speedup is None:
            words += [1, 0, 0]
        else:
            words += [1, 1, round((math.log2(speedup) + LOG_OFFSET) * LOG_SCALE)]
    return int.from_bytes(b"".join(word.to_bytes(LANE_BYTES, "little") for word in words), "little")


def _unpack(total: int, count: int) -> Draw:
    words = memoryview(total.to_bytes(3 * count * LANE_BYTES, "little")).cast("Q").tolist()
    logs = [
        None if not timed else log / timed / LOG_SCALE - LOG_OFFSET
        for timed, log in zip(words[1::3], words[2::3], strict=True)
    ]
    return Draw(tuple(words[0::3]), tuple(logs))


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


def _competition_ranks(keys: Sequence[tuple[int, float]]) -> list[int]:
    """1, 2, 2, 4: equal keys share the better rank."""
    order = sorted(range(len(keys)), key=keys.__getitem__)
    ranks = [1] * len(keys)
    for position, (before, after) in enumerate(pairwise(order), start=2):
        ranks[after] = ranks[before] if keys[after] == keys[before] else position
    return ranks


def _rank_intervals(sample: Sequence[Draw], count: int) -> list[tuple[int, int]]:
    drawn = [_competition_ranks(draw.order()) for draw in sample]
    columns = [sorted(ranks[i] for ranks in drawn) for i in range(count)]
    return [(_low(column), _high(column)) if column else (1, count) for column in columns]


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


def _speedup(log: float | None, drawn: Sequence[float | None]) -> Interval | None:
    """The geometric mean with its bootstrap interval over tasks."""
    if log is None:
        return None
    column = sorted(value for value in drawn if value is not None) or [log]
    return Interval(2**log, min(2 ** _low(column), 2**log), max(2 ** _high(column), 2**log))
