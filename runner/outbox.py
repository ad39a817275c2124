"""What a host has to tell the site and must not lose: on disk until the broker has it.

An answer is written down before it is sent, and removed once it is. So a broker that is away for
hours, or a process that dies between judging and telling, costs no judgement. Telling twice does no
harm: the site records a job once.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

logger = logging.getLogger("kbx.outbox")

MOST_KEPT = 1000  # boards take no jobs while the broker is away: more than one each is a fault
KEPT_SECONDS = 7 * 24 * 3600  # by then somebody else has judged it


@dataclass(frozen=True)
class Outbox:
    """`publish(name, facts)` raises when the broker is out of reach."""

    folder: Path
    publish: Callable[[str, dict[str, Any]], None]

    def post(self, name: str, facts: dict[str, Any]) -> bool:
        """Write the message down, then send it. False: it is kept for later."""
        return self._send(self._keep(name, facts))

    def deliver(self, older_than: float = 0.0) -> int:
        """Send what was kept for that many seconds, the oldest first, until the broker is away.

        Returns how many were sent.
        """
        kept = self._kept()
        for path in kept[:-MOST_KEPT]:
            self._drop(path, f"more than {MOST_KEPT} are kept")
        sent = 0
        for path in kept[-MOST_KEPT:]:
            age = time.time() - _written(path)
            if age > KEPT_SECONDS:
                self._drop(path, f"older than {KEPT_SECONDS // 3600} hours")
            elif age >= older_than:
                if not self._send(path):
                    break
                sent += 1
        return sent

    def _kept(self) -> list[Path]:
        return sorted(self.folder.glob("*.json"))

    def _keep(self, name: str, facts: dict[str, Any]) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{time.time_ns():020d}-{uuid4().hex}.json"
        unfinished = path.with_suffix(".part")
        with unfinished.open("w") as file:
            json.dump({"name": name, "facts": facts}, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
        return path

    def _send(self, path: Path) -> bool:
        try:
            message = json.loads(path.read_text())
        except FileNotFoundError:  # somebody else of this host sent it
            return True
        try:
            self.publish(message["name"], message["facts"])
        except Exception:  # whatever a broker's library raises: it is kept
            logger.warning("%s not sent, kept in %s", message["name"], path, exc_info=True)
            return False
        path.unlink(missing_ok=True)
        return True

    def _drop(self, path: Path, why: str) -> None:
        logger.error("message to the site given up, %s: %s", why, path.name)
        path.unlink(missing_ok=True)


def _written(path: Path) -> float:
    """When, in seconds since the epoch: its name says."""
    return int(path.name.partition("-")[0]) / 1e9
