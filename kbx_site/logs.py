"""Logging to standard error, one line an event: words for people, JSON for a site's collector.

Messages name what they are about as `job=UUID`, `run=UUID`, `gpu=SLUG` and so on; in JSON these are
fields besides, and so is the request that a line belongs to. Standard library only: hosts with
boards log the same way, without Django.
"""

import contextvars
import json
import logging.config
import os
import re
from datetime import UTC, datetime
from typing import Any

from kbx_site import env

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("LINE", "JSON")
NAMED = re.compile(
    r"\b(job|run|attempt|submission|gpu|board|worker|host|verdict|request)=([^\s,;]+)"
)
LONGEST = 20_000  # characters of a message or trace: collectors cut or drop longer lines

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")


class JsonLines(logging.Formatter):
    """An object a line: time, level, logger, message, and what the message and request name."""

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": message[:LONGEST],
            "pid": record.process,
            **{name: value.rstrip(":.") for name, value in NAMED.findall(message)},
            **getattr(record, "facts", {}),
        }
        if request_id.get():
            entry["request"] = request_id.get()
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)[-LONGEST:]
        return json.dumps(entry, default=str)


def usual_format() -> str:
    """JSON on a public site, where a collector reads; lines where a person does."""
    production = os.environ.get("DJANGO_SETTINGS_MODULE", "").endswith(".production")
    return "JSON" if production else "LINE"


def settings() -> dict[str, Any]:
    level = env.word("KBX_LOG_LEVEL", "INFO", LEVELS)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "format": "{asctime} {levelname} {name} pid={process} {message}",
                "style": "{",
            },
            "json": {"()": "kbx_site.logs.JsonLines"},
        },
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "formatter": env.word("KBX_LOG_FORMAT", usual_format(), FORMATS).lower(),
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # Celery's own lines say "Task received / succeeded" for every heartbeat.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
        },
    }


def configure() -> None:
    logging.config.dictConfig(settings())
