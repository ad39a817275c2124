"""The warm parent: torch and triton imported, no CUDA, no threads; it forks one walled-in child per
candidate.

Run as `python -m runner.engine.nursery FD [MODULE...]`, with one end of a socket pair as FD. Holds
no secret: what it has in memory its forks have too.
"""

import gc
import os
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any, NoReturn

from runner import sandbox
from runner.engine import protocol

MAX_REQUEST = 1 << 16


@dataclass
class Nursling:
    """One forked candidate, and the cgroup around it where the host has one."""

    pid: int
    cgroup: sandbox.Cgroup | None


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
            for pid in list(self.nurslings):
                self.end(pid)

    def _answer(self, message: dict, descriptors: list[int]) -> dict:
        try:
            if message["op"] == "fork":
                return self.fork(message, descriptors)
            return self.end(message["pid"], message.get("grace", 0.0))
        except OSError as error:
            return {"ok": False, "reason": f"{type(error).__name__}: {error}"}

    @staticmethod
    def _warm() -> None:
        import runner.engine.child  # noqa: F401 - torch and triton, before the first fork
        from benchmark import suite

        suite.all_tasks()
        for name in (*WARM_MODULES, *sys.argv[2:]):
            __import__(name)
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
        self.nurslings[pid] = Nursling(pid, cgroup)
        return {"ok": True, "pid": pid, "walls": walls.to_json()}

    def end(self, pid: int, grace: float = 0.0) -> dict:
        """Kill a child and everything it started. How it ended: `status` as waitstatus_to_exitcode.

        `grace`: seconds in which it may still end by itself, for a child that closed its channel.
        """
        nursling = self.nurslings.pop(pid)
        died = ended_by_itself(pid, grace)
        sandbox.end(pid)
        _, status = os.waitpid(pid, 0)
        out_of_memory, peak = leave_cgroup(nursling.cgroup)
        return {
            "ok": True,
            "died": died,
            "status": os.waitstatus_to_exitcode(status),
            "out_of_memory": out_of_memory,
            "peak_memory": peak,
        }


def ended_by_itself(pid: int, seconds: float) -> bool:
    """Did a child end within the limit? Leaves it unreaped, so that its number can't belong to
    another process.
    """
    until = time.monotonic() + seconds
    while True:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.002)


WARM_MODULES = (
    "numpy",
    "triton.language.extra.libdevice",
    "triton.runtime.interpreter",
    "triton.testing",
    "triton.tools.tensor_descriptor",
    "torch._dynamo",  # a dispatch mode imports it on first use: 1.5 s in each child otherwise
    "torch.utils._python_dispatch",
)


def leave_cgroup(cgroup: sandbox.Cgroup | None) -> tuple[bool, int | None]:
    """Read what the cgroup counted, then remove it: (killed for memory, peak bytes)."""
    if cgroup is None:
        return False, None
    try:
        return cgroup.out_of_memory(), cgroup.peak_memory()
    finally:
        cgroup.remove()


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
    import torch
    import triton

    return {"torch": torch.__version__, "triton": triton.__version__}


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
