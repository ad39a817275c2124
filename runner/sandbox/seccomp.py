"""A small system call filter: what no kernel author needs and what attacks on hosts are made of is
answered with EPERM.

The namespaces and the uid are the walls; this is a second one, against holes in the kernel that
they stand on.
"""

import ctypes
import errno
import platform
import struct

from runner.sandbox import kernel

# name: (number on x86-64, number on arm64)
_DENIED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "unshare": (272, 97),
    "setns": (308, 268),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "io_uring_setup": (425, 425),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsmount": (432, 432),
    "mount_setattr": (442, 442),
}
_CLONE, _CLONE3 = (56, 220), 435
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_X32_BIT = 0x40000000  # x86-64's second ABI: the same calls under other numbers

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_FIRST_ARGUMENT = 0, 4, 16


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def install() -> None:
    """Filter the calling process and its children for good. Needs no_new_privs; OSError where it
    can't be done.
    """
    code = program(platform.machine())
    buffer = ctypes.create_string_buffer(code, len(code))
    header = _Program(len(code) // 8, ctypes.addressof(buffer))
    kernel.prctl(kernel.PR_SET_SECCOMP, kernel.SECCOMP_MODE_FILTER, ctypes.byref(header))


def program(machine: str) -> bytes:
    """The filter as classic BPF. OSError for a machine whose system call numbers are not in the
    table.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(f"the system call numbers of {machine} are not known here")
    column, architecture = _ARCHITECTURES[machine]
    refuse = [_instruction(_RETURN, _errno(errno.EPERM))]
    lines = [
        _instruction(_LOAD, _OFFSET_ARCHITECTURE),
        _instruction(_JUMP_EQUAL, architecture, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, _OFFSET_NUMBER),
        *_when(_JUMP_ABOVE, _X32_BIT, refuse),
        # glibc falls back from clone3, whose flags lie in memory out of the filter's sight, to
        # clone
        *_when(_JUMP_EQUAL, _CLONE3, [_instruction(_RETURN, _errno(errno.ENOSYS))]),
    ]
    for numbers in _DENIED.values():
        lines += _when(_JUMP_EQUAL, numbers[column], refuse)
    new_user = [
        _instruction(_LOAD, _OFFSET_FIRST_ARGUMENT),
        *_when(_JUMP_ANY_BIT, kernel.CLONE_NEWUSER, refuse),
    ]
    lines += [*_when(_JUMP_EQUAL, _CLONE[column], new_user), _instruction(_RETURN, _ALLOW)]
    return b"".join(lines)


def _when(jump: int, value: int, then: list[bytes]) -> list[bytes]:
    return [_instruction(jump, value, 0, len(then)), *then]


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _errno(number: int) -> int:
    return 0x00050000 | number
