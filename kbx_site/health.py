"""For load balancers: is the process alive, is it ready to serve."""

from django.db import OperationalError, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_safe


@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers; touches nothing else."""
    return JsonResponse({"alive": True})


@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, 503 otherwise. The broker may be away: jobs wait as rows."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except OperationalError:
        return JsonResponse({"database": False}, status=503)
    return JsonResponse({"database": True})
