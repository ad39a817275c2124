"""Walk a forked process behind the walls. Everything here runs in the child, before any stranger's
code.

The judge's warm process forks a child that calls `enter`. With a pid namespace two more processes
come to be: the child itself stays outside and only waits, its child is the namespace's pid 1 and
only reaps, and `enter` returns in the grandchild. Killing the first kills all. What the warm
process holds in memory its forks hold too: it must hold no secret.
"""

import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from runner.sandbox import kernel, seccomp, view
from runner.sandbox.cgroups import Cgroup
from runner.sandbox.limits import Limits, set_rlimits
from runner.sandbox.walls import Walls

# above what distributions, systemd and container managers hand out; one uid per candidate
FIRST_UID = 2_000_000_000
NOBODY = 65534  # where a container maps too few users for that
NAME = "candidate"  # of its user, and of its process
_PASSED_ON = (
    "LANG",
    "LC_ALL",
    "TZ",
    "LD_LIBRARY_PATH",
    "CUDA_HOME",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "OMP_NUM_THREADS",
    "TRITON_INTERPRET",
    "TRITON_PTXAS_PATH",
    "TRITON_LIBCUDA_PATH",
)


class SandboxError(RuntimeError):
    """A wall that the probe promised did not go up. Ours, never the candidate's: nothing of it has
    run.
    """


@dataclass(frozen=True)
class Room:
    """What a candidate gets inside: extra paths to read, paths to write, device nodes, variables,
    open descriptors.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    devices: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    descriptors: tuple[int, ...] = (0, 1, 2)
    cgroup: Cgroup | None = None


def uid_for(pid: int) -> int:
    """The user that the candidate behind child `pid` becomes: its own where this host maps enough
    users, else nobody.
    """
    return FIRST_UID + pid if _is_mapped(FIRST_UID + pid) else NOBODY


def enter(walls: Walls, limits: Limits, room: Room | None = None) -> None:
    """Put up every wall of `walls` around the calling process, which must be a freshly forked,
    single-threaded child.

    Returns behind the walls, in /tmp, possibly in a grandchild (see the module). SandboxError if
    one can't be put up.
    """
    room = room or Room()
    uid, tmp = uid_for(os.getpid()), _tmp_for(os.getpid(), walls)
    _lead_a_group()
    with _wall("cgroup"):
        if room.cgroup:
            room.cgroup.join()
    with _wall("namespaces"):
        _new_namespaces(walls)
    if walls.pid:
        with _wall("pid"):
            _descend(room.descriptors)
    if walls.mount:
        with _wall("mount"):
            view.build(room.readable, room.writable, room.devices, limits.tmp)
    with _wall("environment"):
        if not walls.mount:
            _make_tmp(tmp, uid, walls)
        _clean_environment(tmp, room.environment)
        _close_other_descriptors(room.descriptors)
    with _wall("other_uid"):
        _become(uid, walls)
    with _wall("rlimits"):
        set_rlimits(limits)
    with _wall("no_new_privs"):
        _give_up_privileges(walls)
    os.chdir(tmp)


def end(pid: int) -> None:
    """SIGKILL the child `pid` that entered the sandbox, its group, and, where it had a uid to
    itself, all of that user's.

    Deletes what it left on a host without the mount wall. The caller reaps `pid` afterwards, not
    before: until then the number is not given to another process. Processes that already ended are
    fine.
    """
    for kill in (os.kill, os.killpg):
        try:
            kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    if os.getuid() == 0 and uid_for(pid) != NOBODY:
        _sweep(uid_for(pid))
    shutil.rmtree(_scratch(pid), ignore_errors=True)


@contextmanager
def _wall(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise SandboxError(f"the sandbox failed at its {name} wall: {error}") from error


def _lead_a_group() -> None:
    """A session of its own, and death with the judge."""
    if os.getpid() != os.getsid(0):
        os.setsid()
    parent = os.getppid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _new_namespaces(walls: Walls) -> None:
    if walls.user_namespace:
        _new_user_namespace()
    wanted = {
        kernel.CLONE_NEWNET: walls.network,
        kernel.CLONE_NEWNS: walls.mount,
        kernel.CLONE_NEWIPC: walls.ipc,
        kernel.CLONE_NEWPID: walls.pid,
    }
    kernel.unshare(sum(flag for flag, on in wanted.items() if on))
    _forget_host_name()


def _forget_host_name() -> None:
    """The machine gets a name for inside, where that is allowed: no wall, but none of the host's
    names.
    """
    with suppress(OSError):
        kernel.unshare(kernel.CLONE_NEWUTS)
        socket.sethostname(NAME)


def _new_user_namespace() -> None:
    """Own capabilities over own namespaces: the judge's uid outside is nobody inside."""
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(kernel.CLONE_NEWUSER)
    kernel.prctl(
        kernel.PR_SET_DUMPABLE, 1
    )  # a judge that changed its user does not own its own /proc files otherwise
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{NOBODY} {uid} 1"),
        ("gid_map", f"{NOBODY} {gid} 1"),
    ):
        Path(f"/proc/self/{name}").write_text(text, encoding="ascii")


def _descend(descriptors: tuple[int, ...]) -> None:
    """Fork into the new pid namespace, twice: pid 1 can't be killed by its own signals, so the
    candidate is not pid 1.
    """
    alive, held = os.pipe()
    init = os.fork()
    if init:
        os.close(alive)
        _stand_by(init, keep=held, relay=_die_like)
    os.close(held)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([alive], [], [], 0)[
        0
    ]:  # end of file: the keeper died before the line above could see it
        os._exit(1)
    os.close(alive)
    candidate = os.fork()
    if candidate:
        _stand_by(candidate, keep=None, relay=_exit_like)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def _stand_by(child: int, keep: int | None, relay: Callable[[int], None]) -> NoReturn:
    """Hold nothing open, reap whatever ends, and end as `child` did."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    _close_other_descriptors(() if keep is None else (keep,))
    while True:
        pid, status = os.wait()
        if pid == child:
            relay(status)
            os._exit(1)


def _exit_like(status: int) -> None:
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _die_like(status: int) -> None:
    """Exit as pid 1 did; its 128 + n says that the candidate died by signal n, so die by it."""
    code = os.waitstatus_to_exitcode(status)
    if 128 < code <= 128 + signal.NSIG and code - 128 in signal.valid_signals():
        os.kill(os.getpid(), code - 128)
    os._exit(code if code >= 0 else 128 - code)


def _scratch(pid: int) -> str:
    return os.path.join(tempfile.gettempdir(), f"kbx-candidate-{pid}")


def _tmp_for(pid: int, walls: Walls) -> str:
    """Where the candidate writes: its own /tmp, or on a host without the mount wall a directory of
    the host's.
    """
    return view.TMP if walls.mount else _scratch(pid)


def _make_tmp(tmp: str, uid: int, walls: Walls) -> None:
    """The directory for a host without the mount wall. FileExistsError rather than a stranger's
    directory.
    """
    os.mkdir(tmp, 0o700)
    for name in ("home", "triton"):
        os.mkdir(os.path.join(tmp, name), 0o700)
    if walls.other_uid:
        for path in (tmp, *(os.path.join(tmp, name) for name in ("home", "triton"))):
            os.chown(path, uid, uid)


def _clean_environment(tmp: str, extra: Mapping[str, str]) -> None:
    """Replace the environment by an allow-list and the arguments by a word, and wipe the strings of
    the old ones: they name the host's folders.
    """
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    os.environ.clear()
    os.environ.update(passed)
    os.environ.update(
        PATH="/usr/local/bin:/usr/bin:/bin",
        HOME=f"{tmp}/home",
        TMPDIR=tmp,
        USER=NAME,  # a uid without an account: getpass asks here first
        LOGNAME=NAME,
        TRITON_CACHE_DIR=f"{tmp}/triton",
        XDG_CACHE_HOME=f"{tmp}/home/.cache",
    )
    os.environ.update(extra)
    sys.argv[:] = sys.orig_argv[:] = [NAME]
    kernel.wipe_initial_strings(NAME)


def _close_other_descriptors(keep: tuple[int, ...]) -> None:
    limit = os.sysconf("SC_OPEN_MAX")
    start = 0
    for descriptor in sorted(keep):
        if (
            start < descriptor
        ):  # an empty range from 0 closes everything: CPython passes its end, -1, as unsigned
            os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, limit)


def _become(uid: int, walls: Walls) -> None:
    if walls.other_uid or walls.user_namespace:
        kernel.drop_bounding_set()
    if not walls.other_uid:
        return
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid):
        raise OSError("the user did not change")


def _give_up_privileges(walls: Walls) -> None:
    if walls.other_uid or walls.user_namespace:
        kernel.drop_capabilities()
    if walls.no_new_privs:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if walls.seccomp:
        seccomp.install()
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)  # changing the user cleared it


def _is_mapped(uid: int) -> bool:
    """Whether a uid exists in the user namespace that the caller is in."""
    lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    ranges = [(int(first), int(size)) for first, _, size in (line.split() for line in lines)]
    return any(first <= uid < first + size for first, size in ranges)


def _sweep(uid: int) -> None:
    """Kill every process of a user by becoming that user: no list of processes to race against."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
