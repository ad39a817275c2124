"""Which methods a comparison is about, out of the board that the other pages show."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from leaderboard.charts.ecdf import MOST
from leaderboard.filters import unknown
from leaderboard.rows import Board, MethodRow, Standing, Unranked


@dataclass(frozen=True, slots=True)
class Asked:
    """The methods of a URL in its order, each once. `problem`: why they make no comparison."""

    methods: tuple[MethodRow, ...]
    problem: str = ""

    @property
    def slugs(self) -> tuple[str, ...]:
        return tuple(method.slug for method in self.methods)

    @property
    def is_pair(self) -> bool:
        return len(self.methods) > 1 and not self.problem


@dataclass(frozen=True, slots=True)
class Entrant:
    """A method in a list to choose from: its place, or why it has none."""

    method: MethodRow
    standing: Standing | None
    reason: str


def read_methods(slugs: Sequence[str], known: Sequence[MethodRow]) -> Asked:
    """Raises Http404 with near misses for a slug that no listed method has; "" is no choice."""
    by_slug = {method.slug: method for method in known}
    given = [slug for slug in slugs if slug]
    for slug in given:
        if slug not in by_slug:
            raise unknown("method", slug, by_slug)
    methods = tuple(by_slug[slug] for slug in dict.fromkeys(given))
    if len(given) > 1 and len(methods) == 1:
        return Asked(methods, f"{methods[0].name} can't be compared with itself: choose another.")
    if len(methods) > MOST:
        problem = f"{len(methods)} methods are too many for one picture: choose at most {MOST}."
        return Asked(methods[:MOST], problem)
    return Asked(methods)


def entrants(board: Board) -> tuple[Entrant, ...]:
    """Every method that can be chosen: by rank, then those without one."""
    ranked = [Entrant(standing.method, standing, "") for standing in board.standings]
    return (*ranked, *(_unranked(entry) for entry in board.unranked))


def neighbours(board: Board, most: int) -> tuple[tuple[Standing, Standing], ...]:
    """Methods beside each other in the ranking, from the top: the pairs that people ask about."""
    return tuple(pairwise(board.standings[: most + 1]))


def _unranked(entry: Unranked) -> Entrant:
    return Entrant(entry.method, None, entry.reason)
