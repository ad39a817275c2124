"""Logging to standard error, one line an event; messages name the job or submission by its uuid."""

import logging.config
from typing import Any

from kbx_site import env

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def settings() -> dict[str, Any]:
    level = env.word("KBX_LOG_LEVEL", "INFO", LEVELS)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "format": "{asctime} {levelname} {name} pid={process} {message}",
                "style": "{",
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
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
