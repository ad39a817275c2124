"""Boards kept in this process until results change: keyed by the board's generation, never timed.

The generation is read before the rows, so what is kept under it is at least as new as it says.
Generation 0 is a site in which nothing was ever recorded: nothing is kept for it.
"""

from functools import lru_cache

from leaderboard import summaries
from leaderboard.filters import Choice
from leaderboard.rows import Board, GpuRow
from leaderboard.selectors import board as boards
from leaderboard.selectors.board import BoardData

KEPT_BOARDS = 16  # a full one of 50 methods x 176 tasks holds about 5 MB


def gpus(generation: int) -> tuple[GpuRow, ...]:
    return _gpus(generation) if generation else boards.gpus()


def board(generation: int, choice: Choice) -> tuple[BoardData, Board]:
    return _board(generation, choice) if generation else _summed(choice)


def forget() -> None:
    """For tests, whose databases begin again with the same generations."""
    _gpus.cache_clear()
    _board.cache_clear()


@lru_cache(maxsize=1)
def _gpus(generation: int) -> tuple[GpuRow, ...]:
    return boards.gpus()


@lru_cache(maxsize=KEPT_BOARDS)
def _board(generation: int, choice: Choice) -> tuple[BoardData, Board]:
    return _summed(choice)


def _summed(choice: Choice) -> tuple[BoardData, Board]:
    data = boards.board_data(choice)
    return data, summaries.board(data)
