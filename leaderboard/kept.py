"""Boards and answers kept in this process until results change, never timed.

Answers are keyed by the board's generation, which every change raises. Boards are made of results,
which are read again when the version of their GPU and origin has changed, and of tasks and entries,
which are read for each generation and compared.

The generation is read before the rows, so what is kept under it is at least as new as it says.
Generation 0 is a site in which nothing was ever recorded: nothing is kept for it.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from threading import Lock, RLock
from typing import Any, TypeVar

from django.http import HttpResponse

from benchmark import vocabulary
from benchmark.models import Board as State
from leaderboard import summaries
from leaderboard.derived import Derived, Latest
from leaderboard.filters import Choice
from leaderboard.rows import Board, GpuRow, Result
from leaderboard.selectors import board as boards
from leaderboard.selectors.board import BoardData, Scene

Found = TypeVar("Found")
KEPT_BOARDS = 24  # a full one of 50 methods x 176 tasks holds about 1 MB beside its results
KEPT_RESULTS = 16  # of a GPU, lane and round: 8,800 take about 4 MB

KEPT_STATES = 4
MAKERS = 64  # answers that are made at once, at most; far more than threads
KEPT_ANSWERS = 128  # the largest has 300 KB, most a tenth of that
LARGEST_ANSWER = 2**19  # bytes; a run's page is as long as its source, which strangers write


class Answers:
    """Answers as they were made, the least recently asked leaving first. What is kept for an older
    version is never asked for again.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._answers: OrderedDict[tuple[str, ...], tuple[bytes, dict[str, str]]] = OrderedDict()
        self._lock = Lock()  # threads share it
        self._makers = [RLock() for _ in range(MAKERS)]

    def made(self, place: tuple[str, ...], make: Callable[[], HttpResponse]) -> HttpResponse:
        """The kept answer or a new one. Of threads that ask for what isn't there, one makes it and
        the others wait: after a change each would make the same page, at the same time.
        """
        found = self.get(place)
        if found is None:
            with self._makers[hash(place) % MAKERS]:
                found = self.get(place) or self.put(place, make())
        return found

    def get(self, place: tuple[str, ...]) -> HttpResponse | None:
        with self._lock:
            if place not in self._answers:
                return None
            self._answers.move_to_end(place)
            content, headers = self._answers[place]
        return HttpResponse(content, headers=headers)

    def put(self, place: tuple[str, ...], response: HttpResponse) -> HttpResponse:
        """The answer, kept when it is a whole one that sets no cookie and is not huge."""
        is_whole = response.status_code == 200 and not response.streaming and not response.cookies
        if is_whole and len(response.content) <= LARGEST_ANSWER:
            with self._lock:
                self._answers[place] = (response.content, dict(response.headers))
                while len(self._answers) > self._limit:
                    self._answers.popitem(last=False)
        return response

    def forget(self) -> None:
        with self._lock:
            self._answers.clear()


ANSWERS = Answers(KEPT_ANSWERS)
OF_ONE = Answers(KEPT_ANSWERS)  # of single runs: there are too many of them to share the place

_BOARDS: Derived[tuple[BoardData, Board]] = Derived(KEPT_BOARDS)
_RESULTS: Derived[tuple[Result, ...]] = Derived(KEPT_RESULTS)
_FOUND: Derived[Any] = Derived(KEPT_RESULTS)
_LATEST: Latest[Any] = Latest()
_STATES: dict[int, State] = {}  # by generation, the newest ones


def seen() -> State:
    """The board's state, remembered: what is asked for under its generation is not asked twice."""
    found = State.seen()
    _STATES[found.generation] = found
    for older in sorted(_STATES)[:-KEPT_STATES]:
        _STATES.pop(older, None)
    return found


def gpus(generation: int) -> tuple[GpuRow, ...]:
    return _gpus(generation) if generation else boards.gpus()


def scene(generation: int) -> Scene:
    """Read once a generation; each part the former object where it is still the same."""
    return _scene(generation) if generation else boards.scene()


def board(generation: int, choice: Choice) -> tuple[BoardData, Board]:
    """Made anew where the results of its GPU and lane, tasks or entries have changed. What became
    of another GPU leaves it, and what was derived from it, as it is.
    """
    if not generation:
        data = boards.board_data(choice)
        return data, summaries.board(data)
    scene = _scene(generation)
    found = _results(_state(generation), scene, choice)
    gpu = _LATEST.of(("gpu", choice.gpu.id), choice.gpu)
    made_of = (gpu, scene.tasks, scene.methods, scene.recorded, scene.listed, found)

    def make() -> tuple[BoardData, Board]:
        data = boards.assemble(choice, scene, found)
        return data, summaries.board(data)

    return _BOARDS.get(choice.query, made_of, make)


def of_results(generation: int, gpu: GpuRow, name: str, make: Callable[[], Found]) -> Found:
    """Something else that the database says of what is measured on the GPU, as long as that is the
    same, and tasks and entries are.
    """
    if not generation:
        return make()
    found: Found = _FOUND.get((name, gpu.id), measured_on(generation, gpu), make)
    return found


def measured_on(generation: int, gpu: GpuRow) -> tuple[object, ...]:
    """Another object where the GPU, what is measured on it, tasks or entries have changed. For
    generation 0, for which nothing is kept, always.
    """
    if not generation:
        return (object(),)
    scene = _scene(generation)
    version = _version(_state(generation), gpu, vocabulary.MEASURED)
    return _LATEST.of(("gpu", gpu.id), gpu), version, scene.tasks, scene.listed


def forget() -> None:
    """For tests, whose databases begin again with the same generations."""
    _gpus.cache_clear()
    _scene.cache_clear()
    _STATES.clear()
    for kept in (_BOARDS, _RESULTS, _FOUND, _LATEST, ANSWERS, OF_ONE):
        kept.forget()


@lru_cache(maxsize=1)
def _gpus(generation: int) -> tuple[GpuRow, ...]:
    found: tuple[GpuRow, ...] = _LATEST.of("gpus", boards.gpus())
    return found


@lru_cache(maxsize=1)
def _scene(generation: int) -> Scene:
    """Each part the former object where it is still the same."""
    found = boards.scene()
    parts = {part.name: getattr(found, part.name) for part in fields(Scene)}
    return Scene(**{name: _LATEST.of(name, value) for name, value in parts.items()})


def _state(generation: int) -> State:
    """At least as new as `generation`, so what is read now is as new as its lanes say."""
    return _STATES.get(generation) or seen()


def _results(state: State, scene: Scene, choice: Choice) -> tuple[Result, ...]:
    """Of all tasks, since the categories share them."""
    gpu = choice.gpu
    return _RESULTS.get(
        (gpu.id, choice.lane, choice.round),
        (_version(state, gpu, choice.lane), scene.tasks),
        lambda: boards.results(gpu, choice.lane, choice.round, scene.digests),
    )


def _version(state: State, gpu: GpuRow, lane: str) -> object:
    """The same object as long as the lane's version is the same."""
    return _LATEST.of(("version", gpu.id, lane), (state.lane(gpu.id, lane), gpu.can_time))
