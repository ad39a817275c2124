"""What became of methods and their candidates on each device, from the boards of all of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Generic, TypeVar

from benchmark.models import Candidate
from leaderboard import devices_compared as compared
from leaderboard import kept
from leaderboard.derived import Derived
from leaderboard.devices_compared import Disagreement, Pair, Ratio, Relative
from leaderboard.figures import Interval
from leaderboard.filters import Choice
from leaderboard.lazily import Rows
from leaderboard.rows import Board, Cell, GpuRow, MethodRow, Recorded, Standing, TaskRow
from leaderboard.selectors.board import BoardData

KEPT_SELECTIONS = 8
KEPT_PAIRS = 256
What = TypeVar("What")


@dataclass(frozen=True, slots=True)
class OnDevice:
    """A method on a device, as on its board. `reason`: why nothing counts, empty where it does."""

    cell: Cell
    speedup: Interval | None = None
    timed: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AcrossDevices:
    """A method's row; `cells` follow the page's devices."""

    method: MethodRow
    cells: tuple[OnDevice, ...]
    relative: Relative | None


@dataclass(frozen=True, slots=True)
class Line(Generic[What]):
    """Something found for a method on a task."""

    method: MethodRow
    task: TaskRow
    found: What


@dataclass(frozen=True)
class Portability:
    """`devices` with their tasks' count; `idle` are in service but have judged nothing yet.

    `mixed`: tasks of methods for which the devices judged different candidates. `disagreements` by
    name: those `among_gpus`, and those that are only `with_interpreter`. `by_method`: how many
    candidates of each method GPUs disagree on, the most first. `ratios` with their `ratio_values`,
    the largest first.
    """

    devices: tuple[tuple[GpuRow, int], ...]
    idle: tuple[GpuRow, ...]
    rows: tuple[AcrossDevices, ...]
    shared: int
    mixed: int
    disagreements: Rows[Line[Disagreement]]
    among_gpus: Rows[Line[Disagreement]]
    with_interpreter: Rows[Line[Disagreement]]
    by_method: tuple[tuple[MethodRow, int], ...]
    pairs: tuple[Pair, ...]
    ratios: Rows[Line[Ratio]]
    ratio_values: Sequence[float]
    summary: compared.RatioSummary | None
    recorded: tuple[Recorded, ...]

    @property
    def timing(self) -> tuple[GpuRow, ...]:
        return tuple(gpu for gpu, _ in self.devices if gpu.can_time)


_KEPT: Derived[Portability] = Derived(KEPT_SELECTIONS)
_PAIRS: Derived[Pair] = Derived(KEPT_PAIRS)


def portability(generation: int, gpus: Sequence[GpuRow]) -> Portability:
    """Of the devices among `gpus` that have judged something, in their order."""
    used = tuple(gpu for gpu in gpus if gpu.runs)
    boards = [kept.board(generation, Choice(gpu=gpu)) for gpu in used]
    idle = tuple(gpu for gpu in gpus if not gpu.runs)
    return _KEPT.get(
        (used, idle),
        [data for data, _ in boards],
        lambda: _portability(used, boards, idle),
    )


def _portability(
    gpus: tuple[GpuRow, ...], boards: Sequence[tuple[BoardData, Board]], idle: tuple[GpuRow, ...]
) -> Portability:
    methods = {method.id: method for data, _ in boards for method in data.methods}
    tasks = {task.id: task for data, _ in boards for task in data.tasks}
    columns = [_column(gpu, data) for gpu, (data, _) in zip(gpus, boards, strict=True)]
    first = _sent_before(compared.submissions_of(columns))
    found = compared.grid([compared.held_together(column, first) for column in columns])
    several = found.judged_on_several()
    ratios = compared.ratios(several)

    def line(row: Any) -> Line[Any]:
        return Line(methods[row.method], tasks[row.task], row)

    return Portability(
        devices=tuple((gpu, board.tasks) for gpu, (_, board) in zip(gpus, boards, strict=True)),
        idle=idle,
        rows=_rows(boards, compared.relatives(found)),
        shared=len(several),
        mixed=compared.mixed(found),
        **_split(compared.disagreements(several), methods, tasks, line),
        pairs=tuple(_pairs(several, boards)),
        ratios=Rows(len(ratios), lambda at: line(ratios[at])),
        ratio_values=ratios.values,
        summary=compared.ratio_summary(ratios.values),
        recorded=tuple(_recorded(boards)),
    )


def _split(
    found: compared.Disagreements,
    methods: Mapping[int, MethodRow],
    tasks: Mapping[int, TaskRow],
    line: Callable[[Disagreement], Line[Disagreement]],
) -> dict[str, Any]:
    """What a page says of candidates that devices disagree on."""
    names = [
        (methods[method].name.casefold(), tasks[task].slug) for method, task in found.candidates
    ]
    order = sorted(range(len(found)), key=names.__getitem__)
    lines = Rows(len(found), lambda at: line(found[at]))
    among = [at for at in order if found.among_gpus[at]]
    counts = Counter(methods[found.candidates[at][0]] for at in among)
    return {
        "disagreements": lines.only(order),
        "among_gpus": lines.only(among),
        "with_interpreter": lines.only([at for at in order if not found.among_gpus[at]]),
        "by_method": tuple(counts.most_common()),
    }


def _column(gpu: GpuRow, data: BoardData) -> compared.Column:
    """Every result that the board is made of; made once a board, not once a comparison."""
    if "column" not in data.memo:
        data.memo["column"] = compared.column(gpu, data.results.values())
    found: compared.Column = data.memo["column"]
    return found


def _sent_before(methods: Mapping[int, int]) -> dict[compared.Sent, int]:
    """Of the submissions, with their methods, each candidate whose source its method had sent for
    that task and round before, with the first submission that did.
    """
    if not methods:
        return {}
    sent = Candidate.objects.filter(submission__in=methods).order_by("submission")
    first: dict[tuple[int, int, int, str], int] = {}
    found = {}
    for submission, task, round, source in sent.values_list(
        "submission", "task", "round", "source"
    ):
        original = first.setdefault((methods[submission], task, round, source), submission)
        if original != submission:
            found[submission, task, round] = original
    return found


def _recorded(boards: Iterable[tuple[BoardData, Board]]) -> Iterable[Recorded]:
    """What the boards show of results measured elsewhere, added up."""
    sums: Counter[Recorded] = Counter()
    for data, _ in boards:
        for row in data.recorded:
            sums[replace(row, results=0)] += row.results
    for row, results in sums.items():
        yield replace(row, results=results)


def _pairs(found: compared.Grid, boards: Sequence[tuple[BoardData, Board]]) -> Iterable[Pair]:
    """Every two devices; what a new result leaves as it was stays, which is most of them."""
    for left, right in combinations(range(len(boards)), 2):
        own = [boards[left][0], boards[right][0]]
        places = [_places(boards[at][1]) for at in (left, right)]
        yield _PAIRS.get(
            tuple(data.choice.gpu.id for data in own),
            own,
            partial(compared.pair, found, left, right, *places),
        )


def _places(board: Board) -> dict[int, int]:
    """The methods' places where the device times: elsewhere a board ranks by something else."""
    return {s.method.id: s.rank for s in board.standings} if board.gpu.can_time else {}


def _rows(
    boards: Sequence[tuple[BoardData, Board]], relatives: Mapping[int, Relative]
) -> tuple[AcrossDevices, ...]:
    """Methods with a result that counts on any device, in the order of the first board."""
    order = {s.method.id: s.method for _, board in boards for s in board.standings}
    columns = [dict(_on_device(board)) for _, board in boards]
    return tuple(
        AcrossDevices(
            method,
            tuple(
                column.get(id) or _not_judged(board)
                for column, (_, board) in zip(columns, boards, strict=True)
            ),
            relatives.get(id),
        )
        for id, method in order.items()
    )


def _on_device(board: Board) -> Iterable[tuple[int, OnDevice]]:
    """By method."""
    for standing in board.standings:
        yield standing.method.id, OnDevice(_cell(standing), standing.speedup, standing.timed)
    for entry in board.unranked:
        yield entry.method.id, replace(_not_judged(board), reason=entry.reason)


def _not_judged(board: Board) -> OnDevice:
    return OnDevice(Cell("not-attempted", tasks=board.tasks), reason="not judged")


def _cell(standing: Standing) -> Cell:
    funnel = standing.funnel
    return Cell("counted", funnel.correct, funnel.tasks, funnel.judged)
