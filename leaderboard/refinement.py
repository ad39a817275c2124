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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import fmean
from typing import TypeVar

from benchmark import vocabulary
from leaderboard import ranking
from leaderboard.figures import Interval
from leaderboard.rows import COUNTED, Result, tally
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


@dataclass(frozen=True)
class RatioSplit(Parts):
    """Of a geometric mean: `after / before == real * entering * leaving`."""

    ratios: tuple[float, ...]  # after / before of each task of B

    @cached_property
    def real_interval(self) -> Interval | None:
        """By the bootstrap over tasks; made when first asked for, as it takes a while."""
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


@dataclass(frozen=True)
class Standing:
    """Where a method stands after round `number`: `results` has of each task the last one so far,
    `offered` those of this round alone.
    """

    number: int
    offered: Mapping[int, Result]
    results: Mapping[int, Result]

    @cached_property
    def solved(self) -> dict[int, float | None]:
        """The speedup of each correct task, None where it was not timed."""
        return {
            task: one.speedup.value if one.speedup else None
            for task, one in self.results.items()
            if one.is_solved
        }

    @cached_property
    def speedups(self) -> dict[int, float]:
        """Of the tasks that are correct and timed."""
        return {task: speed for task, speed in self.solved.items() if speed}

    @cached_property
    def logs(self) -> dict[int, float]:
        """Natural logarithms of `speedups`."""
        return _each(math.log, self.speedups)


@dataclass(frozen=True)
class Step:
    """What happened between two rounds of a method on a device. Each part is made when it is first
    asked for: of most steps of many rounds a page shows one.
    """

    before: Standing
    after: Standing

    @property
    def start(self) -> int:
        return self.before.number

    @property
    def end(self) -> int:
        return self.after.number

    @cached_property
    def changes(self) -> tuple[Change, ...]:
        before, after = self.before.results, self.after.results
        return tuple(_change(task, before.get(task), after[task]) for task in sorted(after))

    @cached_property
    def geometric(self) -> RatioSplit | None:
        before, after = self.before, self.after
        return _ratio_split(before.speedups, after.speedups, split(before.logs, after.logs))

    @cached_property
    def arithmetic(self) -> Split | None:
        return split(self.before.speedups, self.after.speedups)

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


def standings(rounds: Rounds) -> dict[int, Standing]:
    """By the number of each round, in their order."""
    results: Mapping[int, Result] = {}
    after: dict[int, Standing] = {}
    for number in sorted(rounds):
        results = {**results, **rounds[number]}
        after[number] = Standing(number, rounds[number], results)
    return after


def counts(after: Mapping[int, Standing]) -> tuple[RoundSummary, ...]:
    """One of each round, the speedups without their intervals."""
    return tuple(map(_summary, after.values()))


def summaries(after: Mapping[int, Standing], tasks: Sequence[int]) -> tuple[RoundSummary, ...]:
    """`counts` with intervals. `tasks`: all that the device could have judged, as they weigh in
    the bootstrap.
    """
    entries = [ranking.Entry(str(number), one.solved) for number, one in after.items()]
    intervals = ranking.speedup_intervals(entries, tasks)
    return tuple(
        replace(row, speedup=own) for row, own in zip(counts(after), intervals, strict=True)
    )


def steps(after: Mapping[int, Standing]) -> tuple[Step, ...]:
    """From each round to the next."""
    return tuple(Step(*two) for two in pairwise(after.values()))


def whole(after: Mapping[int, Standing]) -> Step:
    """From the first round to the last."""
    first, *_, last = after.values()
    return Step(first, last)


def split(before: Mapping[Key, float], after: Mapping[Key, float]) -> Split | None:
    """The change of the arithmetic mean; None where one side has no value."""
    if not before or not after:
        return None
    both = before.keys() & after.keys()
    entered, left = after.keys() - both, before.keys() - both
    start, end = fmean(before.values()), fmean(after.values())
    if not both:
        return Split(start, end, 0, len(entered), len(left), None, end - start, 0.0)
    kept_start, kept_end = fmean([before[k] for k in both]), fmean([after[k] for k in both])
    entering = _weighted([after[k] for k in entered], kept_end, len(after))
    leaving = -_weighted([before[k] for k in left], kept_start, len(before))
    real = kept_end - kept_start
    return Split(start, end, len(both), len(entered), len(left), real, entering, leaving)


def ratio_split(before: Mapping[Key, float], after: Mapping[Key, float]) -> RatioSplit | None:
    """The change of the geometric mean, as factors; None where one side has no value."""
    return _ratio_split(before, after, split(_each(math.log, before), _each(math.log, after)))


def _ratio_split(
    before: Mapping[Key, float], after: Mapping[Key, float], logs: Split | None
) -> RatioSplit | None:
    """`logs`: the split of their natural logarithms."""
    if logs is None:
        return None
    both = sorted(before.keys() & after.keys(), key=str)  # the bootstrap draws in their order
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


def _summary(after: Standing) -> RoundSummary:
    here, standing = tally(after.offered.values()), tally(after.results.values())
    return RoundSummary(
        number=after.number,
        offered=sum(count for one, count in here if one.is_judged),
        offered_correct=sum(count for one, count in here if one.is_solved),
        judged=sum(count for one, count in standing if one.is_judged),
        correct=sum(count for one, count in standing if one.is_solved),
        timed=len(after.speedups),
        geometric=math.exp(fmean(after.logs.values())) if after.logs else None,
        arithmetic=fmean(after.speedups.values()) if after.speedups else None,
        speedup=None,
    )


def _speed(result: Result | None) -> float | None:
    if result is None or not result.is_solved or result.speedup is None:
        return None
    return result.speedup.value


def _weighted(values: Sequence[float], kept: float, count: int) -> float:
    """What a set adds to a mean over `count`, against a mean of `kept` without it."""
    return len(values) / count * (fmean(values) - kept) if values else 0.0


def _each(function: Callable[[float], float], values: Mapping[Key, float]) -> dict[Key, float]:
    return {key: function(value) for key, value in values.items()}
