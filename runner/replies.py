"""The site's word to a host, over the broker: whether its boards may judge.

A host reads a queue of its own, which is named after it and goes when nobody reads it any more.
"""

import contextlib
import logging
import os
import re
import socket
import time
from dataclasses import dataclass, field
from queue import Empty
from typing import Any
from uuid import uuid4

from kombu import Connection
from kombu.simple import SimpleQueue

from kbx_site.celery import app

logger = logging.getLogger("kbx.replies")

UNREAD_SECONDS = 600  # RabbitMQ removes the queue of a host that has gone
PAUSE_SECONDS = 5  # between two tries while the broker is away
NAME = re.compile(r"replies\.[A-Za-z0-9.-]{1,150}")


def host_name() -> str:
    """How the site calls this host."""
    return os.environ.get("KBX_HOST_NAME") or socket.gethostname()


def _open(connection: Connection, name: str) -> SimpleQueue:
    return connection.SimpleQueue(
        name,
        no_ack=True,
        queue_opts={"expires": UNREAD_SECONDS},
        exchange_opts={"auto_delete": True},
    )


def reply(to: str, word: dict[str, Any]) -> None:
    """Put it into the queue of that name; nothing when the name is none of a host's."""
    if not NAME.fullmatch(to):
        logger.warning("no reply to %r: not the name of a host's queue", to[:200])
        return
    with app.connection_for_write() as connection, _open(connection, to) as queue:
        queue.put(word)


@dataclass
class Mailbox:
    """This process's queue of replies; `word` in each question tells old replies from new ones."""

    word: str = field(default_factory=lambda: uuid4().hex)
    connection: Connection | None = None
    queue: SimpleQueue | None = None
    asked_again_at: float = 0.0

    @property
    def name(self) -> str:
        host = re.sub(r"[^A-Za-z0-9.-]", "-", host_name())[:100]
        return f"replies.{host}.{os.getpid()}"

    @property
    def address(self) -> dict[str, str]:
        """What a question carries, for the reply to find back."""
        return {"to": self.name, "word": self.word}

    def read(self) -> list[dict[str, Any]]:
        """The replies that have come, the oldest first; none while the broker is away."""
        found: list[dict[str, Any]] = []
        if time.monotonic() < self.asked_again_at:
            return found
        try:
            if self.queue is None:
                self.connection = app.connection_for_read()
                self.queue = _open(self.connection, self.name)
            while True:
                found.append(self.queue.get(block=False).payload)
        except Empty:
            pass
        except Exception:  # whatever a broker's library raises: asked again the next time
            logger.warning("replies can't be read", exc_info=True)
            self.asked_again_at = time.monotonic() + PAUSE_SECONDS
            self.close()
        return [said for said in found if said.get("word") == self.word]

    def close(self) -> None:
        connection, self.connection, self.queue = self.connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):  # it may be broken: then there is nothing to end
                connection.release()
