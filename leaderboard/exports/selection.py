"""Which results a file holds: the pages' query string, where no GPU means all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from benchmark.models import Board
from leaderboard.filters import Choice, read_choice
from leaderboard.rows import GpuRow
from leaderboard.selectors.board import listed_counting

ALL = "all"
NAMES = ("gpu", "category", "dtype", "difficulty", "round", "lane")


@dataclass(frozen=True, slots=True)
class Selection:
    """`choices`: a board each, of every GPU (and round) asked for. `query`: what was asked;
    `stamp`: of which state of which site it is, empty where nothing says when that changes.
    """

    generation: int
    stamp: str
    choices: tuple[Choice, ...]
    query: str

    @property
    def first(self) -> Choice | None:
        return self.choices[0] if self.choices else None


def read_selection(parameters: Mapping[str, str], gpus: Sequence[GpuRow], seen: Board) -> Selection:
    """Raises Http404 as `read_choice` does. `round=all` is every round instead of the final one."""
    asked = {name: parameters.get(name, "") for name in NAMES}
    asked = {name: value for name, value in asked.items() if value and value != ALL}
    if parameters.get("round") == ALL:
        each = [_each(asked | {"round": str(number)}, gpus) for number in _rounds()]
        choices = [choice for some in each for choice in some]
        asked["round"] = ALL
    else:
        choices = _each(asked, gpus)
    stamp = f"{seen.generation} {seen.changed_at.timestamp()}" if seen.generation else ""
    return Selection(seen.generation, stamp, tuple(choices), urlencode(sorted(asked.items())))


def _each(asked: Mapping[str, str], gpus: Sequence[GpuRow]) -> list[Choice]:
    """The choice on the GPU that is asked for, else on each."""
    first = read_choice(asked, gpus)
    if first is None:
        return []
    return [first] if "gpu" in asked else [first.on(gpu) for gpu in gpus]


def _rounds() -> list[int]:
    return sorted(set(listed_counting().values_list("round", flat=True).distinct()))
