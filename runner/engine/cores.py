"""Cores that are kept quiet for timing while others compile. Linux, standard library only.

A busy host makes kernels read slow whose launch is most of their time. So where there are enough
cores each board has a few to itself: for the thread that passes the token, and in a time stage for
the referee and the candidate's processes. Everybody else runs on the rest.
"""

import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

QUIET = 3  # who passes the token, and the two sides
LEAST = 8  # cores a board, for keeping some of them quiet
PASSES = 3  # over threads, as new ones may start meanwhile
_CGROUPS, _PROC = Path("/sys/fs/cgroup"), Path("/proc")


@dataclass(frozen=True)
class Cores:
    """A board's own cores, and those that all boards compile on."""

    quiet: frozenset[int]
    busy: frozenset[int]


def choose(
    available: Collection[int], siblings: Mapping[int, Collection[int]], board: int, boards: int
) -> Cores | None:
    """The cores of the `board`-th of so many boards, or None where there are too few. Whole cores:
    the `siblings` of a thread of a core are kept quiet with it.
    """
    if len(available) < LEAST * boards:
        return None
    left = set(available)
    kept = []
    for _ in range(boards):
        quiet: set[int] = set()
        while len(quiet) < QUIET:
            last = max(left)
            core = left & ({last} | set(siblings.get(last, ())))
            quiet |= core
            left -= core
        kept.append(frozenset(quiet))
    return Cores(kept[board], frozenset(left))


def cores_for(board: int, boards: int) -> Cores | None:
    """The same for this process on this host. None where it may not move other users' processes."""
    if os.geteuid() != 0:
        return None
    available = os.sched_getaffinity(0)
    siblings = {core: _siblings(core) for core in available}
    return choose(available, siblings, board, max(board + 1, boards))


def _siblings(core: int) -> set[int]:
    path = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list")
    try:
        return read_list(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return set()


def read_list(text: str) -> set[int]:
    """The kernel's way to write a set of cores: "0-3,8"."""
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def move(threads: Callable[[], set[int]], cores: Collection[int]) -> None:
    """Let threads run on these cores and no others. OSError where that isn't allowed."""
    moved: set[int] = set()
    for _ in range(PASSES):
        fresh = threads() - moved
        if not fresh:
            return
        for thread in fresh:
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, cores)
        moved |= fresh


def threads_of(pid: int) -> set[int]:
    """All threads of a process and its descendants, those of its own cgroup included."""
    found = set(_in_cgroup(pid))
    waiting = [pid]
    while waiting:
        for thread in _numbers_in(_PROC / str(waiting.pop()) / "task"):
            found.add(thread)
            waiting += _children(thread)
    return found


def _numbers_in(folder: Path) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(name) for name in os.listdir(folder)]
    return []


def _children(thread: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [
            int(word) for word in (_PROC / f"{thread}/task/{thread}/children").read_text().split()
        ]
    return []


def _in_cgroup(pid: int) -> list[int]:
    """The threads in a candidate's own cgroup: nobody leaves it."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "cgroup").read_text().splitlines():
            if line.startswith("0::/kbx-"):
                folder = _CGROUPS / line.removeprefix("0::/")
                return [int(word) for word in (folder / "cgroup.threads").read_text().split()]
    return []


@contextlib.contextmanager
def this_thread_on(cores: Collection[int]) -> Iterator[None]:
    """The calling thread runs on these cores, and afterwards where it ran before."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
