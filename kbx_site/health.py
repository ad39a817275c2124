"""For load balancers: is the process alive, is it ready to serve."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from kbx_site.readiness import CHECKS


@require_safe
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; touches nothing else."""
    return JsonResponse({"alive": True})


@require_safe
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when pages can be served, 503 otherwise; each check with its reason.

    The broker may be away and tasks may wait for `sync_tasks`: both are said and leave the site
    ready, for its pages are, and submissions wait as rows.
    """
    reasons = {check: check.reason() for check in CHECKS}
    ready = not any(reason for check, reason in reasons.items() if check.needed)
    said = {check.name: reason or "ok" for check, reason in reasons.items()}
    return JsonResponse({"ready": ready, **said}, status=200 if ready else 503)
