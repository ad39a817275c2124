"""Where the time goes inside of a stage."""

import contextlib
import time
from collections.abc import Callable, Iterator


class Steps:
    """Seconds by the name of a step. What a step spends in another belongs to that one alone."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.seconds: dict[str, float] = {}
        self._now = now
        self._inside: list[float] = []  # of each step under way, the seconds spent in others

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count what happens inside."""
        started = self._now()
        self._inside.append(0.0)
        try:
            yield
        finally:
            took = self._now() - started
            own = took - self._inside.pop()
            self.seconds[name] = self.seconds.get(name, 0.0) + own
            if self._inside:
                self._inside[-1] += took

    def to_json(self) -> dict[str, float]:
        """Milliseconds are precise enough. The longest first."""
        longest_first = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: round(seconds, 3) for name, seconds in longest_first}
