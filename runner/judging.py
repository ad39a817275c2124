"""A board's side of a job: judge what the message brings, tell the site. No Django, no database.

One process serves one board, named by KBX_DEVICE, and keeps one judge from job to job.
"""

import hashlib
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from celery.signals import worker_process_shutdown

from benchmark import vocabulary
from kbx_site import env
from kbx_site.celery import app

logger = logging.getLogger("kbx.judging")

HEARTBEAT_SECONDS = 5
REMEMBERED = 1000
# What was found on a board took minutes to find: outlast a broker that restarts.
PERSISTENT = {"max_retries": 60, "interval_start": 0.2, "interval_step": 1, "interval_max": 10}


@dataclass(frozen=True)
class Message:
    """A job as it came over the broker."""

    job: str
    attempt: int
    task: str
    task_digest: str
    round: int
    source: str
    source_sha256: str
    time_limit: int

    @classmethod
    def read(cls, message: Mapping[str, Any]) -> "Message":
        return cls(**{name: message[name] for name in cls.__dataclass_fields__})

    @property
    def identity(self) -> dict[str, Any]:
        return {"job": self.job, "attempt": self.attempt}


@dataclass
class Heart(AbstractContextManager["Heart"]):
    """Tells the site, every few seconds, that a job is under judgement and how far it is."""

    message: Message
    beat: threading.Event = field(default_factory=threading.Event)
    progress: tuple[str, int, int] = ("", 0, 0)

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=self._run, name="heart", daemon=True)
        self.thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.beat.set()
        self.thread.join()

    def note(self, stage: str, done: int, total: int) -> None:
        """The judge's progress callback."""
        self.progress = (stage, done, total)

    def _run(self) -> None:
        seconds = env.integer("KBX_HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)
        while not self.beat.wait(seconds):
            stage, done, total = self.progress
            try:
                tell("record_heartbeat", self.message, stage=stage, done=done, total=total)
            except Exception:  # a missed beat must not end the judgement
                logger.warning("job=%s heartbeat not sent", self.message.job, exc_info=True)


class Seat:
    """This process's board and the judge on it, started when the first job comes.

    `answered` holds the identities of its last jobs: the site sends a message again that seems to
    be gone, and none is worth judging twice.
    """

    def __init__(self) -> None:
        self.answered: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        self.judge: Any = None
        self.spec: Any = None

    @property
    def device(self) -> Any:
        from runner.engine import find_devices

        if self.spec is None:
            self.spec = find_devices(env.text("KBX_DEVICE", "cpu"))[0]
        return self.spec

    def sit(self) -> Any:
        from runner.engine import Judge, Options

        if self.judge is None:
            trusting = env.flag("KBX_TRUST_CANDIDATES", False)
            self.judge = Judge(self.device, Options(trust_candidates=trusting)).__enter__()
        return self.judge

    def leave(self) -> None:
        """End the judge; the next job starts another."""
        judge, self.judge = self.judge, None
        if judge is not None:
            judge.__exit__(None, None, None)


seat = Seat()


def describe(spec: Any) -> dict[str, Any]:
    """The board as the site knows it: product, serial (never the UUID itself), host.

    The rest is for a site that meets this product for the first time; memory is in bytes.
    """
    return {
        "gpu": spec.gpu,
        "serial": spec.uuid_hash or f"{spec.kind}:{spec.index}",
        "host": os.environ.get("KBX_HOST_NAME") or socket.gethostname(),
        "name": spec.name,
        "architecture": spec.architecture,
        "memory": spec.memory,
    }


def judge_job(raw: Mapping[str, Any]) -> None:
    """Judge one job and report. What goes wrong on our side is told to the site as a failure."""
    message = Message.read(raw)
    if message.identity in seat.answered:
        logger.info("job=%s attempt=%s came again", message.job, message.attempt)
        return
    try:
        tell("record_started", message, device=describe(seat.device))
        with Heart(message) as heart:
            answer, facts = _answer(message, heart)
        tell(answer, message, **facts)
    except Exception as error:
        logger.exception("job=%s attempt=%s failed", message.job, message.attempt)
        _restart_judge()
        tell("record_failure", message, reason=f"{type(error).__name__}: {error}")
    seat.answered.append(message.identity)


def refusal(message: Message) -> str | None:
    """Why this host must not judge the job: it is damaged, or about another contract."""
    from benchmark import suite

    if len(message.source.encode()) > vocabulary.MAX_SOURCE_BYTES:
        return f"the source is larger than {vocabulary.MAX_SOURCE_BYTES} bytes"
    if hashlib.sha256(message.source.encode()).hexdigest() != message.source_sha256:
        return "the source is not the one that the message's SHA-256 names"
    try:
        task = suite.get(message.task)
    except suite.UnknownTask as error:
        return f"{error}: bring this host and the site to the same version of KernelBench-X"
    if task.digest != message.task_digest:
        return (
            f"this host's contract of {message.task} is {task.digest[:12]}, the site's is "
            f"{message.task_digest[:12]}: bring both to the same version and run sync_tasks"
        )
    return None


def _answer(message: Message, heart: Heart) -> tuple[str, dict[str, Any]]:
    """What to tell the site about this job, and with which facts."""
    from runner.engine import Candidate, Declined, JudgeFailure

    reason = refusal(message)
    if reason is not None:
        return "record_failure", {"reason": reason}
    candidate = Candidate(
        task=message.task, source=message.source, round=message.round, name=f"{message.task}.py"
    )
    try:
        report = seat.sit().judge(candidate, progress=heart.note)
    except Declined as error:
        return "record_declined", {"reason": str(error)}
    except JudgeFailure as error:
        logger.exception("job=%s attempt=%s judge failed", message.job, message.attempt)
        _restart_judge()
        return "record_failure", {"reason": str(error)}
    return "record_report", {"device": describe(seat.device), "report": report.to_json()}


def _restart_judge() -> None:
    try:
        seat.leave()
    except Exception:  # a judge that can't even end is replaced all the same
        logger.warning("the judge did not end cleanly", exc_info=True)


def tell(name: str, message: Message, **facts: Any) -> None:
    """Send a `runner.<name>` message about this job to the site."""
    publish(name, {**message.identity, **facts})


def publish(name: str, facts: dict[str, Any]) -> None:
    app.send_task(f"runner.{name}", kwargs=facts, retry_policy=PERSISTENT)


def announce(spec: Any) -> None:
    """Tell the site that this board is here, busy or not."""
    publish("record_board", {"device": describe(spec)})


@worker_process_shutdown.connect
def on_worker_process_shutdown(**_: Any) -> None:
    _restart_judge()
