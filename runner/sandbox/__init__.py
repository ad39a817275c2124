"""Walls around a forked process that is about to run a stranger's code. Linux, standard library
only.

In the judge: `walls = probe()`, once; refuse strangers' code unless `walls.minimum`. In each forked
child: `enter(walls, limits, room)`. To end one: `end(pid)`, and the cgroup's `remove()` where there
is one.
"""

from runner.sandbox.cgroups import Cgroup, cgroup_for
from runner.sandbox.entering import Room, SandboxError, end, enter, uid_for
from runner.sandbox.limits import Limits
from runner.sandbox.probing import probe
from runner.sandbox.view import gpu_devices
from runner.sandbox.walls import Walls

__all__ = [
    "Cgroup",
    "Limits",
    "Room",
    "SandboxError",
    "Walls",
    "cgroup_for",
    "end",
    "enter",
    "gpu_devices",
    "probe",
    "uid_for",
]
