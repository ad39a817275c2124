"""A cgroup (version 2) per candidate: a limit on the memory of all its processes together, and one
way to end them all.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from runner.sandbox.limits import Limits

_MOUNT = Path("/sys/fs/cgroup")
_NEEDED = ("memory", "pids")
_REMOVAL_SECONDS = 5.0  # killed processes leave their cgroup a little after the call


@dataclass(frozen=True)
class Cgroup:
    """One cgroup directory. Made by `cgroup_for`, in the judge; a candidate's process joins it
    before it is walled in.
    """

    path: Path

    def join(self, pid: int = 0) -> None:
        """Move a process (0: the caller) into the group; its later children are born in it."""
        (self.path / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")

    def kill(self) -> None:
        """SIGKILL every process in the group, those included that are being born."""
        switch = self.path / "cgroup.kill"
        if switch.exists():
            switch.write_text("1\n", encoding="ascii")
            return
        for pid in self.pids():  # a kernel before 5.14
            os.kill(pid, signal.SIGKILL)

    def pids(self) -> list[int]:
        """The processes in the group now."""
        return [int(line) for line in (self.path / "cgroup.procs").read_text().split()]

    def out_of_memory(self) -> bool:
        """Whether the kernel killed a process of the group for memory."""
        events = dict(
            line.split() for line in (self.path / "memory.events").read_text().splitlines()
        )
        return int(events.get("oom_kill", "0")) > 0

    def peak_memory(self) -> int | None:
        """The most bytes that the group held at once; None where the kernel (before 5.19) does not
        say.
        """
        try:
            return int((self.path / "memory.peak").read_text())
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        """Kill what is left and delete the group. OSError when processes outlive the kill by
        seconds.
        """
        self.kill()
        deadline = time.monotonic() + _REMOVAL_SECONDS
        while True:
            try:
                return self.path.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.005)


def cgroup_for(name: str, limits: Limits) -> Cgroup:
    """Make the cgroup `kbx-<name>` with the limits set. OSError where the host has no usable cgroup
    v2 (see Walls.missing).
    """
    parent = _parent()
    _enable_controllers(parent)
    path = parent / f"kbx-{name}"
    path.mkdir()
    _set(path, "memory.max", limits.memory)
    _set(path, "pids.max", limits.processes)
    if (path / "memory.swap.max").exists():
        _set(path, "memory.swap.max", 0)
    return Cgroup(path)


def _parent() -> Path:
    """The root of the hierarchy: processes in it do not keep it from having limited children, as
    elsewhere they would.
    """
    controllers = _MOUNT / "cgroup.controllers"
    if not controllers.is_file():
        raise OSError(f"no cgroup v2 is mounted at {_MOUNT}")
    absent = set(_NEEDED) - set(controllers.read_text().split())
    if absent:
        raise OSError(f"{_MOUNT} does not offer the controllers {', '.join(sorted(absent))}")
    return _MOUNT


def _enable_controllers(parent: Path) -> None:
    control = parent / "cgroup.subtree_control"
    if set(_NEEDED) - set(control.read_text().split()):
        control.write_text(" ".join(f"+{name}" for name in _NEEDED), encoding="ascii")


def _set(path: Path, name: str, value: int) -> None:
    (path / name).write_text(f"{value}\n", encoding="ascii")
