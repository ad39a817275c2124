"""Boards and answers kept in this process until results change: keyed by the board's generation,
never timed.

The generation is read before the rows, so what is kept under it is at least as new as it says.
Generation 0 is a site in which nothing was ever recorded: nothing is kept for it.
"""

import gc
from collections import OrderedDict
from functools import lru_cache
from threading import Lock

from django.http import HttpResponse

from leaderboard import summaries
from leaderboard.filters import Choice
from leaderboard.rows import Board, GpuRow
from leaderboard.selectors import board as boards
from leaderboard.selectors.board import BoardData

KEPT_BOARDS = 16  # a full one of 50 methods x 176 tasks holds about 5 MB

KEPT_ANSWERS = 128  # the largest has 300 KB, most a tenth of that


class Answers:
    """Answers as they were made, the least recently asked leaving first. What is kept for an older
    version is never asked for again.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._answers: OrderedDict[tuple[str, ...], tuple[bytes, dict[str, str]]] = OrderedDict()
        self._lock = Lock()  # threads share it

    def get(self, place: tuple[str, ...]) -> HttpResponse | None:
        with self._lock:
            if place not in self._answers:
                return None
            self._answers.move_to_end(place)
            content, headers = self._answers[place]
        return HttpResponse(content, headers=headers)

    def put(self, place: tuple[str, ...], response: HttpResponse) -> HttpResponse:
        """The answer, kept when it is a whole one that sets no cookie."""
        if response.status_code == 200 and not response.streaming and not response.cookies:
            with self._lock:
                self._answers[place] = (response.content, dict(response.headers))
                while len(self._answers) > self._limit:
                    self._answers.popitem(last=False)
        return response

    def forget(self) -> None:
        with self._lock:
            self._answers.clear()


ANSWERS = Answers(KEPT_ANSWERS)


def gpus(generation: int) -> tuple[GpuRow, ...]:
    return _gpus(generation) if generation else boards.gpus()


def board(generation: int, choice: Choice) -> tuple[BoardData, Board]:
    return _board(generation, choice) if generation else _summed(choice)


def forget() -> None:
    """For tests, whose databases begin again with the same generations."""
    _gpus.cache_clear()
    _board.cache_clear()
    ANSWERS.forget()


@lru_cache(maxsize=1)
def _gpus(generation: int) -> tuple[GpuRow, ...]:
    return boards.gpus()


@lru_cache(maxsize=KEPT_BOARDS)
def _board(generation: int, choice: Choice) -> tuple[BoardData, Board]:
    return _summed(choice)


def _summed(choice: Choice) -> tuple[BoardData, Board]:
    """Built without Python looking for garbage: it would walk over all that is kept, several times,
    and a board has no cycles to find.
    """
    gc.disable()
    try:
        data = boards.board_data(choice)
        return data, summaries.board(data)
    finally:
        gc.enable()
