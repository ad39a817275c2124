"""`/metrics` for Prometheus: what web processes counted, and what the database says now.

Not public: it answers who sends `Authorization: Bearer KBX_METRICS_TOKEN`, or asks from a network
of KBX_METRICS_ALLOW; everybody else gets a 404. Web processes are many, so each writes what it
counts into a file of a common folder (PROMETHEUS_MULTIPROC_DIR, set by `deploy/gunicorn.conf.py`)
and whichever is asked adds them up.
"""

import hmac
import os
from ipaddress import ip_address, ip_network

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from rest_framework.throttling import BaseThrottle

from kbx_site.gauges import SiteCollector

REQUESTS = Counter("kbx_requests", "Requests answered.", ["view", "method", "status"])
SECONDS = Histogram(
    "kbx_request_seconds",
    "From the request's arrival in the process until its answer begins.",
    ["view"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)


@require_safe
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    if not may_read(request):
        raise Http404
    counted = REGISTRY
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        counted = CollectorRegistry()
        MultiProcessCollector(counted)
    asked = CollectorRegistry()
    asked.register(SiteCollector())
    text = generate_latest(counted) + generate_latest(asked)
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST)


def may_read(request: HttpRequest) -> bool:
    token = settings.KBX_METRICS_TOKEN
    given = request.headers.get("Authorization", "")
    if token and hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        return True
    try:
        # As throttles see it: a proxy's word counts only where the site says that there is one.
        address = ip_address(BaseThrottle().get_ident(request))  # type: ignore[arg-type]  # any request
    except ValueError:  # a socket's peer has no address
        return False
    return any(address in ip_network(network) for network in settings.KBX_METRICS_ALLOW)
