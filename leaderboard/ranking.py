"""The only place that ranks: tasks solved, then geometric-mean speedup, with rank intervals.

The interval comes from a paired bootstrap over tasks: each draw takes the same tasks, with
replacement, for every method, and ranks them anew. All draws are made at once: how often each draw
takes each task, times what each method has on each task. Logarithms of speedups are whole numbers
there (fixed point, at most 32 bits in sum), so that sums are exact and equal methods tie.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from benchmark.student import quantile
from leaderboard.figures import Interval
from leaderboard.statistics.arrays import Array, numpy
from leaderboard.statistics.bootstrap import DRAWS, SEED, ends, resamplings

MOST_TASKS = (1 << 16) - 1
LOG_OFFSET = 64  # keeps them positive; a speedup beyond 2**-64 or 2**64 counts as that
MOST_LOGS = 1 << 32  # what their sum stays below, and so outweighs every mean
FEW = 6  # timed tasks below which resampling them says too little about others
LEAST_SPREAD = 1.0  # of log2 speedups over tasks, where too few were timed to tell: a doubling
Found = TypeVar("Found")


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
class Sums:
    """Draws x entries. `means`: of log2 speedups in fixed point, 0 where none was timed, which so
    comes after those that solved as many. `keys`: what is ranked, most first.
    """

    means: Array
    keys: Array


def rank(
    entries: Sequence[Entry], tasks: Sequence[Hashable], draws: int = DRAWS, seed: int = SEED
) -> list[Placed]:
    """Entries best first. `tasks` is the whole selection, so unsolved tasks weigh in the draws."""
    if not entries:
        return []
    table = _table(entries, tasks)
    whole, drawn = _whole_and_drawn(_sums, table, draws, seed)
    positions = competition_ranks(whole.keys)[0].tolist()
    ranks = _rank_intervals(drawn.keys) if tasks else [(1, len(entries))] * len(entries)
    timed = table.times_timed
    speedups = _speedups(whole.means[0], drawn.means, table.scale, _doubts(entries, tasks, timed))
    order = sorted(range(len(entries)), key=lambda i: (positions[i], entries[i].key))
    groups = _tie_groups([ranks[i] for i in order])
    solved = table.solved.sum(axis=0).astype(int).tolist()
    return [
        Placed(
            key=entries[i].key,
            rank=positions[i],
            rank_low=min(ranks[i][0], positions[i]),
            rank_high=max(ranks[i][1], positions[i]),
            group=group,
            solved=solved[i],
            timed=timed[i],
            speedup=speedups[i],
        )
        for i, group in zip(order, groups, strict=True)
    ]


def speedup_intervals(
    entries: Sequence[Entry], tasks: Sequence[Hashable], draws: int = DRAWS, seed: int = SEED
) -> list[Interval | None]:
    """Of each entry what `rank` says of it, in their order, where nobody asks who is ahead."""
    if not entries:
        return []
    table = _table(entries, tasks)
    whole, drawn = _whole_and_drawn(_means, table, draws, seed)
    return _speedups(whole[0], drawn, table.scale, _doubts(entries, tasks, table.times_timed))


def competition_ranks(keys: Array) -> Array:
    """Of each row: 1, 2, 2, 4, the largest key first: equals share the better rank."""
    np = numpy()
    order = np.argsort(-keys, axis=1)  # equals in any order: they share a rank
    ordered = np.take_along_axis(keys, order, axis=1)
    places = np.arange(1, keys.shape[1] + 1)
    is_worse = np.ones(keys.shape, dtype=bool)
    is_worse[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ranks = np.empty(keys.shape, dtype=np.int64)
    best = np.maximum.accumulate(np.where(is_worse, places, 0), axis=1)
    np.put_along_axis(ranks, order, best, axis=1)
    return ranks


def geometric_mean(values: Sequence[float]) -> float | None:
    """Of positive ratios; None for none."""
    if not values:
        return None
    return math.exp(math.fsum(map(math.log, values)) / len(values))


@dataclass(frozen=True, slots=True)
class Table:
    """Tasks x entries, as floats to multiply with: solved (0 or 1), timed (0 or 1), and the log2 of
    the speedup in fixed point of `scale` steps a doubling, 0 where there is none.
    """

    solved: Array
    timed: Array
    logs: Array
    scale: int

    @property
    def times_timed(self) -> list[int]:
        """Of each entry."""
        counts: list[int] = self.timed.sum(axis=0).astype(int).tolist()
        return counts


def _scale(tasks: Sequence[Hashable]) -> int:
    """Steps of fixed point a doubling; ValueError where there are more tasks than it can sum."""
    if len(tasks) > MOST_TASKS:
        raise ValueError(f"{len(tasks)} tasks to rank by; at most {MOST_TASKS} can be summed")
    return MOST_LOGS // (2 * LOG_OFFSET * max(1, len(tasks))) - 1


def _table(entries: Sequence[Entry], tasks: Sequence[Hashable]) -> Table:
    np, scale = numpy(), _scale(tasks)
    solved = np.zeros((len(tasks), len(entries)))
    speeds = np.full(solved.shape, np.nan)
    position = {task: at for at, task in enumerate(tasks)}
    for column, entry in enumerate(entries):
        rows = [position.get(task, -1) for task in entry.solved]
        at, own = np.array(rows, dtype=int), np.array([*entry.solved.values()], dtype=float)
        solved[at[at >= 0], column] = 1
        speeds[at[at >= 0], column] = own[at >= 0]  # None has become NaN
    timed = ~np.isnan(speeds)
    logs = np.clip(np.log2(speeds), -LOG_OFFSET, LOG_OFFSET)
    fixed = np.maximum(1, np.rint((logs + LOG_OFFSET) * scale))
    return Table(solved, timed.astype(float), np.where(timed, fixed, 0), scale)


def _whole_and_drawn(
    of: Callable[[Array, Table], Found], table: Table, draws: int, seed: int
) -> tuple[Found, Found]:
    """What `of` finds with each task once, and with draws of as many; no draws without tasks."""
    tasks = len(table.solved)
    whole = of(numpy().ones((1, tasks)), table)
    return whole, of(resamplings(tasks, draws, seed), table) if tasks else whole


def _sums(counts: Array, table: Table) -> Sums:
    """`counts`: draws x tasks, how often each is taken."""
    means = _means(counts, table)
    return Sums(means, MOST_LOGS * (counts @ table.solved) + means)


def _means(counts: Array, table: Table) -> Array:
    """The means of `Sums`."""
    np = numpy()
    timed, logs = counts @ table.timed, counts @ table.logs
    return np.divide(logs, timed, where=timed > 0, out=np.zeros_like(logs))


def _rank_intervals(keys: Array) -> list[tuple[int, int]]:
    """Draws x entries -> the best and the worst of each entry's middle 95 %."""
    low, high = ends(len(keys))
    ranks = numpy().partition(competition_ranks(keys), (low, high), axis=0)
    return list(zip(ranks[low].tolist(), ranks[high].tolist(), strict=True))


def _tie_groups(intervals: Sequence[tuple[int, int]]) -> list[int]:
    """Groups from the top: an entry joins while its interval overlaps that of the group's first."""
    groups: list[int] = []
    first, group = (0, 0), 0
    for low, high in intervals:
        if low > first[1]:
            first, group = (low, high), group + 1
        groups.append(group)
    return groups


def _doubts(
    entries: Sequence[Entry], tasks: Sequence[Hashable], timed: Sequence[int]
) -> list[float]:
    """What each entry's interval is at least, either side, in log2: of those with few tasks."""
    if not any(0 < count < FEW for count in timed):
        return [0.0] * len(entries)
    doubt = _doubt([_logs(entry, tasks) for entry in entries])
    return [doubt / math.sqrt(count) if 0 < count < FEW else 0.0 for count in timed]


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
    return quantile(freedom) * max(spread, LEAST_SPREAD)


def _squares(own: Sequence[float]) -> float:
    mean = math.fsum(own) / len(own)
    return math.fsum((log - mean) ** 2 for log in own)


def _speedups(
    means: Array, drawn: Array, scale: int, doubts: Sequence[float]
) -> list[Interval | None]:
    """Each entry's geometric mean with its bootstrap interval over tasks, or with its doubt where
    that is wider; None where nothing was timed. Draws without a timed task say nothing.
    """
    columns = numpy().sort(drawn, axis=0).T
    return [
        _interval(float(mean), column[column > 0], scale, doubt) if mean else None
        for mean, column, doubt in zip(means, columns, doubts, strict=True)
    ]


def _interval(mean: float, ordered: Array, scale: int, doubt: float) -> Interval:
    low = high = mean
    if len(ordered):
        first, last = ends(len(ordered))
        low, high = float(ordered[first]), float(ordered[last])
    away = doubt * scale
    low, high = min(low, mean - away), max(high, mean + away)
    return Interval(*(2 ** (value / scale - LOG_OFFSET) for value in (mean, low, high)))
