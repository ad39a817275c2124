"""Pure: two methods task by task, and what that says about correctness, speed and coverage."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from benchmark import vocabulary
from leaderboard.figures import Interval
from leaderboard.filters import Choice
from leaderboard.rows import MethodRow, Result, TaskRow
from leaderboard.selectors.board import BoardData
from leaderboard.statistics import bootstrap, ecdf
from leaderboard.statistics.ecdf import Step
from leaderboard.statistics.paired import McNemar, SignTest, sign_test

SOLVED, FAILED, ABSENT = "solved", "failed", "not judged"
OUTCOMES = (SOLVED, FAILED, ABSENT)
NOT_ATTEMPTED = "not attempted"
FEWEST_PAIRS = 6  # five pairs can't reach p < 0.05 in a sign test, whatever they show


@dataclass(frozen=True, slots=True)
class Pair:
    """Both methods' results on a task; None where there is none."""

    task: TaskRow
    first: Result | None
    second: Result | None

    @property
    def outcomes(self) -> tuple[str, str]:
        return outcome(self.first), outcome(self.second)

    @property
    def words(self) -> tuple[str, str]:
        return word(self.first), word(self.second)

    @property
    def speedups(self) -> tuple[Interval | None, Interval | None]:
        return _speedup(self.first), _speedup(self.second)

    @property
    def ratio(self) -> float | None:
        """How many times as fast the first is; None unless both solved it and were timed."""
        first, second = self.speedups
        return first.value / second.value if first and second else None


@dataclass(frozen=True, slots=True)
class Speed:
    """On the tasks that both solved and that were timed. `ratio`: first / second."""

    pairs: int
    ratio: Interval | None
    sign: SignTest

    @property
    def is_few(self) -> bool:
        return self.pairs < FEWEST_PAIRS

    @property
    def is_clear(self) -> bool:
        """The interval of the mean does not hold 1.0x."""
        return self.ratio is not None and not self.ratio.low <= 1 <= self.ratio.high

    @property
    def agrees(self) -> bool:
        """Mean and count of tasks point the same way."""
        return self.ratio is not None and (self.ratio.value > 1) == (
            self.sign.ahead > self.sign.behind
        )


@dataclass(frozen=True)
class Comparison:
    """`pairs` holds every task of the choice, in their order. No slots: `groups` is made once."""

    choice: Choice
    first: MethodRow
    second: MethodRow
    pairs: tuple[Pair, ...]
    speed: Speed

    @property
    def tasks(self) -> int:
        return len(self.pairs)

    @cached_property
    def groups(self) -> Mapping[tuple[str, str], tuple[Pair, ...]]:
        """Tasks by (first's outcome, second's outcome), every combination."""
        found: dict[tuple[str, str], list[Pair]] = {
            cell: [] for cell in product(OUTCOMES, OUTCOMES)
        }
        for pair in self.pairs:
            found[pair.outcomes].append(pair)
        return {cell: tuple(pairs) for cell, pairs in found.items()}

    def count(self, first: str, second: str) -> int:
        return len(self.groups[first, second])

    @property
    def shared(self) -> int:
        """Tasks judged for both, which alone can tell them apart."""
        return sum(len(pairs) for cell, pairs in self.groups.items() if ABSENT not in cell)

    @property
    def only_first(self) -> tuple[Pair, ...]:
        """Solved by the first, failed by the second."""
        return self.groups[SOLVED, FAILED]

    @property
    def only_second(self) -> tuple[Pair, ...]:
        return self.groups[FAILED, SOLVED]

    @property
    def both_failed(self) -> tuple[Pair, ...]:
        return self.groups[FAILED, FAILED]

    @property
    def mcnemar(self) -> McNemar:
        return McNemar(len(self.only_first), len(self.only_second))

    @property
    def solved(self) -> tuple[int, int]:
        """Of all tasks, as the ranking counts them."""
        return (
            sum(self.count(SOLVED, other) for other in OUTCOMES),
            sum(self.count(other, SOLVED) for other in OUTCOMES),
        )

    @property
    def solved_of_shared(self) -> tuple[int, int]:
        both = self.count(SOLVED, SOLVED)
        return both + self.mcnemar.only_first, both + self.mcnemar.only_second

    @cached_property
    def timed(self) -> tuple[Pair, ...]:
        """Pairs with a ratio, from the first's best to the second's."""
        timed = [pair for pair in self.pairs if pair.ratio is not None]
        return tuple(sorted(timed, key=lambda pair: (-(pair.ratio or 0), pair.task.slug)))

    def movers(self, most: int) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """The tasks on which the first, and those on which the second is furthest ahead."""
        timed, band = self.timed, 1 + vocabulary.NEUTRAL_BAND
        first = [pair for pair in timed if (pair.ratio or 0) > band]
        second = [pair for pair in reversed(timed) if (pair.ratio or 0) < 1 / band]
        return tuple(first[:most]), tuple(second[:most])

    @property
    def coverage(self) -> tuple[tuple[Pair, ...], tuple[Pair, ...], tuple[Pair, ...]]:
        """Tasks judged for the first only, for the second only, for neither."""
        groups = self.groups
        return (
            (*groups[SOLVED, ABSENT], *groups[FAILED, ABSENT]),
            (*groups[ABSENT, SOLVED], *groups[ABSENT, FAILED]),
            groups[ABSENT, ABSENT],
        )


@dataclass(frozen=True, slots=True)
class Curve:
    """fast_p of a method: the speedups of `tasks` tasks, of which it solved `solved`."""

    method: MethodRow
    tasks: int
    solved: int
    speedups: tuple[float, ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return ecdf.steps(self.speedups, self.tasks) if self.tasks else ()

    def at(self, p: float) -> Step:
        return ecdf.reaching(self.speedups, self.tasks, p)


def compare(data: BoardData, first: MethodRow, second: MethodRow) -> Comparison:
    pairs = tuple(
        Pair(task, data.results.get((first.id, task.id)), data.results.get((second.id, task.id)))
        for task in data.tasks
    )
    return Comparison(data.choice, first, second, pairs, _speed(pairs))


def curves(data: BoardData, methods: Sequence[MethodRow]) -> tuple[Curve, ...]:
    return tuple(_curve(data, method) for method in methods)


def outcome(result: Result | None) -> str:
    if result is None or not result.is_judged:
        return ABSENT
    return SOLVED if result.is_solved else FAILED


def word(result: Result | None) -> str:
    """The result's word; held-back and stale results say so, which is why they don't count."""
    return result.word if result else NOT_ATTEMPTED


def _curve(data: BoardData, method: MethodRow) -> Curve:
    results = [data.results.get((method.id, task.id)) for task in data.tasks]
    solved = [result for result in results if result and result.is_solved]
    speedups = sorted(result.speedup.value for result in solved if result.speedup)
    return Curve(method, len(data.tasks), len(solved), tuple(speedups))


def _speed(pairs: Sequence[Pair]) -> Speed:
    ratios = [pair.ratio for pair in pairs if pair.ratio is not None]
    sign = sign_test(ratios, vocabulary.NEUTRAL_BAND)
    return Speed(len(ratios), _mean_ratio(tuple(map(math.log2, ratios))), sign)


def _mean_ratio(logs: tuple[float, ...]) -> Interval | None:
    """The geometric mean of ratios given as log2, with its bootstrap interval over tasks."""
    if not logs:
        return None
    low, high = bootstrap.mean_interval(logs)
    return Interval(2 ** (math.fsum(logs) / len(logs)), 2**low, 2**high)


def _speedup(result: Result | None) -> Interval | None:
    return result.speedup if result and result.is_solved else None
