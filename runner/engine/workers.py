"""The supervisor's handles on the processes that it starts: referee, nursery, and one candidate at
a time per session.
"""

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from runner.engine import protocol
from runner.engine.model import DeviceSpec, JudgeFailure, NoMemory, Options
from runner.engine.protocol import Channel

START_SECONDS = 180.0  # importing torch takes 1-5 s; a host under load takes its time
TRUSTED_MESSAGE = 64 << 20
GRACE = 1.0  # a process that closed its channel is about to end: how it ends is worth knowing
END_POLL = 0.005  # seconds
ROOT = Path(__file__).resolve().parents[2]
PASSED_ON = (
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH",
)


def environment(device: DeviceSpec) -> dict[str, str]:
    """A clean environment for our own processes: nothing of the caller's but where its libraries
    are.
    """
    found = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    found |= {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/cuda/bin",
        "HOME": "/tmp",  # noqa: S108 - nothing is read from it
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",  # its threads would start at import, before the fork
        "OMP_NUM_THREADS": str(max(1, min(4, (os.cpu_count() or 2) // 2))),
    }
    if device.kind == "cuda":
        found |= {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(device.index)}
        found |= {
            "PYTORCH_NVML_BASED_CUDA_CHECK": "1"
        }  # is_available() must not start CUDA before a fork
    elif device.kind == "compiler":
        found |= {"CUDA_VISIBLE_DEVICES": ""}
    else:
        found |= {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    return found


class Worker:
    """A long-lived process of ours that answers requests one at a time, from any thread."""

    def __init__(self, module: str, device: DeviceSpec, *arguments: str) -> None:
        ours, theirs = socket.socketpair()
        log, log_end = os.pipe()
        command = [sys.executable, "-P", "-m", module, str(theirs.fileno()), *arguments]
        self.name = module.rpartition(".")[2]
        self._process = subprocess.Popen(
            command,
            env=environment(device),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=log_end,
            stderr=log_end,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        os.close(log_end)
        self._lock = threading.Lock()
        self.channel = Channel(ours, log)

    def hello(self, seconds: float = START_SECONDS) -> dict:
        """Wait until it serves."""
        return self._guarded(lambda: self.channel.wait(time.monotonic() + seconds, TRUSTED_MESSAGE))

    def ask(self, message: dict, seconds: float = 120.0, descriptors: Sequence[int] = ()) -> dict:
        """One request; JudgeFailure when it fails, dies or is late: then it is of no more use."""
        with self._lock:
            return self._guarded(
                lambda: self.channel.ask(message, seconds, descriptors, TRUSTED_MESSAGE)
            )

    @contextlib.contextmanager
    def reserved(self) -> Any:
        """Several exchanges without another thread's in between."""
        with self._lock:
            yield self.channel

    def _guarded(self, exchange: Any) -> dict:
        try:
            reply: dict = exchange()
        except (protocol.Closed, protocol.Overdue, protocol.Malformed) as error:
            self.stop()
            what = f"{type(error).__name__.lower()} {error}".strip()
            raise JudgeFailure(
                f"the {self.name} failed ({what}): {self.channel.log_tail()[-2000:]}"
            ) from error
        if not reply.get("ok"):
            raise self.failure(reply)
        return reply

    def failure(self, reply: dict) -> JudgeFailure:
        """What it means that its reply isn't ok."""
        kind = NoMemory if reply.get("memory") else JudgeFailure
        return kind(f"the {self.name} failed: {reply.get('reason')}")

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Is the process still there?"""
        return self._process.poll() is None

    def stop(self) -> None:
        """Let it end by itself (the nursery kills its children), then make sure."""
        with contextlib.suppress(OSError):
            self.channel.sock.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # a broken board holds it for good
                self._process.wait(10)

    def close(self) -> None:
        """Stop it and close the channel."""
        self.stop()
        self.channel.close()


class Started:
    """Whoever starts processes on entering and ends them on leaving, or when it was of no use."""

    _closed = False

    def start(self) -> None:
        """Start what is missing."""
        raise NotImplementedError

    def close(self) -> None:
        """End all of them, for good."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        """Does it take nothing on any more?"""
        return self._closed


def require_walls(hello: dict, options: Options) -> None:
    """JudgeFailure where a nursery can't wall strangers' code in and nobody said to trust it."""
    if not hello["walls"]["minimum"] and not options.trust_candidates:
        missing = "; ".join(hello["missing"])
        raise JudgeFailure(
            f"this host can't wall strangers' code in: {missing}. Or pass --trust-candidates"
        )


def require_interpreter(hello: dict) -> None:
    """JudgeFailure where Triton's interpreter would fail honest kernels: before 3.7 it reads a
    number, as the bound of a `range` is, in a way that NumPy has refused since 2.4.
    """
    if _release(hello["triton"]) < (3, 7) and _release(hello["numpy"]) >= (2, 4):
        raise JudgeFailure(
            f"the interpreter of Triton {hello['triton']} fails honest kernels with NumPy "
            f"{hello['numpy']}: install triton>=3.7, or numpy<2.4"
        )


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


class SharedFile:
    """Memory that a candidate writes and the referee reads: of a fixed size that neither can
    change.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.descriptor = os.memfd_create("answers", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, size)
        fcntl.fcntl(
            self.descriptor,
            fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL,
        )

    def close(self) -> None:
        """Give the memory back."""
        os.close(self.descriptor)


class Ended(Exception):  # noqa: N818 - an event
    """The candidate's process is gone: `facts` of the nursery say how."""

    def __init__(self, facts: dict) -> None:
        super().__init__()
        self.facts = facts


class Asides(Protocol):
    """What happens to a turn while a process compiles aside."""

    def deadline(self) -> float:
        """Until when the next message must come, by time.monotonic()."""

    def begin(self) -> None:
        """It compiles now and needs no board."""

    def end(self) -> None:
        """It has compiled, and goes on when this returns."""


class Session:
    """One candidate's process, from fork to kill."""

    def __init__(
        self,
        nursery: Worker,
        device: DeviceSpec,
        options: Options,
        without: Sequence[str] = (),
        role: str = "candidate",
    ) -> None:
        self._nursery = nursery
        self.file = SharedFile(options.limits.answer)
        self.facts: dict | None = None
        ours, theirs = socket.socketpair()
        log, log_end = os.pipe()
        try:
            message = fork_message(device, options, without) | {"role": role}
            reply = nursery.ask(message, 60.0, [theirs.fileno(), log_end, self.file.descriptor])
        except JudgeFailure:
            self.file.close()
            ours.close()
            os.close(log)
            raise
        finally:
            theirs.close()
            os.close(log_end)
        self.pid, self.walls = reply["pid"], reply["walls"]
        self.channel = Channel(ours, log, options.limits.log, stranger=True)

    def start(self, seconds: float = 60.0) -> None:
        """Wait until the walls are up; JudgeFailure when they don't go up."""
        try:
            hello = self.channel.wait(time.monotonic() + seconds)
        except (protocol.Closed, protocol.Overdue, protocol.Malformed) as error:
            raise JudgeFailure(
                f"a candidate's process did not start: {self.channel.log_tail()[-2000:]}"
            ) from error
        if not hello.get("ok"):
            raise JudgeFailure(f"a candidate's process did not start: {hello.get('reason')}")

    def ask(self, message: dict, deadline: float) -> dict:
        """A challenge and its answer; raises Overdue, Malformed, or Ended when the process died."""
        reply = self._ask(message, deadline)
        if protocol.COMPILING in reply:
            raise protocol.Malformed("compiling aside was not asked for")
        return _proper(reply)

    def _ask(self, message: dict, deadline: float) -> dict:
        try:
            return self.channel.ask(message, max(0.0, deadline - time.monotonic()))
        except protocol.Closed:
            raise Ended(self.end(grace=GRACE)) from None

    def ask_aside(self, message: dict, asides: "Asides") -> dict:
        """The same for a challenge in which the process compiles aside, without the board.
        Malformed for whatever comes out of order or too often.
        """
        reply = self._ask({**message, protocol.OVERLAP: True}, asides.deadline())
        for _ in range(protocol.MAX_COMPILES):
            if protocol.COMPILING not in reply:
                return _proper(reply)
            asides.begin()
            if protocol.COMPILED not in self._next(asides.deadline()):
                raise protocol.Malformed("an answer in the middle of compiling")
            asides.end()
            self._go()
            reply = self._next(asides.deadline())
        raise protocol.Malformed(f"compiled more than {protocol.MAX_COMPILES} times in one call")

    def _next(self, deadline: float) -> dict:
        try:
            return self.channel.wait(deadline)
        except protocol.Closed:
            raise Ended(self.end(grace=GRACE)) from None

    def _go(self) -> None:
        try:
            self.channel.send_bytes(protocol.GO)
        except protocol.Closed:
            raise Ended(self.end(grace=GRACE)) from None

    def take_told(self) -> list[tuple[str, str]]:
        """What it told since the last look: words of `listening`, and what exactly."""
        told, self.channel.told = self.channel.told, []
        return told

    def end(self, grace: float = 0.0) -> dict:
        """Kill whatever is left of it after `grace` seconds; how it ended."""
        if self.facts is None:
            self.facts = {
                "status": None,
                "died": False,
                "out_of_memory": False,
                "peak_memory": None,
            }
            self.facts = self._ended(time.monotonic() + grace)
        return self.facts

    def _ended(self, kill_at: float) -> dict:
        """Asks again and again, so that the nursery is there for others meanwhile."""
        while True:
            kill = time.monotonic() >= kill_at
            reply = self._nursery.ask({"op": "end", "pid": self.pid, "kill": kill}, 60.0)
            if reply["ended"]:
                return reply
            time.sleep(END_POLL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        try:
            self.end()
        finally:
            self.channel.close()
            self.file.close()


def _proper(reply: dict) -> dict:
    if protocol.COMPILED in reply:
        raise protocol.Malformed("the end of compiling that did not begin")
    return reply


def fork_message(device: DeviceSpec, options: Options, without: Sequence[str]) -> dict:
    """What the nursery needs to fork a candidate."""
    limits = options.limits
    total = limits.load + limits.call + limits.check + limits.proof + limits.time
    return {
        "op": "fork",
        "device": device.torch_name,
        "answer_bytes": limits.answer,
        "without": list(without),
        "limits": {
            "memory": limits.memory,
            "processes": limits.processes,
            "cpu_seconds": int(total * (os.cpu_count() or 1)),
            "address_space": device.kind != "cuda",  # CUDA reserves far more addresses than memory
        },
    }


def describe_end(facts: dict) -> str:
    """How a process ended, in words."""
    status = facts.get("status")
    if not facts.get("died") or status is None:
        return "the process closed its channel without an answer"
    if status >= 0:
        return f"the process ended itself with exit code {status} instead of answering"
    with contextlib.suppress(ValueError):
        return f"the process was killed by {signal.Signals(-status).name}"
    return f"the process was killed by signal {-status}"
