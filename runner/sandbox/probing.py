"""Find out which walls this host can put up, by putting each up around a throw-away child."""

import functools
import os
import shutil
import signal
import sys
from collections.abc import Callable

from runner.sandbox import kernel, seccomp
from runner.sandbox.cgroups import cgroup_for
from runner.sandbox.entering import Room, SandboxError, enter, uid_for
from runner.sandbox.limits import Limits, set_rlimits
from runner.sandbox.walls import REMEDIES, Walls

_MESSAGE_BYTES = 4096
_NAMESPACES = {
    "network": kernel.CLONE_NEWNET,
    "mount": kernel.CLONE_NEWNS,
    "ipc": kernel.CLONE_NEWIPC,
    "pid": kernel.CLONE_NEWPID,
}
# What is given up, in this order, if the walls hold one by one but not together.
_SACRIFICES: tuple[tuple[str, ...], ...] = (
    (),
    ("pid",),
    ("seccomp",),
    ("mount",),
    ("mount", "pid"),
)


@functools.cache
def probe() -> Walls:
    """The walls of this host, tried once per process. Call it while single-threaded: it forks."""
    if not sys.platform.startswith("linux"):
        return Walls(reasons={"network": f"{sys.platform} has no namespaces; the walls need Linux"})
    as_root = os.geteuid() == 0
    found = _each_wall(user_namespace=not as_root)
    if as_root and not found.network:  # root in a container without the right to make namespaces
        other = _each_wall(user_namespace=True)
        found = other if other.minimum and not found.minimum else found
    return _together(found)


def _each_wall(user_namespace: bool) -> Walls:
    walls = Walls(user_namespace=user_namespace)
    trials: dict[str, Callable[[], None]] = {
        "other_uid": _try_other_uid,
        **{
            name: functools.partial(_try_namespace, user_namespace, flag)
            for name, flag in _NAMESPACES.items()
        },
        "rlimits": functools.partial(_try_rlimits, user_namespace),
        "no_new_privs": functools.partial(kernel.prctl, kernel.PR_SET_NO_NEW_PRIVS, 1),
        "seccomp": _try_seccomp,
        "cgroup": _try_cgroup,
    }
    if user_namespace:
        trials["other_uid"] = _no_other_uid
    for name, trial in trials.items():
        reason = reason_against(trial)
        walls = walls.without(name, reason) if reason else walls.having(name)
    return walls


def _together(walls: Walls) -> Walls:
    """The largest of the tried sets of walls that also go up together; why the fuller one did not
    is kept.
    """
    reason = ""
    for left_out in _SACRIFICES:
        tried = functools.reduce(
            lambda w, name: w.without(name, f"with the others: {reason}"), left_out, walls
        )
        failure = reason_against(functools.partial(_try_all, tried))
        if failure is None:
            return tried
        reason = reason or failure
    return Walls(reasons=dict.fromkeys(REMEDIES, f"with the others: {reason}"))


def reason_against(trial: Callable[[], None]) -> str | None:
    """Run `trial` in a forked child; None if it returned, else why it did not, as one line."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _report_and_exit(trial, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        message = file.read(_MESSAGE_BYTES).decode("utf-8", "replace")
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if message == "held":
        return None
    return message or f"the trial ended with status {status} and no word"


def _report_and_exit(trial: Callable[[], None], writing: int) -> None:
    message = "the trial did not end"
    try:
        trial()
        message = "held"
    except (OSError, ValueError, SandboxError) as error:
        message = str(error) or type(error).__name__
    finally:
        os.write(writing, message.encode("utf-8", "replace")[:_MESSAGE_BYTES])
        os._exit(0)


def _try_other_uid() -> None:
    uid = uid_for(os.getpid())
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    try:
        os.setuid(0)
    except PermissionError:
        return
    raise OSError("the way back to root stays open")


def _no_other_uid() -> None:
    raise OSError("the judge is not root, so a candidate keeps its user")


def _try_namespace(user_namespace: bool, flag: int) -> None:
    kernel.unshare(flag | (kernel.CLONE_NEWUSER if user_namespace else 0))


def _try_rlimits(user_namespace: bool) -> None:
    """A limit of no further process must stop a fork."""
    if not user_namespace:
        _try_other_uid()
    set_rlimits(Limits(processes=0))
    try:
        pid = os.fork()
    except BlockingIOError:
        return
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    raise OSError("a fork went through above the limit on processes")


def _try_seccomp() -> None:
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install()
    try:
        kernel.unshare(kernel.CLONE_NEWUSER)
    except PermissionError:
        return
    raise OSError("a call that the filter forbids went through")


def _try_cgroup() -> None:
    group = cgroup_for(f"probe-{os.getpid()}", Limits())
    pid = os.fork()
    if pid == 0:
        signal.pause()
        os._exit(0)
    try:
        group.join(pid)
        group.kill()
        if os.waitpid(pid, 0)[1] != signal.SIGKILL:
            raise OSError("cgroup.kill did not end the process")
    finally:
        group.remove()


def _try_all(walls: Walls) -> None:
    """Enter, then reach what a judged kernel needs: Python's library and a place to write."""
    keep = tuple(int(name) for name in os.listdir("/proc/self/fd"))
    enter(walls, Limits(), Room(descriptors=keep))
    try:
        with open(os.__file__, "rb") as library:
            library.read(1)
    except PermissionError as error:
        raise OSError(
            f"another user can't read this Python ({error}): "
            "without the mount wall it must not lie in a private home"
        ) from error
    with open("probe", "wb") as file:
        file.write(b"x")
    if not walls.mount:
        shutil.rmtree(os.getcwd(), ignore_errors=True)
