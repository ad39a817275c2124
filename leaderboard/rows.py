"""What selectors return and templates show: frozen, complete, nothing left to query."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from benchmark import vocabulary
from leaderboard.figures import Interval, is_fast, verdict_word

COUNTED, STALE, SUSPECT, REJECTED = "counted", "stale", "suspect", "rejected"
HELD = "held"  # a new record that nobody has looked at
JUDGED = (COUNTED, REJECTED)
PASSED = vocabulary.PASSED  # asked of every result: by its own name it is found sooner


@dataclass(frozen=True, slots=True)
class GpuRow:
    id: int
    slug: str
    name: str
    architecture: str
    can_time: bool
    runs: int

    @property
    def is_made_up(self) -> bool:
        """Of synthetic results, which are there to try the site at size."""
        return self.slug.startswith(vocabulary.SYNTHETIC)

    @property
    def label(self) -> str:
        return self.name if self.can_time else f"{self.name}, correctness only"


@dataclass(frozen=True, slots=True)
class MethodRow:
    id: int
    slug: str
    name: str
    kind: str
    organisation: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    id: int
    slug: str
    category: str
    difficulty: int
    dtypes: tuple[str, ...]
    interpretable: bool
    not_on: tuple[str, ...] = ()  # slugs of GPUs on which it is not applicable

    @property
    def category_label(self) -> str:
        return vocabulary.CATEGORY_BY_SLUG[self.category].label

    def applies_to(self, gpu: GpuRow) -> bool:
        return gpu.slug not in self.not_on and (gpu.can_time or self.interpretable)


class Result(NamedTuple):
    """The run that counts for a method on a task and GPU. `state`: counted, or why it does not.

    `speedup` is None for a failed run and on devices that only judge correctness. A page reads
    thousands, so they are tuples, and `key`, the run's UUID as text, becomes one when it is shown.
    """

    method: int
    task: int
    round: int
    key: str
    verdict: str
    stage: str
    speedup: Interval | None
    state: str
    submission: int = 0

    @property
    def run(self) -> UUID:
        return UUID(self.key)

    @property
    def is_solved(self) -> bool:
        return self.state == COUNTED and self.verdict == PASSED

    @property
    def is_judged(self) -> bool:
        return self.state in JUDGED

    def reached(self, stage: str) -> bool:
        """It came through `stage`: it was accepted, or a later stage decided against it."""
        after = vocabulary.STAGES.index(self.stage) > vocabulary.STAGES.index(stage)
        return after or self.verdict == PASSED

    @property
    def is_faster(self) -> bool:
        return self.speedup is not None and self.is_solved and is_fast(self.speedup.value)

    @property
    def word(self) -> str:
        if self.state != COUNTED:
            return self.state
        return verdict_word(self.verdict, self.speedup.value if self.speedup else None)


_KIND = itemgetter(*map(Result._fields.index, ("state", "verdict", "stage")))


def tally(results: Iterable[Result]) -> tuple[tuple[Result, int], ...]:
    """A result, of no task, for each state, verdict and stage, and how many are like it: thousands
    are counted, and what they mean is asked of a dozen.
    """
    kinds = Counter(map(_KIND, results))
    return tuple(
        (Result(0, 0, 0, "", verdict, stage, None, state), count)
        for (state, verdict, stage), count in kinds.items()
    )


@dataclass(frozen=True, slots=True)
class Funnel:
    """How far a method came, in tasks: of `tasks` asked, `judged` had a candidate, and so on.

    `faster` is None on a device that can't time.
    """

    tasks: int
    judged: int
    loaded: int
    called: int
    correct: int
    faster: int | None

    @property
    def share(self) -> float:
        """Correct share of all tasks asked, in percent."""
        return 100 * self.correct / self.tasks if self.tasks else 0.0

    @property
    def judged_share(self) -> float:
        return 100 * self.judged / self.tasks if self.tasks else 0.0

    @property
    def faster_share(self) -> float:
        return 100 * (self.faster or 0) / self.tasks if self.tasks else 0.0


@dataclass(frozen=True, slots=True)
class Standing:
    method: MethodRow
    rank: int
    rank_low: int
    rank_high: int
    group: int
    is_tied: bool
    funnel: Funnel
    speedup: Interval | None
    timed: int

    @property
    def rank_interval(self) -> str:
        if self.rank_low == self.rank_high:
            return str(self.rank_low)
        return f"{self.rank_low}\N{EN DASH}{self.rank_high}"


@dataclass(frozen=True, slots=True)
class Unranked:
    method: MethodRow
    reason: str


@dataclass(frozen=True, slots=True)
class Board:
    """A ranking. `published`: the published benchmark's task count for the selection, if any."""

    gpu: GpuRow
    tasks: int
    published: int | None
    standings: tuple[Standing, ...]
    unranked: tuple[Unranked, ...]

    @property
    def leader(self) -> Standing | None:
        """The first, unless nothing was solved by anybody."""
        first = self.standings[0] if self.standings else None
        return first if first and first.funnel.correct else None

    @property
    def tied_with_leader(self) -> int:
        return sum(1 for standing in self.standings[1:] if standing.group == 1)

    @property
    def lead(self) -> int:
        """By how many solved tasks the first is ahead of the second."""
        if len(self.standings) < 2:
            return 0
        return self.standings[0].funnel.correct - self.standings[1].funnel.correct

    @property
    def is_small(self) -> bool:
        return self.tasks < 6


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where results come from that our judge measured elsewhere and this site loaded.

    `round_text`: what the method did in a run's round; `results`: how many a board shows.
    """

    date: str
    hardware: str
    judge: str
    predictions: str
    round_text: str = ""
    results: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """Correct k of n tasks; `state`: counted, not-attempted or not-applicable."""

    state: str
    correct: int = 0
    tasks: int = 0
    judged: int = 0

    @property
    def share(self) -> float:
        return self.correct / self.tasks if self.tasks else 0.0

    @property
    def step(self) -> int:
        """0 to 8: the step on the colour ramp."""
        return round(8 * self.share)


@dataclass(frozen=True, slots=True)
class CategoryRow:
    slug: str
    label: str
    tasks: int
    published: int

    @property
    def is_small(self) -> bool:
        return self.tasks < 6


@dataclass(frozen=True, slots=True)
class HeatRow:
    method: MethodRow
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Heatmap:
    categories: tuple[CategoryRow, ...]
    rows: tuple[HeatRow, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """A method's speedups over its solved tasks, and the tasks that have none, by word."""

    method: MethodRow
    tasks: int
    speedups: tuple[tuple[str, float], ...]  # (task, ratio)
    untimed: int
    failures: Mapping[str, int]
    missing: int


@dataclass(frozen=True, slots=True)
class TaskSummary:
    task: TaskRow
    solved: int
    judged: int
    best: Interval | None
    best_method: MethodRow | None
    best_run: UUID | None


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in a list."""

    uuid: UUID
    task: str
    method: str
    method_slug: str
    gpu: str
    verdict: str
    word: str
    speedup: Interval | None
    round: int
    created_at: datetime
