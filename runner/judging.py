"""A board's side of a job: judge what the message brings, tell the site. No Django, no database.

One process serves one board, named by KBX_DEVICE, and keeps one judge from job to job. It has one
job in hand, or several in threads (`runner.threads`).
"""

import hashlib
import logging
import os
import signal
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
from kbx_site.celery import LOADED_BY, app, state_dir
from runner.boards import fault_of
from runner.outbox import Outbox
from runner.replies import host_name

logger = logging.getLogger("kbx.judging")

HEARTBEAT_SECONDS = 5
REMEMBERED = 1000
# Long enough for a connection that broke. For a longer outage there is the outbox.
PROMPT = {"max_retries": 2, "interval_start": 0.1, "interval_step": 0.2, "interval_max": 0.5}
SUPERSEDED_SECONDS = 60  # what is said every few seconds is not worth reading later
RETURNED = "record_returned"


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
            mention("record_heartbeat", self.message, stage=stage, done=done, total=total)


class Seat:
    """This process's board and the judge on it, started when the first job comes.

    `answered` holds the identities of its last jobs, `taken` those in hand: the site sends a
    message again that seems to be gone, and none is worth judging twice. `worker` is the process to
    end when the board fails, where that isn't the parent of a pool's process.
    """

    def __init__(self) -> None:
        self.answered: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)
        self.taken: list[dict[str, Any]] = []
        self.fault = ""  # of the board, once it failed
        self.is_doubtful = False  # the judge failed since it was started
        self.judge: Any = None
        self.spec: Any = None
        self.worker: int | None = None
        self._stays: Any = None
        self._lists, self._starting = threading.Lock(), threading.RLock()

    def take(self, identity: dict[str, Any]) -> bool:
        """False where it is in hand, or was answered."""
        with self._lists:
            if identity in self.answered or identity in self.taken:
                return False
            self.taken.append(identity)
            return True

    def put_down(self, identity: dict[str, Any], is_answered: bool) -> None:
        with self._lists:
            self.taken.remove(identity)
            if is_answered:
                self.answered.append(identity)

    @property
    def device(self) -> Any:
        from runner.engine import find_devices

        with self._starting:
            if self.spec is None:
                self.spec = find_devices(env.text("KBX_DEVICE", "cpu"))[0]
            return self.spec

    def in_hand(self, sole: bool) -> AbstractContextManager[Any]:
        """Around a judgement; `sole`: beside no other. Yields what says if it `had_company`."""
        from runner.engine.turns import Turns

        with self._starting:
            self._stays = self._stays or Turns(self.device)
        stay: AbstractContextManager[Any] = self._stays.in_hand(sole)
        return stay

    def sit(self) -> Any:
        from runner.engine import Judge, Options

        with self._starting:
            if self.judge is None:
                trusting = env.flag("KBX_TRUST_CANDIDATES", False)
                self.judge = Judge(self.device, Options(trust_candidates=trusting)).__enter__()
            return self.judge

    def leave(self) -> None:
        """End the judge; the next job starts another."""
        judge, self.judge = self.judge, None
        self.is_doubtful = False
        if judge is not None:
            judge.__exit__(None, None, None)


seat = Seat()


def describe(spec: Any, seat: int | None = None, jobs: int | None = None) -> dict[str, Any]:
    """The board as the site knows it: product, serial (never the UUID itself), host, and how many
    jobs it has in hand at once. Interpreters are told apart by their seat. Both by default this
    process's.

    The rest is for a site that meets this product for the first time; memory is in bytes.
    """
    if seat is None:
        seat = env.integer("KBX_SEAT", 0, least=0)
    return {
        "gpu": spec.gpu,
        "serial": spec.uuid_hash or f"{spec.kind}:{seat}",
        "host": host_name(),
        "name": spec.name,
        "architecture": spec.architecture,
        "memory": spec.memory,
        "jobs": env.integer("KBX_JOBS", 1) if jobs is None else jobs,
    }


def judge_job(raw: Mapping[str, Any]) -> None:
    """Judge one job and report. What goes wrong on our side is told to the site as a failure; a
    board that doesn't work any more gives the job back and leaves the queue.
    """
    message = Message.read(raw)
    if not seat.take(message.identity):
        logger.info("job=%s attempt=%s came again", message.job, message.attempt)
        return
    is_answered = False
    try:
        logger.info("job=%s attempt=%s task=%s begun", message.job, message.attempt, message.task)
        answer, facts = _judged(message)
        logger.info("job=%s attempt=%s ended: %s", message.job, message.attempt, answer)
        outbox().post(answer, {**message.identity, **facts})
        is_answered = True
    finally:
        seat.put_down(message.identity, is_answered)
    if seat.fault:
        _leave_the_queue(seat.fault)


def give_up(raw: Mapping[str, Any], reason: str) -> None:
    """Tell the site of a job whose judgement hangs, from beside it: a failure of ours."""
    outbox().post("record_failure", {**Message.read(raw).identity, "reason": reason})


def _judged(message: Message) -> tuple[str, dict[str, Any]]:
    """What to tell the site, whatever happens."""
    if seat.fault:  # a worker that ends may have fetched one more
        return _returned()
    try:
        mention("record_started", message, device=describe(seat.device))
        with Heart(message) as heart:
            answer = _tried(message, heart)
            while answer is None:  # once: by itself it has no company
                answer = _tried(message, heart, sole=True)
            return answer
    except Exception as error:
        logger.exception("job=%s attempt=%s failed", message.job, message.attempt)
        return _failed(error)


def _tried(message: Message, heart: Heart, sole: bool = False) -> tuple[str, dict[str, Any]] | None:
    """None where we failed at several at once: nobody is charged for that before it was judged by
    itself, and not with the judge that failed.
    """
    with seat.in_hand(sole) as stay:
        if sole and seat.is_doubtful and not seat.fault:
            end_judge()
            seat.fault = _fault_of_board()
        if seat.fault:  # or it was found for another job, while this one waited
            return _returned()
        try:
            return _answer(message, heart)
        except Exception as error:
            logger.exception("job=%s attempt=%s failed", message.job, message.attempt)
            seat.is_doubtful = True
            if stay.had_company and not _is_of_board(error):
                return None
            return _failed(error)


def _is_of_board(error: Exception) -> bool:
    from runner.engine import BoardFailure

    return bool(seat.fault) or isinstance(error, BoardFailure)


def _failed(error: Exception) -> tuple[str, dict[str, Any]]:
    """Our failure at this job, or the board's, which is none of the job's. Ends the judge, and with
    that whatever else is in hand where the board failed.
    """
    if not seat.fault and _is_of_board(error):
        seat.fault = str(error)
    end_judge()
    seat.fault = seat.fault or _fault_of_board()
    if seat.fault:
        return _returned()
    return "record_failure", {"reason": f"{type(error).__name__}: {error}"}


def _returned() -> tuple[str, dict[str, Any]]:
    return RETURNED, {"reason": f"the board failed: {seat.fault}"}


def _fault_of_board() -> str:
    try:
        return fault_of(seat.device)
    except ValueError as gone:  # nvidia-smi doesn't list it
        return str(gone)


def _leave_the_queue(reason: str) -> None:
    """End this process's worker, warm: it takes no more, gives back what it has fetched, and `kbx
    worker` tries the board out before it starts another.
    """
    logger.error("leaving the queue: %s", reason)
    if seat.worker is not None:
        os.kill(seat.worker, signal.SIGTERM)
    elif os.getpid() != LOADED_BY:
        os.kill(os.getppid(), signal.SIGTERM)


def damage(message: Message) -> str | None:
    """What is wrong with the message itself."""
    if len(message.source.encode()) > vocabulary.MAX_SOURCE_BYTES:
        return f"the source is larger than {vocabulary.MAX_SOURCE_BYTES} bytes"
    if hashlib.sha256(message.source.encode()).hexdigest() != message.source_sha256:
        return "the source is not the one that the message's SHA-256 names"
    return None


def difference(message: Message) -> str | None:
    """Why another host must judge the job: this one has another contract of its task."""
    from benchmark import suite

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
    from runner.engine import Candidate, Declined

    if reason := damage(message):
        return "record_failure", {"reason": reason}
    if reason := difference(message):
        return RETURNED, {"reason": reason}
    candidate = Candidate(
        task=message.task, source=message.source, round=message.round, name=f"{message.task}.py"
    )
    try:
        report = seat.sit().judge(candidate, progress=heart.note)
    except Declined as error:
        return "record_declined", {"reason": str(error)}
    return "record_report", {"device": describe(seat.device), "report": report.to_json()}


def end_judge() -> None:
    """The next job, if any, starts another."""
    try:
        seat.leave()
    except Exception:  # a judge that can't even end is replaced all the same
        logger.warning("the judge did not end cleanly", exc_info=True)


def outbox() -> Outbox:
    return Outbox(state_dir() / "outbox", publish)


def mention(name: str, message: Message, **facts: Any) -> None:
    """Tell the site what it can do without: how far a job is."""
    try:
        publish(name, {**message.identity, **facts}, expires=SUPERSEDED_SECONDS)
    except Exception:  # whatever a broker's library raises: the judgement goes on
        logger.warning("job=%s %s not sent", message.job, name, exc_info=True)


def publish(name: str, facts: dict[str, Any], expires: float | None = None) -> None:
    """Send a `runner.<name>` message to the site; raises when the broker is out of reach.

    After `expires` seconds it is superseded: a site that is behind passes over it.
    """
    app.send_task(f"runner.{name}", kwargs=facts, retry_policy=PROMPT, expires=expires)


@worker_process_shutdown.connect
def on_worker_process_shutdown(**_: Any) -> None:
    end_judge()
