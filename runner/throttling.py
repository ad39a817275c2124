"""How many uploads an hour: one count for the form and the API."""

from typing import Any

from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle

SECONDS_A_MINUTE = 60


class UploadThrottle(SimpleRateThrottle):
    """Uploads of a user, or of a visitor's address, whether they were taken or refused.

    Counted by all web processes together in production, by each for itself elsewhere.
    """

    scope = "submissions"

    num_requests: int | None

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
        if self.allow_request(request, None):  # type: ignore[arg-type]  # no view is looked at
            return ""
        minutes = int(self.wait() or 0) // SECONDS_A_MINUTE + 1
        return (
            f"More than {self.num_requests} uploads in an hour: nothing was stored. Try again in "
            f"{minutes} minutes, or send everything in one file."
        )
