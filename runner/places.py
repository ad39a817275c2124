"""A board's place on its host: tried out, let in by the site, serving, and tried out again when
its worker died.

Nothing here waits: `Crew` lets every place take its next step a few times a second.
"""

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmark.vocabulary import BROKEN, DRAINING, GONE, REFUSED, SERVING, STARTING
from kbx_site import env
from kbx_site.celery import state_dir
from runner.judging import describe
from runner.processes import Child

if TYPE_CHECKING:
    from runner.engine import DeviceSpec

logger = logging.getLogger("kbx.worker")

TRIAL_SECONDS = 300  # a trial that takes longer hangs in the driver
RETRY_SECONDS = 60  # until a broken board is tried again
LONGEST_FAULT = 1500


@dataclass(frozen=True)
class Seat:
    """A board, the name of the worker that serves it, and how many jobs that has in hand at once;
    the interpreter may have several.
    """

    spec: "DeviceSpec"
    number: int
    jobs: int = 1

    @property
    def name(self) -> str:
        return f"{self.spec.gpu}-{self.number}"

    @property
    def device(self) -> str:
        return "cpu" if self.spec.kind == "cpu" else f"cuda:{self.spec.index}"

    @property
    def environment(self) -> dict[str, str]:
        """Of the processes at this seat. No Django: a host with boards has no database."""
        ours = {
            "KBX_DEVICE": self.device,
            "KBX_SEAT": str(self.number),
            "KBX_JOBS": str(self.jobs),
        }
        rest = {name: text for name, text in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        return rest | ours


@dataclass
class Place:
    """How a seat stands. `start` makes its worker; `child` is that, or the trial, or None."""

    seat: Seat
    start: Callable[[Seat], Child]
    state: str = STARTING
    reason: str = ""
    contract: dict[str, Any] | None = None
    child: Child | None = None
    trial_began: float | None = None
    next_trial: float = 0.0
    is_news: bool = False

    @property
    def _wants_trial(self) -> bool:
        """Broken, or not tried out since its worker ended. Else the site is asked, again and again,
        by announcements.
        """
        return self.child is None and (self.state == BROKEN or self.contract is None)

    @property
    def report(self) -> Path:
        """Where the trial leaves what it found."""
        return state_dir() / "trials" / f"{self.seat.name}.{os.getpid()}"

    @property
    def serial(self) -> str:
        return str(self.facts["serial"])

    @property
    def facts(self) -> dict[str, Any]:
        """The board, for the site."""
        return describe(self.seat.spec, self.seat.number, self.seat.jobs)

    def announcement(self) -> dict[str, Any]:
        facts = self.facts | (self.contract or {})
        if self.state == REFUSED:  # asks again: the site may have been brought up to date
            return {"device": facts, "state": STARTING, "reason": ""}
        return {"device": facts, "state": self.state, "reason": self.reason}

    def step(self) -> None:
        """What follows from how the child stands."""
        now = time.monotonic()
        if self.trial_began is not None:
            self._look_at_trial(now)
        elif self.child is not None and not self.child.is_alive:
            self._worker_ended()
        elif self._wants_trial and now >= self.next_trial:
            self._try_out(now)

    def hear(self, word: dict[str, Any]) -> None:
        """The site's word about this board."""
        if word["state"] == REFUSED:
            self._refused(str(word["reason"]), str(word["remedy"]))
        elif self.contract and self.child is None and self.state in (STARTING, REFUSED):
            logger.info("board %s: the site lets it in", self.seat.name)
            self._stand(SERVING)
            self.child = self.start(self.seat)

    def leave(self, state: str) -> None:
        """Told by `Crew` when all of it ends: draining, then gone."""
        if (state == DRAINING and self.state == SERVING) or state == GONE:
            self._stand(state)

    def _stand(self, state: str, reason: str = "") -> None:
        self.is_news = self.is_news or (state, reason) != (self.state, self.reason)
        self.state, self.reason = state, reason

    def _try_out(self, now: float) -> None:
        self.report.parent.mkdir(parents=True, exist_ok=True)
        self.report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "runner.boards", self.seat.device]
        self.child = Child(f"trial {self.seat.name}", command, self.seat.environment, self.report)
        self.trial_began = now

    def _look_at_trial(self, now: float) -> None:
        assert self.child is not None
        assert self.trial_began is not None
        if self.child.is_alive and now - self.trial_began < TRIAL_SECONDS:
            return
        hangs = self.child.is_alive
        self.child.kill_group()
        self.child = self.trial_began = None
        fault, self.contract = self._found(hangs)
        self.report.unlink(missing_ok=True)
        if fault:
            self._broken(fault, now)
        else:
            self._stand(STARTING)
            self.is_news = True  # the site must let it in

    def _found(self, hangs: bool) -> tuple[str, dict[str, Any] | None]:
        """The board's fault, or "", and the contract."""
        said = self.report.read_text(errors="replace")
        if hangs:
            return f"its trial did not end within {TRIAL_SECONDS} s", None
        try:
            found = json.loads(said.strip().rpartition("\n")[2])
            return str(found["fault"]), found["contract"]
        except (ValueError, TypeError, KeyError):
            return f"its trial died: {said.strip()[-LONGEST_FAULT:]}", None

    def _broken(self, fault: str, now: float) -> None:
        seconds = env.integer("KBX_PROBE_SECONDS", RETRY_SECONDS)
        logger.error(
            "board %s takes no jobs: %s; tried again in %d s", self.seat.name, fault, seconds
        )
        self._stand(BROKEN, fault[:LONGEST_FAULT])
        self.next_trial = now + seconds

    def _worker_ended(self) -> None:
        """It died, left because its board fails, or was told to by the site: try the board out."""
        assert self.child is not None
        self.child.kill_group()
        self.child = None
        if self.state != REFUSED:
            logger.error("worker %s ended: its board is tried out", self.seat.name)
            self._stand(STARTING)
            self.contract, self.next_trial = None, 0.0

    def _refused(self, reason: str, remedy: str) -> None:
        if (self.state, self.reason) != (REFUSED, reason):
            logger.error(
                "board %s is refused by the site: %s. Remedy: %s", self.seat.name, reason, remedy
            )
        self.state, self.reason = REFUSED, reason  # no news: the site said it
        if self.child is not None and self.trial_began is None:
            self.child.signal(signal.SIGTERM)
