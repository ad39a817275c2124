"""What the rounds of iterating methods did, on each device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Count, QuerySet

from benchmark import vocabulary
from benchmark.models import CountingRun, Task
from leaderboard import kept, refinement
from leaderboard.derived import Derived
from leaderboard.filters import Choice
from leaderboard.refinement import RoundSummary, Step, Transitions
from leaderboard.rows import GpuRow, MethodRow, Recorded, Result, TaskRow
from leaderboard.selectors.board import BoardData, listed_counting, results_of

KEPT_INDEXES = 6  # one a GPU

Rounds = dict[int, dict[int, Result]]  # round -> task -> the run that counts


@dataclass(frozen=True, slots=True)
class Refined:
    """A method's rounds on a device. `tasks` by id: all that the device can judge.

    `steps`: from each round to the next; `whole`: from the first to the last.
    """

    gpu: GpuRow
    tasks: Mapping[int, TaskRow]
    rounds: tuple[RoundSummary, ...]
    steps: tuple[Step, ...]
    whole: Step

    @property
    def first(self) -> RoundSummary:
        return self.rounds[0]

    @property
    def last(self) -> RoundSummary:
        return self.rounds[-1]

    @property
    def transitions(self) -> Transitions:
        return refinement.transitions(self.whole)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A method with several rounds, from its first to its last."""

    method: MethodRow
    first: RoundSummary
    last: RoundSummary
    rounds: int
    whole: Step


@dataclass(frozen=True, slots=True)
class Index:
    gpu: GpuRow
    tasks: int
    rows: tuple[IndexRow, ...]
    recorded: tuple[Recorded, ...]


_INDEXES: Derived[Index] = Derived(KEPT_INDEXES)


def devices(method: int, gpus: Sequence[GpuRow]) -> tuple[GpuRow, ...]:
    """Those on which the method has results of several rounds, in the order of `gpus`."""
    counting = _measured().filter(method=method)
    rounds = counting.values_list("gpu_id").annotate(rounds=Count("round", distinct=True))
    several = {gpu for gpu, count in rounds if count > 1}
    return tuple(gpu for gpu in gpus if gpu.id in several)


def refined(generation: int, method: int, gpu: GpuRow) -> Refined | None:
    """None where no submission has several rounds there: two submissions' are never mixed."""
    data, _ = kept.board(generation, Choice(gpu=gpu))
    found = _by_round(_measured().filter(method=method, gpu=gpu.id), data, gpu).get(method, {})
    if len(found) < 2:
        return None
    tasks = {task.id: task for task in data.tasks}
    numbers = sorted(found)
    return Refined(
        gpu,
        tasks,
        refinement.summaries(found, list(tasks)),
        tuple(refinement.step(found, start, end) for start, end in pairwise(numbers)),
        refinement.step(found, numbers[0], numbers[-1]),
    )


def iterating(gpus: Sequence[GpuRow]) -> tuple[GpuRow, ...]:
    """Devices on which any method has results of several rounds."""
    groups = _measured().values_list("gpu_id", "method_id")
    several = groups.annotate(rounds=Count("round", distinct=True)).filter(rounds__gt=1)
    ids = {gpu for gpu, *_ in several}
    return tuple(gpu for gpu in gpus if gpu.id in ids)


def index(generation: int, gpu: GpuRow) -> Index:
    """Methods with several rounds on the device, in the order of its board."""
    data, board = kept.board(generation, Choice(gpu=gpu))
    order = [standing.method for standing in board.standings]
    return _INDEXES.get(gpu, [data], lambda: _index(data, order, gpu))


def _index(data: BoardData, order: Sequence[MethodRow], gpu: GpuRow) -> Index:
    counting = _measured().filter(gpu=gpu.id)
    groups = counting.values("method_id").annotate(rounds=Count("round", distinct=True))
    several = groups.filter(rounds__gt=1).values("method_id")
    found = _by_round(counting.filter(method__in=several), data, gpu)
    rows = (
        _index_row(method, found[method.id])
        for method in order
        if len(found.get(method.id, {})) > 1
    )
    return Index(gpu, len(data.tasks), tuple(rows), data.recorded)


def _index_row(method: MethodRow, rounds: Rounds) -> IndexRow:
    first, *_, last = refinement.counts(rounds)
    whole = refinement.step(rounds, first.number, last.number)
    return IndexRow(method, first, last, len(rounds), whole)


def _measured() -> QuerySet[CountingRun]:
    return listed_counting().filter(origin=vocabulary.MEASURED, task__retired_at__isnull=True)


def _by_round(counting: QuerySet[CountingRun], data: BoardData, gpu: GpuRow) -> dict[int, Rounds]:
    """Method -> round -> task -> result: of each task, the rounds of the submission whose last one
    counts on the board. Two queries.
    """
    digests = dict(Task.objects.current().values_list("id", "digest"))
    found: dict[int, Rounds] = {}
    for _, result in results_of(counting, digests, gpu.can_time):
        final = data.results.get((result.method, result.task))
        if final is not None and final.submission == result.submission:
            by_round = found.setdefault(result.method, {})
            by_round.setdefault(result.round, {})[result.task] = result
    return found
