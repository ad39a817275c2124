"""Calls of NVIDIA's driver that torch doesn't offer, where the driver has them."""

import ctypes
from typing import Any

NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING
# By the header cuda.h: the driver's handles are pointers, or 64 bits whatever they point to.
_CONTEXT, _EVENT, _STREAM = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
_byref, _int = ctypes.byref, int


def _load() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


_library = _load()  # before any candidate's code, which could replace what ctypes looks up


def _function(name: str, *arguments: Any) -> Any:
    """A call that returns a CUresult, or None where the driver has none of that name."""
    found: Any = getattr(_library, name, None)
    if found is not None:
        found.argtypes, found.restype = arguments, ctypes.c_int
    return found


_reset_persisting = _function("cuCtxResetPersistingL2Cache")
_primary_context = _function("cuDevicePrimaryCtxRetain", ctypes.POINTER(_CONTEXT), ctypes.c_int)
_create_event = _function("cuEventCreate", ctypes.POINTER(_EVENT), ctypes.c_uint)
_record_context = _function("cuCtxRecordEvent", _CONTEXT, _EVENT)  # since CUDA 12.5
_wait_for_event = _function("cuStreamWaitEvent", _STREAM, _EVENT, ctypes.c_uint)


def reset_persisting() -> None:
    """Free L2 lines that were asked to stay; does nothing where the driver knows no such call."""
    if _reset_persisting:
        _reset_persisting()


class Gathering:
    """Lets a stream wait on the device for whatever any stream of torch's context was given before.
    The host does not wait, and so its time is not in what an event says after it. For the process's
    first device, and once torch has begun with it.
    """

    def __init__(self) -> None:
        self._context, self._event = _CONTEXT(), _EVENT()
        self._ready = self._prepare()
        self.usable = self.wait(0)  # a driver may know a call and refuse it

    def _prepare(self) -> bool:
        if not (_primary_context and _create_event and _record_context and _wait_for_event):
            return False
        if _primary_context(_byref(self._context), 0) or not self._context.value:
            return False
        return not _create_event(_byref(self._event), NO_TIMING)

    def wait(self, stream: int) -> bool:
        """Make the stream with this handle wait; False where the driver can't or won't."""
        if not self._ready or _record_context(self._context, self._event):
            return False
        return not _wait_for_event(_int(stream), self._event, 0)
