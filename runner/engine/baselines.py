"""Is PyTorch's time what it is without the candidate? Pure rules; the clock is the caller's.

PyTorch is timed in a process of its own, but on the same board in the same minutes: what a
candidate leaves running there, or does to the board's clocks, can slow it down and so lift every
ratio. Two things tell: what this judge measured for the case before, which costs nothing; and,
where that says otherwise, or nothing while much is claimed, a second look with the candidate gone.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from runner.engine.report import CaseResult, Report

# The power limit alone moves a product of matrices by a tenth, and single blocks scatter by a few
# microseconds: what goes beyond is somebody's doing.
SLOWER, SLACK_MS = 1.25, 0.003
# A call that waits for the board in its middle takes the host's time as well: on an H200 that of
# torch.linalg.det came out between 2.6 and 4.6 ms with nobody's doing.
SLOWER_WAITING = 2.0
# Who claims to be faster than PyTorch must be so beside a PyTorch that nobody slows down. Another
# process that keeps a board busy takes half of it, and so makes twice of any speedup.
AT_STAKE = 1.0
MOST_LOOKS = 3  # cases a run


@dataclass(frozen=True)
class Alone:
    """PyTorch on a case with the candidate gone: ms, and whether its call waits for the board."""

    milliseconds: float
    waits: bool = False


Measure = Callable[[CaseResult], Alone]


class Baselines:
    """PyTorch's shortest times in ms on one board, by task digest and case."""

    def __init__(self) -> None:
        self._shortest: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def known(self, digest: str, case: str) -> float | None:
        """The shortest so far, or None for a case that was never timed here."""
        return self._shortest.get((digest, case))

    def note(self, digest: str, case: str, milliseconds: float) -> None:
        """A time to be trusted."""
        with self._lock:
            before = self._shortest.get((digest, case), milliseconds)
            self._shortest[digest, case] = min(before, milliseconds)

    def doubtful(self, report: Report) -> list[CaseResult]:
        """Cases of a timed run that deserve a second look, the most telling first."""
        timed = [row for row in report.cases if row.reference_ms]
        slower = [row for row in timed if self._is_slower(report.task_digest, row)]
        if slower:
            return sorted(slower, key=_claim, reverse=True)[:MOST_LOOKS]
        new = [row for row in timed if self.known(report.task_digest, row.case) is None]
        return sorted(new, key=_claim, reverse=True)[:1] if _is_at_stake(new) else []

    def _is_slower(self, digest: str, row: CaseResult) -> bool:
        known = self.known(digest, row.case)
        return known is not None and is_slower(row.reference_ms or 0.0, Alone(known))

    def settle(self, report: Report, doubtful: Sequence[CaseResult], measure: Measure) -> None:
        """Look again at the doubtful cases; hold the run back where PyTorch is faster by itself,
        and take note of every other time.
        """
        for row in doubtful:
            alone = measure(row)
            self.note(report.task_digest, row.case, alone.milliseconds)
            if is_slower(row.reference_ms or 0.0, alone):
                report.suspect = True
                report.add(
                    "suspect-baseline",
                    f"case {row.case}: PyTorch took {row.reference_ms:.4g} ms beside the candidate "
                    f"and {alone.milliseconds:.4g} ms once it was gone",
                    "time",
                )
        if not report.suspect:
            for row in report.cases:
                if row.reference_ms:
                    self.note(report.task_digest, row.case, row.reference_ms)


def is_slower(milliseconds: float, alone: Alone) -> bool:
    """By more than a board's own doing, or its host's?"""
    factor = SLOWER_WAITING if alone.waits else SLOWER
    return milliseconds > factor * alone.milliseconds + SLACK_MS


def _claim(row: CaseResult) -> float:
    return row.speedup or 0.0


def _is_at_stake(rows: Sequence[CaseResult]) -> bool:
    return any(_claim(row) > AT_STAKE for row in rows)
