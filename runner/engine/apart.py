"""A judge in a process of its own, for whoever judges on several boards: one interpreter passes the
tokens of one board, and never waits for the lock of one that serves another.

Both ends are ours. Run as `python -m runner.engine.apart FD`: the first message says which device
and how to judge, each later one is a request with a number, answered when it is done.
"""

import contextlib
import dataclasses
import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from runner.engine import protocol
from runner.engine.judge import Judge
from runner.engine.model import (
    BoardFailure,
    Candidate,
    Declined,
    DeviceSpec,
    JudgeFailure,
    Limits,
    Options,
)
from runner.engine.workers import ROOT

MOST_AT_ONCE = 64
LARGEST = 64 << 20  # bytes of a message
CLOSING_SECONDS = 60.0
KINDS = {"board": BoardFailure, "failed": JudgeFailure, "declined": Declined}  # the narrower first


@dataclass(frozen=True)
class Written:
    """A report that came as JSON."""

    row: dict

    def to_json(self) -> dict:
        """The report as `kbx evaluate --json` writes it."""
        return self.row


class JudgeApart:
    """Judges like `Judge`, in another process, which is started at once; enter it to wait for it.
    May be used from several threads.
    """

    def __init__(self, device: DeviceSpec, options: Options | None = None) -> None:
        self.device, self.options = device, options or Options()
        self.environment: dict = {}
        self._sock, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "runner.engine.apart", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr.fileno(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C is for the caller, who closes the other end
            )
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[dict]] = {}
        self._closed = False
        self._reader = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Self:
        try:
            how = {"device": self.device.to_json(), "options": dataclasses.asdict(self.options)}
            protocol.send(self._sock, how)
            hello, _ = protocol.receive(self._sock, LARGEST)
            self.environment = _value_of(hello)
        except (protocol.Closed, protocol.Malformed) as error:
            self.close()
            raise JudgeFailure(f"the judge of {self.device.name} did not start") from error
        except BaseException:
            self.close()
            raise
        self._reader.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the process and all that it started; judgements under way end in JudgeFailure."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._reader.ident:
            self._reader.join()
        self._sock.close()

    @property
    def closed(self) -> bool:
        """Does it take nothing on any more?"""
        return self._closed

    def tasks(self) -> list[dict]:
        """As `Judge.tasks`."""
        found: list[dict] = self._ask("tasks")
        return found

    def suite_digest(self) -> str:
        """As `Judge.suite_digest`."""
        return str(self._ask("suite_digest"))

    def task_digest(self, task: str) -> str:
        """As `Judge.task_digest`."""
        return str(self._ask("task_digest", task))

    def judge(self, candidate: Candidate) -> Written:
        """As `Judge.judge`."""
        return Written(self._ask("judge", dataclasses.asdict(candidate)))

    def _ask(self, operation: str, *about: Any) -> Any:
        number, answer = next(self._numbers), Future[dict]()
        with self._lock:
            if self._closed:
                raise JudgeFailure("the judge was closed")
            self._waiting[number] = answer
            try:
                protocol.send(self._sock, {"number": number, "op": operation, "about": about})
            except protocol.Closed as error:
                del self._waiting[number]
                raise self._gone() from error
        return _value_of(answer.result())

    def _read(self) -> None:
        try:
            while True:
                reply, _ = protocol.receive(self._sock, LARGEST)
                with self._lock:
                    answer = self._waiting.pop(reply["number"])
                answer.set_result(reply)
        except (protocol.Closed, protocol.Malformed):
            with self._lock:
                self._closed = True
                left, self._waiting = list(self._waiting.values()), {}
            for answer in left:
                answer.set_exception(self._gone())

    def _gone(self) -> JudgeFailure:
        return JudgeFailure(f"the process that judges on {self.device.name} is gone")


def _value_of(reply: dict) -> Any:
    if reply["ok"]:
        return reply["value"]
    raise KINDS.get(reply["kind"], RuntimeError)(reply["reason"])


class Served:
    """The other end: a judge, and the requests that it has in hand."""

    def __init__(self, sock: socket.socket, judge: Judge) -> None:
        self._sock = sock
        self._judge = judge
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Say hello, then answer until the caller goes; what is in hand then ends at once."""
        self._send({"ok": True, "value": self._judge.environment})
        with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
            with contextlib.suppress(protocol.Closed):
                while True:
                    message, _ = protocol.receive(self._sock, LARGEST)
                    pool.submit(self._answer, message)
            self._judge.close()

    def _answer(self, message: dict) -> None:
        operation, about = message["op"], message["about"]
        reply = _reply(lambda: self._do(operation, *about))
        with contextlib.suppress(protocol.Closed):
            self._send({"number": message["number"], **reply})

    def _do(self, operation: str, *about: Any) -> Any:
        judge = self._judge
        if operation == "judge":
            return judge.judge(Candidate(**about[0])).to_json()
        known: dict[str, Callable[..., Any]] = {
            "tasks": judge.tasks,
            "suite_digest": judge.suite_digest,
            "task_digest": judge.task_digest,
        }
        return known[operation](*about)

    def _send(self, reply: dict) -> None:
        data = protocol.encode(reply)  # outside of the lock: reports are long
        with self._lock:
            try:
                self._sock.sendall(data)
            except OSError as error:
                raise protocol.Closed(str(error)) from error


def _reply(work: Callable[[], Any]) -> dict:
    try:
        return {"ok": True, "value": work()}
    except Exception as error:  # noqa: BLE001 - the caller is told, whatever it is
        return _refusal(error)


def _refusal(error: Exception) -> dict:
    for kind, known in KINDS.items():
        if isinstance(error, known):
            return {"ok": False, "kind": kind, "reason": str(error)}
    return {"ok": False, "kind": "error", "reason": f"{type(error).__name__}: {error}"}


def read_options(found: dict) -> Options:
    """Options out of JSON."""
    limits = Limits(**found["limits"])
    return Options(**{**found, "stages": tuple(found["stages"]), "limits": limits})


def main() -> None:
    """Serve on the descriptor that the command line names."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    how, _ = protocol.receive(sock, LARGEST)
    try:
        with Judge(DeviceSpec(**how["device"]), read_options(how["options"])) as judge:
            Served(sock, judge).serve()
    except JudgeFailure as failure:  # it did not start
        with contextlib.suppress(protocol.Closed):
            protocol.send(sock, _refusal(failure))


if __name__ == "__main__":
    main()
