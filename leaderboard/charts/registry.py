"""Every chart by its name in the URL: what it is called, and how rows become figure and table."""

from collections.abc import Callable
from dataclasses import dataclass

from leaderboard import comparison, summaries
from leaderboard.charts import correctness, ecdf, pareto, speedups, verdicts
from leaderboard.charts.base import Figure, Table
from leaderboard.comparison import Curve
from leaderboard.rows import Board, Heatmap, Spread
from leaderboard.selectors.board import BoardData


@dataclass(frozen=True, slots=True)
class Chart:
    title: str
    figure: Callable[[BoardData, Board], Figure]
    table: Callable[[BoardData, Board], Table]


def _heatmap(data: BoardData, board: Board) -> Heatmap:
    return summaries.heatmap(data, [standing.method for standing in board.standings])


def _spreads(data: BoardData, board: Board) -> tuple[Spread, ...]:
    return summaries.spreads(data, [standing.method for standing in board.standings])


def _curves(data: BoardData, board: Board) -> tuple[Curve, ...]:
    """Of the first methods: more curves than these can't be told apart."""
    return comparison.curves(data, [s.method for s in board.standings[: ecdf.MOST]])


CHARTS = {
    "correctness": Chart(
        "Correct tasks by method and category",
        lambda data, board: correctness.figure(_heatmap(data, board)),
        lambda data, board: correctness.table(_heatmap(data, board)),
    ),
    "speedups": Chart(
        "Speedup of every solved task, and the tasks without one",
        lambda data, board: speedups.figure(_spreads(data, board)),
        lambda data, board: speedups.table(_spreads(data, board)),
    ),
    "verdicts": Chart(
        "How every task ended",
        lambda data, board: verdicts.figure(_spreads(data, board)),
        lambda data, board: verdicts.table(_spreads(data, board)),
    ),
    "ecdf": Chart(
        "How many tasks reach a speedup of p (fast_p): the first five methods, with 95 % bands",
        lambda data, board: ecdf.figure(_curves(data, board)),
        lambda data, board: ecdf.table(_curves(data, board)),
    ),
    "pareto": Chart(
        "Correct share against speedup",
        lambda data, board: pareto.figure(board.standings),
        lambda data, board: pareto.table(board.standings),
    ),
}
