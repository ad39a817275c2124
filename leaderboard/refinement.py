"""Pure: what the rounds of an iterating method did, and why its mean speedup moved.

A method stands after a round where the last candidate that it offered for a task, in that round or
an earlier one, put it: a task without a new candidate keeps its result.

The change of a mean between two rounds is split exactly, after M. J. Melitz and S. Polanec,
"Dynamic Olley-Pakes productivity decomposition with entry and exit", RAND Journal of Economics 46
(2015). With B the tasks timed in both rounds, E those that enter (n1 of them timed after) and L
those that leave (n0 timed before), and m the mean over a set in the round before (0) or after (1):

    m1 - m0  =  m1(B) - m0(B)                               real: the same tasks, faster or slower
              + |E|/n1 (m1(E) - m1(B))                      composition: tasks newly solved
              - |L|/n0 (m0(L) - m0(B))                      composition: tasks no longer solved

On logarithms the terms multiply to the change of the geometric mean.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeVar

from benchmark import vocabulary
from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.rows import COUNTED, Result
from leaderboard.statistics.bootstrap import mean_interval

NOT_JUDGED = "not judged"  # no candidate yet, or one that counts for nothing
RESCUED, NEW, PERSISTENT, LOST, FAILING = "rescued", "new", "persistent", "lost", "failing"
FATES = {
    RESCUED: "failed before, correct after",
    NEW: "not judged before, correct after",
    PERSISTENT: "correct before and after",
    LOST: "correct before, not after",
    FAILING: "correct neither before nor after",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a mean's change. `real` is None where no task is timed both before and after:
    then all is composition. The counts are those of B, E and L above.
    """

    before: float
    after: float
    both: int
    entered: int
    left: int
    real: float | None
    entering: float
    leaving: float


@dataclass(frozen=True, slots=True)
class Split(Parts):
    """Of an arithmetic mean: `after - before == real + entering + leaving`."""

    @property
    def composition(self) -> float:
        return self.entering + self.leaving


@dataclass(frozen=True, slots=True)
class RatioSplit(Parts):
    """Of a geometric mean: `after / before == real * entering * leaving`."""

    ratios: tuple[float, ...]  # after / before of each task of B

    @property
    def real_interval(self) -> Interval | None:
        """By the bootstrap over tasks; made when asked for, as it takes a while."""
        if self.real is None:
            return None
        low, high = mean_interval(tuple(map(math.log, self.ratios)))
        return Interval(self.real, math.exp(low), math.exp(high))

    @property
    def change(self) -> float:
        return self.after / self.before

    @property
    def composition(self) -> float:
        return self.entering * self.leaving


@dataclass(frozen=True, slots=True)
class RoundSummary:
    """`offered`, `offered_correct`: the candidates judged in this round alone. `correct`, `judged`
    and the means: where the method stands after it, over `tasks`."""

    number: int
    offered: int
    offered_correct: int
    judged: int
    correct: int
    timed: int
    geometric: float | None
    arithmetic: float | None
    speedup: Interval | None


@dataclass(frozen=True, slots=True)
class Change:
    """A task between two rounds. `is_offered`: there is a new candidate for it in between."""

    task: int
    before: Result | None
    after: Result | None
    fate: str
    is_offered: bool

    @property
    def ratio(self) -> float | None:
        """The speedup after over that before, where both are timed."""
        before, after = _speed(self.before), _speed(self.after)
        return after / before if before and after else None


@dataclass(frozen=True, slots=True)
class Step:
    """What happened between two rounds of a method on a device."""

    start: int
    end: int
    changes: tuple[Change, ...]
    geometric: RatioSplit | None
    arithmetic: Split | None

    def of(self, fate: str) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.fate == fate)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(change.fate for change in self.changes)
        return {fate: found[fate] for fate in FATES}

    @property
    def renewed(self) -> int:
        """Of the tasks behind the real change, those with a new candidate: others can't change."""
        return sum(change.is_offered and change.ratio is not None for change in self.changes)

    @property
    def offered(self) -> int:
        return sum(change.is_offered for change in self.changes)


@dataclass(frozen=True, slots=True)
class Transitions:
    """Counts of tasks by what they were before (rows) and what they became (columns)."""

    words: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    total: int


Rounds = Mapping[int, Mapping[int, Result]]  # round -> task -> the run that counts
Key = TypeVar("Key")


def standings(rounds: Rounds) -> dict[int, dict[int, Result]]:
    """After each round, the last result of every task offered so far."""
    standing: dict[int, Result] = {}
    after: dict[int, dict[int, Result]] = {}
    for number in sorted(rounds):
        standing = {**standing, **rounds[number]}
        after[number] = standing
    return after


def counts(rounds: Rounds) -> tuple[RoundSummary, ...]:
    """One of each round, the speedups without their intervals."""
    after = standings(rounds)
    return tuple(
        _summary(number, rounds[number].values(), after[number].values()) for number in after
    )


def summaries(rounds: Rounds, tasks: Sequence[int]) -> tuple[RoundSummary, ...]:
    """`counts` with intervals. `tasks`: all that the device could have judged, as they weigh in
    the bootstrap.
    """
    after = standings(rounds)
    entries = [ranking.Entry(str(number), _solved(after[number])) for number in after]
    speedups = {placed.key: placed.speedup for placed in ranking.rank(entries, tasks)}
    return tuple(replace(row, speedup=speedups[str(row.number)]) for row in counts(rounds))


def step(rounds: Rounds, start: int, end: int) -> Step:
    """Between the standings after rounds `start` and `end`."""
    after = standings(rounds)
    before_all, after_all = after[start], after[end]
    changes = tuple(
        _change(task, before_all.get(task), after_all[task]) for task in sorted(after_all)
    )
    before, later = _timed(before_all), _timed(after_all)
    return Step(start, end, changes, ratio_split(before, later), split(before, later))


def split(before: Mapping[Key, float], after: Mapping[Key, float]) -> Split | None:
    """The change of the arithmetic mean; None where one side has no value."""
    if not before or not after:
        return None
    both = sorted(before.keys() & after.keys(), key=str)
    entered, left = after.keys() - before.keys(), before.keys() - after.keys()
    start, end = fmean(before.values()), fmean(after.values())
    if not both:
        return Split(start, end, 0, len(entered), len(left), None, end - start, 0.0)
    kept_start, kept_end = fmean(before[k] for k in both), fmean(after[k] for k in both)
    entering = _weighted([after[k] for k in entered], kept_end, len(after))
    leaving = -_weighted([before[k] for k in left], kept_start, len(before))
    real = kept_end - kept_start
    return Split(start, end, len(both), len(entered), len(left), real, entering, leaving)


def ratio_split(before: Mapping[Key, float], after: Mapping[Key, float]) -> RatioSplit | None:
    """The change of the geometric mean, as factors; None where one side has no value."""
    logs = split(_each(math.log, before), _each(math.log, after))
    if logs is None:
        return None
    both = sorted(before.keys() & after.keys(), key=str)
    return RatioSplit(
        before=math.exp(logs.before),
        after=math.exp(logs.after),
        both=logs.both,
        entered=logs.entered,
        left=logs.left,
        real=None if logs.real is None else math.exp(logs.real),
        entering=math.exp(logs.entering),
        leaving=math.exp(logs.leaving),
        ratios=tuple(after[key] / before[key] for key in both),
    )


def transitions(found: Step) -> Transitions:
    """Verdicts before against verdicts after, over every task that has a candidate by the end."""
    moves = Counter((word_of(change.before), word_of(change.after)) for change in found.changes)
    used = {word for move in moves for word in move}
    words = tuple(sorted(used, key=_word_order))
    rows = tuple((before, tuple(moves[before, word] for word in words)) for before in words)
    return Transitions(words, tuple(row for row in rows if any(row[1])), len(found.changes))


def word_of(result: Result | None) -> str:
    """The verdict of a result that counts, else why it doesn't."""
    if result is None:
        return NOT_JUDGED
    return result.verdict if result.state == COUNTED else result.state


def _word_order(word: str) -> tuple[int, str]:
    """Passed first, not judged last, the vocabulary's order between."""
    known = [*vocabulary.VERDICTS]
    if word in known:
        return known.index(word), word
    return (len(known) + (word == NOT_JUDGED), word)


def _change(task: int, before: Result | None, after: Result) -> Change:
    offered = before is None or before.key != after.key
    return Change(task, before, after, _fate(before, after), offered)


def _fate(before: Result | None, after: Result) -> str:
    was, judged = before is not None and before.is_solved, before is not None and before.is_judged
    if after.is_solved:
        return PERSISTENT if was else RESCUED if judged else NEW
    return LOST if was else FAILING


def _summary(number: int, offered: Iterable[Result], standing: Iterable[Result]) -> RoundSummary:
    here = [result for result in offered if result.is_judged]
    judged = [result for result in standing if result.is_judged]
    speeds = [speed for result in judged if (speed := _speed(result))]
    return RoundSummary(
        number=number,
        offered=len(here),
        offered_correct=sum(result.is_solved for result in here),
        judged=len(judged),
        correct=sum(result.is_solved for result in judged),
        timed=len(speeds),
        geometric=ranking.geometric_mean(speeds),
        arithmetic=fmean(speeds) if speeds else None,
        speedup=None,
    )


def _solved(standing: Mapping[int, Result]) -> dict[int, float | None]:
    return {task: _speed(result) for task, result in standing.items() if result.is_solved}


def _timed(standing: Mapping[int, Result]) -> dict[int, float]:
    return {task: speed for task, result in standing.items() if (speed := _speed(result))}


def _speed(result: Result | None) -> float | None:
    if result is None or not result.is_solved or result.speedup is None:
        return None
    return result.speedup.value


def _weighted(values: Sequence[float], kept: float, count: int) -> float:
    """What a set adds to a mean over `count`, against a mean of `kept` without it."""
    return len(values) / count * (fmean(values) - kept) if values else 0.0


def _each(function: Callable[[float], float], values: Mapping[Key, float]) -> dict[Key, float]:
    return {key: function(value) for key, value in values.items()}
