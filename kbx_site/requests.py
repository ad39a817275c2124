"""What is noted of every request: its id, its duration, its queries that were slow.

No address, account, query string or path goes into a log or metric: a path may hold a key by which
a password is reset, so it is the view's route that is written.
"""

import logging
import re
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, HttpResponseBase

from kbx_site import logs
from kbx_site.metrics import REQUESTS, SECONDS

access = logging.getLogger("kbx.request")
slow = logging.getLogger("kbx.slow")

PROXYS_ID = re.compile(r"[0-9A-Za-z-]{8,64}")
METHODS = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}  # others are anybody's words
PROBES = {"healthz", "readyz", "metrics"}  # asked every few seconds: not worth a line each
LONGEST_QUERY = 2000  # characters


class Noted:
    """Middleware around all that makes an answer: it measures what a visitor waits for here."""

    def __init__(self, answer: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.answer = answer

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        name = identify(request)
        token, began = logs.request_id.set(name), time.perf_counter()
        try:
            with watched_queries():
                response = self.answer(request)
            note(request, response, time.perf_counter() - began)
        finally:
            logs.request_id.reset(token)
        response["X-Request-ID"] = name
        return response


def identify(request: HttpRequest) -> str:
    """The id that our proxy gave it, so that its log and ours meet; else one of our own."""
    given = request.headers.get("X-Request-ID", "")
    return given if PROXYS_ID.fullmatch(given) else uuid.uuid4().hex


def note(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    match = request.resolver_match
    view = match.view_name if match and match.view_name else "none"
    method = request.method if request.method in METHODS else "other"
    REQUESTS.labels(view, method, response.status_code).inc()
    SECONDS.labels(view).observe(seconds)
    if view in PROBES:
        return
    facts = {
        "view": view,
        "method": method,
        "status": response.status_code,
        "ms": round(seconds * 1000, 1),
    }
    route = f"/{match.route}" if match else "(no such address)"
    said = "%s %s %s in %s ms"
    access.info(said, facts["method"], route, facts["status"], facts["ms"], extra={"facts": facts})


def watched_queries() -> AbstractContextManager[object]:
    """Around a request: tells of queries that took KBX_SLOW_QUERY_MS or longer (0: of none)."""
    limit = settings.KBX_SLOW_QUERY_MS
    return connection.execute_wrapper(SlowQueries(limit)) if limit else nullcontext()


class SlowQueries:
    """Logs a slow query as it is written, without its parameters: they may be somebody's."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            took = round((time.perf_counter() - began) * 1000, 1)
            if took >= self.limit:
                facts = {"ms": took, "sql": sql[:LONGEST_QUERY]}
                slow.warning("%s ms: %s", took, facts["sql"], extra={"facts": facts})
