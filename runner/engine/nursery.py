"""The warm parent: torch and triton imported, no CUDA, no threads; it forks one walled-in child per
candidate.

Run as `python -m runner.engine.nursery FD [MODULE...]`, with one end of a socket pair as FD. Holds
no secret: what it has in memory its forks have too.
"""

import contextlib
import gc
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from runner import sandbox
from runner.engine import protocol

MAX_REQUEST = 1 << 16
REMOVAL_SECONDS = 60.0  # a board may be slow to let go of a killed process


@dataclass
class Nursling:
    """One forked candidate, and the cgroup around it where the host has one."""

    pid: int
    cgroup: sandbox.Cgroup | None
    has_folder: bool  # on the host's disk, for want of a mount wall
    died: bool = False
    killed: float = 0.0  # when
    status: int | None = None

    def kill(self) -> None:
        """All of it, and don't wait. A cgroup holds every process that it started, so nobody need
        be looked for by user, which costs a fork.
        """
        self.killed = time.monotonic()
        os.kill(self.pid, signal.SIGKILL)  # it may not have joined its cgroup yet
        if self.cgroup:
            self.cgroup.kill()
        if not self.cgroup or self.has_folder:
            sandbox.end(self.pid)

    def leave(self) -> dict | None:
        """How it ended, with its cgroup removed; None while it hasn't. OSError when processes
        outlive the kill by seconds.
        """
        if self.status is None:
            reaped, status = os.waitpid(self.pid, os.WNOHANG)
            if not reaped:
                self._require_soon("a killed process doesn't end")
                return None
            self.status = os.waitstatus_to_exitcode(status)
        facts = {"died": self.died, "status": self.status}
        if self.cgroup is None:
            return {**facts, "out_of_memory": False, "peak_memory": None}
        counted = {
            "out_of_memory": self.cgroup.out_of_memory(),
            "peak_memory": self.cgroup.peak_memory(),
        }
        try:
            self.cgroup.path.rmdir()
        except OSError as error:
            self._require_soon(f"its cgroup can't be removed: {error}")
            return None
        return {**facts, **counted}

    def _require_soon(self, what: str) -> None:
        if time.monotonic() > self.killed + REMOVAL_SECONDS:
            raise TimeoutError(f"{what}, {REMOVAL_SECONDS:g} s after the kill")


class Nursery:
    """Serves the supervisor's requests: fork, end."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.walls = sandbox.probe()
        self.nurslings: dict[int, Nursling] = {}
        self._count = 0

    def serve(self) -> None:
        """Import what candidates need, say hello, then fork and end until the supervisor goes."""
        self._warm()
        protocol.send(
            self.sock,
            {
                "ok": True,
                "walls": self.walls.to_json(),
                "missing": self.walls.missing(),
                **_versions(),
            },
        )
        try:
            while True:
                message, descriptors = protocol.receive(self.sock, MAX_REQUEST)
                protocol.send(self.sock, self._answer(message, descriptors))
        except protocol.Closed:
            self._end_all()

    def _answer(self, message: dict, descriptors: list[int]) -> dict:
        try:
            if message["op"] == "fork":
                return self.fork(message, descriptors)
            return self.end(message["pid"], message["kill"])
        except OSError as error:
            return {"ok": False, "reason": f"{type(error).__name__}: {error}"}

    @staticmethod
    def _warm() -> None:
        import runner.engine.child  # noqa: F401 - torch and triton, before the first fork
        from benchmark import suite

        suite.all_tasks()
        for name in (*WARM_MODULES, *sys.argv[2:]):
            __import__(name)
        # Our packages know their folders by now; a candidate need not be told where they are.
        sys.path[:] = [path for path in sys.path if path != os.environ.get("PYTHONPATH")]
        gc.collect()
        gc.freeze()

    def fork(self, message: dict, descriptors: list[int]) -> dict:
        """Start a child on the given channel, log and shared file, without the named walls."""
        limits = sandbox.Limits(**message["limits"])
        walls = self.walls
        for name in message.get("without", ()):
            walls = walls.without(name, "left out: the device does not start behind it")
        self._count += 1
        cgroup = (
            sandbox.cgroup_for(f"{os.getpid()}-{self._count}", limits) if walls.cgroup else None
        )
        pid = os.fork()
        if pid == 0:
            become_child(message, descriptors, walls, limits, cgroup)
        for descriptor in descriptors:
            os.close(descriptor)
        self.nurslings[pid] = Nursling(pid, cgroup, has_folder=not walls.mount)
        return {"ok": True, "pid": pid, "walls": walls.to_json()}

    def end(self, pid: int, kill: bool) -> dict:
        """End a child and everything it started, a step at a time, as a board takes its time to let
        go of a process and others want to be forked meanwhile: `ended` false means ask again.
        Without `kill` it may still end by itself. How it ended: `status` as waitstatus_to_exitcode.
        """
        nursling = self.nurslings[pid]
        if not nursling.killed:
            nursling.died = has_ended(pid)
            if not (nursling.died or kill):
                return {"ok": True, "ended": False}
            nursling.kill()
        try:
            facts = nursling.leave()
        except OSError:
            del self.nurslings[pid]
            raise
        if facts is None:
            return {"ok": True, "ended": False}
        del self.nurslings[pid]
        return {"ok": True, "ended": True, **facts}

    def _end_all(self) -> None:
        for pid in list(self.nurslings):
            with contextlib.suppress(OSError):
                while not self.end(pid, kill=True)["ended"]:
                    time.sleep(0.005)


def has_ended(pid: int) -> bool:
    """Has a child ended by itself? Leaves it unreaped, so that its number can't belong to another
    process.
    """
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


WARM_MODULES = (
    "numpy",
    "triton.language.extra.libdevice",
    "triton.runtime.interpreter",
    "triton.testing",
    "triton.tools.tensor_descriptor",
    "torch._dynamo",  # a dispatch mode imports it on first use: 1.5 s in each child otherwise
    "torch.utils._python_dispatch",
)


def become_child(
    message: dict, descriptors: list[int], walls: sandbox.Walls, limits: sandbox.Limits, cgroup: Any
) -> NoReturn:
    """In the fork: redirect output to the log, put up the walls, then answer challenges. Never
    returns.
    """
    try:
        channel, log, answers = descriptors
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        room = sandbox.Room(
            devices=sandbox.gpu_devices() if message["device"].startswith("cuda") else (),
            environment={"TRITON_DEFAULT_FP_FUSION": "1"},  # its default changes with Triton 3.10
            descriptors=(0, 1, 2, channel, answers),
            cgroup=cgroup,
        )
        sock = socket.socket(fileno=channel)
        _live(message, sock, answers, walls, limits, room)
    finally:
        os._exit(70)


def _live(
    message: dict, sock: socket.socket, answers: int, walls: Any, limits: Any, room: Any
) -> None:
    try:
        sandbox.enter(walls, limits, room)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # it ends by a kill
        role = _role(message["role"])
        process = role(sock, answers, message["answer_bytes"], message["device"])
        protocol.send(sock, {"ok": True})
    except BaseException as error:
        protocol.send(sock, {"ok": False, "reason": f"{type(error).__name__}: {error}"[:4000]})
        raise
    process.serve()


def _versions() -> dict[str, str]:
    import numpy
    import torch
    import triton

    modules = {"numpy": numpy, "torch": torch, "triton": triton}
    return {name: module.__version__ for name, module in modules.items()}


def _role(name: str) -> Any:
    """What a fork is to be, by the word of the request."""
    if name == "tracer":
        from runner.engine.tracing import Tracer

        return Tracer
    if name == "builder":
        from runner.engine.building import Builder

        return Builder
    from runner.engine.child import Process

    return Process


def main() -> None:
    """Serve on the descriptor that the command line names; behind it: more modules to warm."""
    Nursery(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
