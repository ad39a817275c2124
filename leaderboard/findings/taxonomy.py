"""How candidates end, by category: correct, or the word of their verdict."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CORRECT = "correct"


@dataclass(frozen=True, slots=True)
class Ended:
    """One judged candidate: its category, its task, and `word`, "correct" or the failure's."""

    category: str
    task: int
    word: str


@dataclass(frozen=True, slots=True)
class Endings:
    """A category's judged candidates by word, and the tasks that no method solves."""

    category: str
    judged: int
    words: Mapping[str, int]
    tasks: int
    unsolved: int

    @property
    def correct(self) -> int:
        return self.words.get(CORRECT, 0)

    @property
    def failures(self) -> tuple[tuple[str, int], ...]:
        """Most common first."""
        failed = [(word, count) for word, count in self.words.items() if word != CORRECT]
        return tuple(sorted(failed, key=lambda pair: (-pair[1], pair[0])))

    def share(self, word: str) -> float:
        return self.words.get(word, 0) / self.judged if self.judged else 0.0


def endings(category: str, ended: Iterable[Ended]) -> Endings:
    ended = tuple(ended)
    tasks = {one.task for one in ended}
    solved = {one.task for one in ended if one.word == CORRECT}
    words = Counter(one.word for one in ended)
    return Endings(category, len(ended), dict(words), len(tasks), len(tasks - solved))


def words_of(rows: Iterable[Endings]) -> tuple[str, ...]:
    """Every failure's word that occurs, the most common first."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update({word: count for word, count in row.words.items() if word != CORRECT})
    return tuple(word for word, _ in sorted(total.items(), key=lambda pair: (-pair[1], pair[0])))
