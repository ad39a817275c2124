"""What the site's worker does while its database is away: wait, then hand the message back."""

import functools
import logging
import time
from collections.abc import Callable
from typing import Any

from celery.exceptions import Reject

from kbx_site.celery import app

logger = logging.getLogger("kbx.patience")

WAIT_SECONDS = 60.0  # then back to the broker: it must hear of a worker now and then
LONGEST_PAUSE = 5.0


def site_task(body: Callable[..., None]) -> Any:
    """`runner.<name of the function>`, a task of the site's queue.

    A message that the database can't take yet is not lost: Celery would acknowledge a task that
    raised.
    """

    @functools.wraps(body)
    def patient(**facts: Any) -> None:
        outlast(lambda: body(**facts))

    return app.task(name=f"runner.{body.__name__}")(patient)


def outlast(write: Callable[[], None]) -> None:
    """Call until the database answers; `Reject`, for the broker to give it out again, after a
    minute.
    """
    from django.db import InterfaceError, OperationalError, connections

    began, pause = time.monotonic(), 0.1
    while True:
        try:
            return write()
        except (OperationalError, InterfaceError) as error:
            logger.warning("database: %s", str(error).strip())
            connections.close_all()
            if time.monotonic() - began > WAIT_SECONDS:
                raise Reject(error, requeue=True) from error
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
