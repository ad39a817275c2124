"""How many uploads an hour: one count for the form and the API."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

SECONDS_A_MINUTE = 60
LONGEST_TURN = 10  # seconds; a process that died in its turn blocks nobody for longer
PATIENCE = 2.0  # seconds that an upload waits for its turn to be counted
PAUSE = 0.02


class UploadThrottle(SimpleRateThrottle):
    """Uploads of a user, or of a visitor's address, whether they were taken or refused.

    Counted by all web processes together in production, by each for itself elsewhere.
    """

    scope = "submissions"

    num_requests: int | None
    is_waiting = False

    def allow_request(self, request: Any, view: Any) -> bool:
        """Counted one at a time for each account or address: two that read the same count at once
        would both go through. Who waits too long for a turn is told to come back.
        """
        if self.rate is None:
            return True
        with self._turn(self.get_cache_key(request, view)) as is_mine:
            self.is_waiting = not is_mine
            return is_mine and super().allow_request(request, view)

    def wait(self) -> float | None:
        return PATIENCE if self.is_waiting else super().wait()

    @contextmanager
    def _turn(self, key: str) -> Iterator[bool]:
        """True while nobody else counts under this key, in any process."""
        name, until = f"{key}:turn", time.monotonic() + PATIENCE
        while not self.cache.add(name, True, LONGEST_TURN):
            if time.monotonic() > until:
                yield False
                return
            time.sleep(PAUSE)
        try:
            yield True
        finally:
            self.cache.delete(name)

    def get_rate(self) -> str | None:
        """As the settings are now: DRF's own reads them once, when it is imported."""
        rate = api_settings.DEFAULT_THROTTLE_RATES[self.scope]
        return None if rate is None else str(rate)

    def get_cache_key(self, request: Any, view: Any) -> str:
        """By account, else by address: proxies' word counts only where NUM_PROXIES says so."""
        who = request.user.pk if request.user.is_authenticated else self.get_ident(request)
        return self.cache_format % {"scope": self.scope, "ident": who}

    def refusal(self, request: Any) -> str:
        """Empty when this upload may go on (it is counted); else what to tell its author."""
        if self.allow_request(request, None):
            return ""
        minutes = int(self.wait() or 0) // SECONDS_A_MINUTE + 1
        return (
            f"More than {self.num_requests} uploads in an hour: nothing was stored. Try again in "
            f"{minutes} minutes, or send everything in one file."
        )
