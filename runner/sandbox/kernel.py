"""The kernel calls that Python 3.11 lacks: namespaces, mounts, prctl, capabilities. Each raises
OSError with its name.
"""

import ctypes
import errno
import os
import platform

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2

_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_SYS_MOUNT_SETATTR = (
    442  # one number on every architecture: the call is younger than their unification
)
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_LINUX_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns")]


class _CapabilityHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """Move the calling process (for CLONE_NEWPID: its later children) into new namespaces."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2); None for the arguments that an operation ignores."""
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(data) or None)
    _checked(result, f"mount {target}")


def bind(source: str, target: str, attributes: int) -> None:
    """Show `source` with everything mounted beneath it at `target`, with MS_RDONLY, MS_NOSUID, ...
    on all of it.
    """
    mount(source, target, None, MS_BIND | MS_REC)
    wanted = _MountAttributes(attributes, 0, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(target),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
    if (
        result < 0
    ):  # a kernel before 5.12: the top of the tree is protected, the uid protects the rest
        mount(None, target, None, MS_REMOUNT | MS_BIND | attributes)


def unmount(target: str) -> None:
    """Take a mount out of sight at once, whoever still uses it."""
    _checked(_libc.umount2(os.fsencode(target), ctypes.c_int(MNT_DETACH)), f"umount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` (a mount) the root directory and hang the old root at `old`, a directory in it."""
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root: its number is not known on {platform.machine()}")
    result = _libc.syscall(ctypes.c_long(number), os.fsencode(new), os.fsencode(old))
    _checked(result, "pivot_root")


def prctl(option: int, value: int, pointer: object = None) -> None:
    """prctl(2) with one number and, where the option takes one, a ctypes pointer."""
    last = ctypes.c_ulong(0) if pointer is None else pointer
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), last, zero, zero)
    _checked(result, f"prctl {option}")


def drop_bounding_set() -> None:
    """Make sure that no later exec can gain a capability. Needs CAP_SETPCAP: call it before the
    user changes.
    """
    for number in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if (
                error.errno == errno.EINVAL
            ):  # the kernel knows no capability of this number or above
                return
            raise


def drop_capabilities() -> None:
    """Empty the calling process's own capability sets, for good."""
    header = _CapabilityHeader(_LINUX_CAPABILITY_VERSION_3, 0)
    empty = (ctypes.c_uint32 * 6)()
    _checked(_libc.capset(ctypes.byref(header), ctypes.byref(empty)), "capset")


def wipe_initial_strings(name: str) -> None:
    """Overwrite the arguments and the environment that the process was started with: what then
    stands in /proc/self/cmdline is `name`. sys.argv and os.environ must be replaced before.

    unsetenv only forgets the pointers: the strings stay readable in the process's own memory.
    """
    with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    arguments, environment = fields[45:47], fields[47:49]  # fields 48 to 51 of proc(5)
    for (start, end), text in ((map(int, arguments), name), (map(int, environment), "")):
        if 0 < start < end:
            ctypes.memset(start, 0, end - start)
            ctypes.memmove(start, os.fsencode(text), min(len(text), end - start - 1))
