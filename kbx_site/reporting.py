"""Errors to Sentry, where a DSN is configured: what broke and where, nothing about whom or what.

An event keeps the error's kind, the start of its message, our own stack without variables, and of a
log line the words without what was filled in. No request, account, address or message of Celery
goes along: they may hold a candidate's source, a key, or somebody's name. Errors are those that are
logged as such, so no framework has to be hooked into: Django and Celery log what they catch.
"""

from importlib.metadata import version
from typing import Any

import sentry_sdk

KEPT = (
    *("event_id", "timestamp", "level", "logger", "platform", "release", "environment", "sdk"),
    *("exception", "logentry", "fingerprint", "contexts"),
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
        auto_enabling_integrations=False,
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
    if words := kept.pop("logentry", {}).get("message"):
        kept["logentry"] = {"message": words[:LONGEST]}
    for error in kept.get("exception", {}).get("values", ()):
        error["value"] = str(error.get("value", ""))[:LONGEST]
    return kept
