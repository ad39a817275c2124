"""What the rounds of iterating methods did, on each device."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Max, Min, QuerySet

from benchmark import vocabulary
from benchmark.models import CountingRun, Task
from leaderboard import kept, refinement
from leaderboard.derived import Derived
from leaderboard.filters import Choice
from leaderboard.refinement import RoundSummary, Step, Transitions
from leaderboard.rows import GpuRow, MethodRow, Recorded, Result, TaskRow
from leaderboard.selectors.board import (
    BoardData,
    chosen_tasks,
    in_round,
    listed_counting,
    results_of,
)

KEPT_INDEXES = 6  # one a GPU
KEPT_REFINED = 8  # a page and its pictures ask one after the other; of 50 rounds it takes 4 MB

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
_REFINED: Derived[Refined | None] = Derived(KEPT_REFINED)


def devices(method: int, gpus: Sequence[GpuRow]) -> tuple[GpuRow, ...]:
    """Those on which the method has results of several rounds, in the order of `gpus`. One query
    over the method's own rows: those of a whole GPU are many.
    """
    own = _measured().filter(method=method).values_list("gpu_id")
    ends = own.annotate(first=Min("round"), last=Max("round"))
    several = {gpu for gpu, first, last in ends if first < last}
    return tuple(gpu for gpu in gpus if gpu.id in several)


def refined(generation: int, method: int, gpu: GpuRow) -> Refined | None:
    """None where no submission has several rounds there: two submissions' are never mixed."""
    made_of = kept.measured_on(generation, gpu)
    return _REFINED.get((method, gpu.id), made_of, lambda: _refined(generation, method, gpu))


def _refined(generation: int, method: int, gpu: GpuRow) -> Refined | None:
    """Two queries over the method's own rows, none over the board's, which is not made for it."""
    scene, choice = kept.scene(generation), Choice(gpu=gpu)
    tasks = {task.id: task for task in chosen_tasks(choice, scene)}
    mine = _measured().filter(method=method, gpu=gpu.id)
    final = dict(in_round(mine, None).values_list("task_id", "submission_id"))
    found = _by_round(
        results_of(mine, scene.digests, gpu.can_time),
        {(method, task): submission for task, submission in final.items() if task in tasks},
    ).get(method, {})
    if len(found) < 2:
        return None
    after = refinement.standings(found)
    return Refined(
        gpu,
        tasks,
        refinement.summaries(after, list(tasks)),
        refinement.steps(after),
        refinement.whole(after),
    )


def iterating(gpus: Sequence[GpuRow], generation: int = 0) -> tuple[GpuRow, ...]:
    """Devices on which any method has results of several rounds."""
    return tuple(gpu for gpu in gpus if _several(spans(generation, gpu)))


def index(generation: int, gpu: GpuRow) -> Index:
    """Methods with several rounds on the device, in the order of its board.

    A row needs a method's first round and what counts in the end, which boards show too; the rounds
    between are not read. Of a method with several submissions all are: which of its rounds belong
    together is told by task.
    """
    data, board = kept.board(generation, Choice(gpu=gpu))
    found = spans(generation, gpu)
    several = _several(found)
    single = {method for method in several if len(found[method]) == 1}
    firsts = {min(_numbers(found, method)) for method in single}
    begun = {
        number: kept.board(generation, Choice(gpu=gpu, round=number))[0]
        for number in sorted(firsts)
    }

    def make() -> Index:
        ends = {
            method: _ends(method, min(_numbers(found, method)), begun, data) for method in single
        }
        others = _measured().filter(gpu=gpu.id, method__in=several - single)
        digests = dict(Task.objects.current().values_list("id", "digest"))
        whole = _by_round(
            results_of(others, digests, gpu.can_time),
            {
                place: result.submission
                for place, result in data.results.items()
                if place[0] in several - single
            },
        )
        rows = (
            _index_row(standing.method, (ends | whole)[standing.method.id], found)
            for standing in board.standings
            if len((ends | whole).get(standing.method.id, {})) > 1
        )
        return Index(gpu, len(data.tasks), tuple(rows), data.recorded)

    return _INDEXES.get(gpu.slug, [data, found, *begun.values()], make)


Spans = Mapping[int, Mapping[int, tuple[int, ...]]]  # method -> submission -> its rounds


def spans(generation: int, gpu: GpuRow) -> Spans:
    """Which rounds there are on the device. One query, none as long as its results are the same."""
    return kept.of_results(generation, gpu, "spans", lambda: _spans(gpu))


def _spans(gpu: GpuRow) -> Spans:
    found: dict[int, dict[int, tuple[int, ...]]] = {}
    rows = _measured().filter(gpu=gpu.id).values_list("method_id", "submission_id", "round")
    for method, submission, number in sorted(rows.distinct()):
        own = found.setdefault(method, {})
        own[submission] = (*own.get(submission, ()), number)
    return found


def _numbers(found: Spans, method: int) -> set[int]:
    return {number for rounds in found.get(method, {}).values() for number in rounds}


def _several(found: Spans) -> set[int]:
    return {method for method in found if len(_numbers(found, method)) > 1}


def _ends(method: int, first: int, begun: Mapping[int, BoardData], data: BoardData) -> Rounds:
    """The first round, and of each later one what still counts after the last."""
    found: Rounds = {}
    for task in data.tasks:
        start = begun[first].results.get((method, task.id))
        end = data.results.get((method, task.id))
        for result in (start, end):
            if result:
                found.setdefault(result.round, {})[task.id] = result
    return found


def _index_row(method: MethodRow, rounds: Rounds, found: Spans) -> IndexRow:
    after = refinement.standings(rounds)
    first, *_, last = refinement.counts(after)
    return IndexRow(method, first, last, len(_numbers(found, method.id)), refinement.whole(after))


def _measured() -> QuerySet[CountingRun]:
    return listed_counting().filter(origin=vocabulary.MEASURED, task__in=Task.objects.current())


def _by_round(results: Iterable[Result], final: Mapping[tuple[int, int], int]) -> dict[int, Rounds]:
    """Method -> round -> task -> result: of each task, the rounds of the submission whose last one
    counts on the board. `final`: that submission, by method and task.
    """
    found: dict[int, Rounds] = {}
    for result in results:
        if final.get((result.method, result.task)) == result.submission:
            by_round = found.setdefault(result.method, {})
            by_round.setdefault(result.round, {})[result.task] = result
    return found
