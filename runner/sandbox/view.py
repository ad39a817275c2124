"""What of the host's files a candidate sees: a fresh root in which only chosen paths exist, at
their own names, read-only.

The parents of a shown path are made anew with mode 0755, so a Python under a home directory of mode
0700 works for another user without anything else of that home being in sight.
"""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from runner.sandbox import kernel

TMP = "/tmp"  # noqa: S108 - the candidate's own: a tmpfs in its mount namespace

_TOP_LEVEL = (
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
)  # links into /usr on a merged system
_SYSTEM = (
    *(
        f"/usr/{name}"
        for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "libexec", "include")
    ),
    *(f"/usr/local/{name}" for name in ("bin", "lib", "lib64", "include", "cuda", "nvidia")),
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",  # `cc` is a link through here on Debian
    "/sys",  # the CUDA driver reads topology there; read-only
)
_COVERED_PREFIXES = (
    "/",
    "/usr",
    "/usr/local",
)  # a Python installed there is among the system's paths
_DEVICES = ("null", "zero", "full", "random", "urandom")
_PACKAGES = (
    "benchmark/__init__.py",
    "benchmark/vocabulary.py",
    "benchmark/suite",
    "runner/__init__.py",
    "runner/engine",
    "runner/sandbox",
)
_BASE_SIZE = "size=4m"  # directories and empty files to mount on, nothing else
_READ_ONLY = kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV


def gpu_devices() -> tuple[Path, ...]:
    """The device nodes of NVIDIA's driver: every board's. Pass a subset to show a candidate one
    board.
    """
    return tuple(sorted(Path("/dev").glob("nvidia*")))


def shown(extra: Iterable[Path] = ()) -> dict[str, str]:
    """The existing paths that a candidate may read, outermost only, each with the real path behind
    it.

    A path that leads through a link is there under both names.
    """
    wanted = [*_SYSTEM, *_libraries(), *_python(), *_project(), *map(os.fspath, extra)]
    wanted += (path for path in _TOP_LEVEL if not os.path.islink(path))
    spellings = {name for path in wanted if os.path.exists(path) for name in _spellings(path)}
    return {path: os.path.realpath(path) for path in _outermost(spellings)}


def build(
    readable: Iterable[Path], writable: Iterable[Path], devices: Iterable[Path], tmp_bytes: int
) -> None:
    """Replace the root directory of the calling process's mount namespace by the candidate's view.

    Needs a mount namespace of its own and the right to mount in it. OSError on any failure, with
    the view half built.
    """
    read = shown(readable)
    write = {os.path.abspath(path): os.path.realpath(path) for path in writable}
    nodes = _nodes(devices)
    links = {path: os.readlink(path) for path in _TOP_LEVEL if os.path.islink(path)}
    os.umask(0o022)
    _step_aside()
    _private_tmp(tmp_bytes)
    for path, target in links.items():
        os.symlink(target, _inside(path))
    _show(read, _READ_ONLY)
    _show(write, kernel.MS_NOSUID | kernel.MS_NODEV)
    _show(nodes, kernel.MS_NOSUID | kernel.MS_NOEXEC)
    _standard_streams()
    _fresh_proc()
    _move_in()


def _python() -> list[str]:
    prefixes = {sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix}
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return [*(prefixes - set(_COVERED_PREFIXES)), *packages]


def _libraries() -> list[str]:
    """Where the loader of this host was told to look: a driver is not always among the system's."""
    told = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    return [path for path in told if os.path.isabs(path) and os.path.normpath(path) != "/"]


def _project() -> list[str]:
    root = Path(__file__).resolve().parents[2]
    return [os.fspath(root / name) for name in _PACKAGES]


def _nodes(devices: Iterable[Path]) -> dict[str, str]:
    wanted = [*(f"/dev/{name}" for name in _DEVICES), *map(os.fspath, devices)]
    return {
        os.path.abspath(path): os.path.realpath(path) for path in wanted if os.path.exists(path)
    }


def _spellings(path: str) -> set[str]:
    path, real = os.path.abspath(path), os.path.realpath(path)
    behind_link = any(os.path.islink(top) and path.startswith(f"{top}/") for top in _TOP_LEVEL)
    return {real} if behind_link else {path, real}


def _outermost(paths: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for path in sorted(paths, key=lambda path: (path.count("/"), path)):
        if not any(path.startswith(f"{parent}/") for parent in kept):
            kept.append(path)
    return kept


def _step_aside() -> None:
    """Put the host's tree under /outside and an empty root, to become the candidate's, under
    /inside.
    """
    kernel.mount(None, "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount(
        "tmpfs", TMP, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"{_BASE_SIZE},mode=755"
    )
    os.chdir(TMP)
    os.mkdir("outside")
    os.mkdir("inside")
    kernel.pivot_root(".", "outside")
    os.chdir("/")
    kernel.mount(
        "tmpfs", "/inside", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"{_BASE_SIZE},mode=755"
    )


def _private_tmp(size: int) -> None:
    """One size-capped tmpfs for /tmp and /dev/shm, the only places to write. Executable: Triton
    loads its stubs from it.
    """
    tmp = _inside(TMP)
    os.mkdir(tmp)
    options = f"size={size},nr_inodes={max(1024, size // 4096)},mode=1777"
    kernel.mount("tmpfs", tmp, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    for path, target in (
        (f"{tmp}/home", None),
        (f"{tmp}/triton", None),
        (f"{tmp}/shm", "/dev/shm"),  # noqa: S108 - the candidate's own
    ):
        os.mkdir(path)
        os.chmod(path, 0o1777)  # noqa: S103 - its owner is not known before the user changes
        if target:
            os.makedirs(_inside(target))
            kernel.bind(path, _inside(target), kernel.MS_NOSUID | kernel.MS_NODEV)


def _show(paths: dict[str, str], attributes: int) -> None:
    for path, real in paths.items():
        target = _inside(path)
        _make_mount_point(target, os.path.isdir(_outside(real)))
        kernel.bind(_outside(real), target, attributes)


def _make_mount_point(target: str, directory: bool) -> None:
    os.makedirs(target if directory else os.path.dirname(target), exist_ok=True)
    if not directory:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))


def _standard_streams() -> None:
    os.symlink("/proc/self/fd", "/inside/dev/fd")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/inside/dev/{name}")


def _fresh_proc() -> None:
    """/proc of the process's own pid namespace; without one, other users' processes are hidden
    where the kernel can.
    """
    os.mkdir("/inside/proc")
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    for options in ("hidepid=2", ""):  # kernels before 5.8 refuse the option on a second /proc
        try:
            kernel.mount("proc", "/inside/proc", "proc", flags, options)
            return
        except OSError:
            continue
    kernel.bind("/outside/proc", "/inside/proc", flags)


def _move_in() -> None:
    """Make /inside the root, drop the host's tree from sight, and close the root itself for
    writing.
    """
    os.chdir("/inside")
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")
    kernel.mount(None, "/", None, kernel.MS_REMOUNT | kernel.MS_BIND | _READ_ONLY)


def _outside(path: str) -> str:
    return f"/outside{path}"


def _inside(path: str) -> str:
    return f"/inside{path}"
