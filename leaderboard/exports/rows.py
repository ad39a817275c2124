"""The rows of each table, out of the boards that pages show: no other rule says what counts."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from benchmark import vocabulary
from benchmark.models import Measurement, Run, Task
from leaderboard import kept, summaries
from leaderboard.exports.selection import Selection
from leaderboard.figures import Interval
from leaderboard.filters import Choice
from leaderboard.rows import COUNTED, Result, Standing
from leaderboard.selectors import board as boards
from leaderboard.selectors.board import BoardData
from leaderboard.selectors.compare import entrants

Row = tuple[Any, ...]
BATCH = 1000  # runs asked for at a time
FACTS = (
    "uuid",
    "task_digest",
    "judge_version",
    "candidate__source_id",
    "peak_memory_bytes",
    "created_at",
    "candidate__submission__uuid",
)
CASE_FIELDS = (
    *("case", "kind", "shape", "dtype", "family", "state"),
    *("error", "reference_error", "tolerance", "unit"),
    *("candidate_ms", "candidate_ms_low", "candidate_ms_high"),
    *("reference_ms", "reference_ms_low", "reference_ms_high"),
    *("speedup", "speedup_low", "speedup_high", "flops", "bytes", "own_share", "samples"),
)
TIMED = range(CASE_FIELDS.index("candidate_ms"), CASE_FIELDS.index("flops"))


def runs(selection: Selection) -> Iterator[Row]:
    for data, some in _batches(selection):
        facts = {
            row[0]: row[1:] for row in Run.objects.filter(uuid__in=_uuids(some)).values_list(*FACTS)
        }
        difficulty = {task.slug: task.difficulty for task in data.tasks}
        for place, result in some:
            digest, judge, source, memory, at, submission = facts[result.run]
            yield (
                *place,
                str(submission),
                difficulty[place[2]],
                result.state,
                result.verdict,
                result.stage,
                *_speed(result.speedup if result.state == COUNTED else None),
                _baseline(data.choice),
                digest,
                judge,
                source,
                memory,
                at.isoformat(),
            )


def cases(selection: Selection) -> Iterator[Row]:
    """Of runs that count: what is held back, stale or rejected gives no figures here."""
    for data, some in _batches(selection, only_counted=True):
        places = {result.run: place for place, result in some}
        found = Measurement.objects.filter(run__uuid__in=list(places)).order_by(
            "run_id", "position"
        )
        for uuid, *values in found.values_list("run__uuid", *CASE_FIELDS):
            yield (*places[uuid], *(values if data.choice.gpu.can_time else _untimed(values)))


def tasks(selection: Selection) -> Iterator[Row]:
    contracts = {
        slug: facts
        for slug, *facts in Task.objects.values_list("slug", "signature", "tolerance", "digest")
    }
    for choice in selection.choices:
        for row in summaries.task_summaries(_data(selection, choice)):
            task = row.task
            yield (
                choice.gpu.slug,
                task.slug,
                task.category,
                task.difficulty,
                " ".join(task.dtypes),
                task.interpretable,
                *contracts[task.slug],
                choice.lane,
                row.judged,
                row.solved,
                row.best_method.slug if row.best_method else None,
                str(row.best_run) if row.best_run else None,
                *_speed(row.best),
            )


def methods(selection: Selection) -> Iterator[Row]:
    for choice in selection.choices:
        _, board = kept.board(selection.generation, choice)
        for entrant in entrants(board):
            method = entrant.method
            yield (
                choice.gpu.slug,
                method.slug,
                method.name,
                method.kind,
                method.organisation,
                choice.lane,
                *_standing(entrant.standing, board.tasks),
                _baseline(choice),
                entrant.reason,
            )


def _standing(standing: Standing | None, tasks: int) -> Row:
    if standing is None:
        return (None, None, None, None, tasks, *[None] * 9)
    funnel = standing.funnel
    return (
        *(standing.rank, standing.rank_low, standing.rank_high, standing.group),
        *(funnel.tasks, funnel.judged, funnel.loaded, funnel.called, funnel.correct),
        *(funnel.faster, standing.timed),
        *_speed(standing.speedup),
    )


def _data(selection: Selection, choice: Choice) -> BoardData:
    """As pages keep it; read for this alone where many boards would push theirs out."""
    if len(selection.choices) > kept.KEPT_BOARDS // 2:
        return boards.board_data(choice)
    return kept.board(selection.generation, choice)[0]


Placed = tuple[Row, Result]


def _batches(
    selection: Selection, only_counted: bool = False
) -> Iterator[tuple[BoardData, Sequence[Placed]]]:
    """Results of each board by method and task, a batch at a time."""
    for choice in selection.choices:
        data = _data(selection, choice)
        placed = sorted(_placed(data, only_counted), key=lambda pair: pair[0])
        for start in range(0, len(placed), BATCH):
            yield data, placed[start : start + BATCH]


def _placed(data: BoardData, only_counted: bool) -> Iterable[Placed]:
    names = {method.id: method.slug for method in data.methods}
    known = {task.id: task for task in data.tasks}
    for (method, task), result in data.results.items():
        if only_counted and result.state != COUNTED:
            continue
        where = (data.choice.gpu.slug, names[method], known[task].slug, known[task].category)
        yield (*where, result.round, data.choice.lane, str(result.run)), result


def _uuids(some: Iterable[Placed]) -> list[UUID]:
    return [result.run for _, result in some]


def _untimed(values: Sequence[Any]) -> list[Any]:
    """A device that judges correctness only has no times, whatever it noted."""
    return [None if i in TIMED else value for i, value in enumerate(values)]


def _speed(found: Interval | None) -> tuple[float | None, float | None, float | None]:
    return (found.value, found.low, found.high) if found else (None, None, None)


def _baseline(choice: Choice) -> str:
    return vocabulary.BASELINE if choice.gpu.can_time else ""
