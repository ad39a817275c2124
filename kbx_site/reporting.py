"""Errors to Sentry, where a DSN is configured: what broke and where, nothing about whom or what.

An event keeps the error's kind, the start of its message, and our own stack without variables. No
request, account, address, log line or message of Celery goes along: they may hold a candidate's
source, a key, or somebody's name.
"""

from importlib.metadata import version
from typing import Any

import sentry_sdk

KEPT = (
    *("event_id", "timestamp", "level", "logger", "platform", "release", "environment", "sdk"),
    *("exception", "transaction", "fingerprint", "contexts"),
)
CONTEXTS = ("trace", "runtime")
LONGEST = 200  # characters of an error's own words


def start(dsn: str, environment: str) -> None:
    sentry_sdk.init(
        dsn=dsn,
        environment=environment,
        release=f"kernelbench-x@{version('kernelbench-x')}",
        before_send=bare,
        before_send_transaction=lambda event, hint: None,
        send_default_pii=False,
        include_local_variables=False,
        include_source_context=False,
        max_request_body_size="never",
        max_breadcrumbs=0,
        traces_sample_rate=None,
    )


def bare(event: Any, hint: Any) -> Any:
    """The event with what is listed above and nothing else."""
    kept = {name: event[name] for name in KEPT if name in event}
    contexts = kept.get("contexts", {})
    kept["contexts"] = {name: contexts[name] for name in CONTEXTS if name in contexts}
    for error in kept.get("exception", {}).get("values", ()):
        error["value"] = str(error.get("value", ""))[:LONGEST]
    return kept
