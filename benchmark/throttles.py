"""How often an account or an address may ask. A module of its own: DRF's views import it."""

from typing import Any

from django.core.cache import caches
from rest_framework.settings import api_settings
from rest_framework.throttling import SimpleRateThrottle


class ReadThrottle(SimpleRateThrottle):
    """Requests of an account, or of a visitor's address. Counted in each web process."""

    scope = "reads"
    cache = caches["memory"]  # reading must not write to the database

    def get_rate(self) -> str | None:
        """As the settings are now: DRF's own reads them once, when it is imported."""
        rate = api_settings.DEFAULT_THROTTLE_RATES.get(self.scope)
        return None if rate is None else str(rate)

    def get_cache_key(self, request: Any, view: Any) -> str:
        who = request.user.pk if request.user.is_authenticated else self.get_ident(request)
        return self.cache_format % {"scope": self.scope, "ident": who}


class ExportThrottle(ReadThrottle):
    """Files that have to be made: what was made before is sent without being counted."""

    scope = "exports"
