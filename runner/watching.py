"""How far a site's jobs are, for a terminal."""

from collections import Counter
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmark import vocabulary
from runner.models import Job


@dataclass(frozen=True)
class Tally:
    """Jobs by state, finished ones by verdict, and what is under judgement."""

    states: Counter[str]
    verdicts: Counter[str]
    current: tuple[str, ...]

    @classmethod
    def read(cls) -> Self:
        jobs = Job.objects.newest().order_by()
        running = jobs.filter(state=vocabulary.RUNNING).order_by("started_at")
        return cls(
            Counter(jobs.values_list("state", flat=True)),
            Counter(jobs.filter(run__isnull=False).values_list("run__verdict", flat=True)),
            tuple(running.values_list("candidate__task__slug", flat=True)),
        )

    @property
    def total(self) -> int:
        return self.states.total()

    @property
    def ended(self) -> int:
        return self.total - sum(self.states[state] for state in vocabulary.OPEN_JOB_STATES)

    @property
    def lost(self) -> int:
        return self.states[vocabulary.LOST]

    @property
    def is_over(self) -> bool:
        return self.ended == self.total

    def line(self) -> str:
        """`judged 12/48: 9 passed, 3 wrong-values; now relu, softmax`."""
        words = [f"{n} {verdict}" for verdict, n in self.verdicts.most_common()]
        words += [
            f"{self.states[state]} {state}"
            for state in (vocabulary.DECLINED, vocabulary.LOST, vocabulary.CANCELLED)
            if self.states[state]
        ]
        now = f"; now {', '.join(self.current)}" if self.current else ""
        said = f": {', '.join(words)}" if words else ""
        return f"judged {self.states[vocabulary.DONE]}/{self.total}{said}{now}"


def bar(console: Console) -> Progress:
    return Progress(
        BarColumn(30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
    )
