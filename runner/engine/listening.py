"""In the candidate's process: what its code asks of the interpreter and of torch that no kernel
needs, told to the supervisor before it happens.

Python's audit hooks can't be taken away again. A word is told once and can't be taken back: it has
left the process when the code that it is about goes on. What can be read this way is a tripwire, no
wall: the walls are around the process.
"""

import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch._dispatch.python

from runner.engine.witness import known_operators

Tell = Callable[[str, str], None]  # a word of `words`, and what exactly

FRAMES, MEMORY, PROCESSES, NATIVE, TRACING, CODE, SIGNALS, LIBRARY, SOCKETS, STORAGE = (
    "frames",
    "memory",
    "processes",
    "native-code",
    "tracing",
    "code-objects",
    "signals",
    "other-library",
    "sockets",
    "storage",
)
BLIND = "blind"  # the judge's own eyes were to be closed

EVENTS = {
    "sys._getframe": FRAMES,
    "sys._current_frames": FRAMES,
    "gc.get_objects": MEMORY,
    "gc.get_referrers": MEMORY,
    "gc.get_referents": MEMORY,
    "os.fork": PROCESSES,
    "os.forkpty": PROCESSES,
    "os.exec": PROCESSES,
    "os.posix_spawn": PROCESSES,
    "os.system": PROCESSES,
    "subprocess.Popen": PROCESSES,
    "pty.spawn": PROCESSES,
    "ctypes.dlopen": NATIVE,
    "ctypes.dlsym": NATIVE,
    "ctypes.dlsym/handle": NATIVE,
    "ctypes.call_function": NATIVE,
    "ctypes.cdata": NATIVE,
    "ctypes.cdata/buffer": NATIVE,
    "ctypes.string_at": NATIVE,
    "sys.settrace": TRACING,
    "sys.addaudithook": TRACING,
    "sys.setprofile": TRACING,
    "sys.monitoring.register_callback": TRACING,
    "code.__new__": CODE,
    "object.__setattr__": CODE,
    "os.kill": SIGNALS,
    "os.killpg": SIGNALS,
    "signal.pthread_kill": SIGNALS,
    "socket.__new__": SOCKETS,
}
FRAME_NAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
LIBRARIES = frozenset(
    {
        "cupy",
        "numba",
        "jax",
        "tensorflow",
        "cffi",
        "pycuda",
        "nvmath",
        "cutlass",
        "scipy",
        "onnxruntime",
    }
)
FRAME_WALKERS = frozenset({"walk_tb", "walk_stack"})
LOADERS = (
    "/torch/_inductor/",
    "/torch/_ops.py",
    "/torch/_classes.py",
    "/numpy/ctypeslib",
    "/triton/runtime/build.py",
    "/torch/cuda/_utils.py",  # compiles and launches CUDA's own language
)

# Each of these takes work out of a mode's sight, or hands out the mode itself.
BLINDERS = (
    (torch._C, "_DisableTorchDispatch"),
    (torch._C, "_ExcludeDispatchKeyGuard"),
    (torch._C, "ExcludeDispatchKeyGuard"),
    (torch._C, "_SetExcludeDispatchKeyGuard"),
    (torch._C, "_ForceDispatchKeyGuard"),
    (torch._C, "_pop_torch_dispatch_stack"),
    (torch._C, "_unset_dispatch_mode"),
    (torch._C, "_set_dispatch_mode"),
    (torch._C, "_dispatch_tls_set_dispatch_key_excluded"),
    (torch._C, "_dispatch_tls_set_dispatch_key_included"),
    (torch._C, "DisableTorchFunction"),
    (torch._C, "_pop_torch_function_stack"),
    (torch._C._autograd, "_disable_profiler_legacy"),
    (torch._C._autograd, "_enable_profiler_legacy"),
    (torch.utils._python_dispatch, "_disable_current_modes"),
    (torch.utils._python_dispatch, "_pop_mode"),
    (torch.utils._python_dispatch, "_pop_mode_temporarily"),
    (torch.utils._python_dispatch, "_get_current_dispatch_mode"),
    (torch.utils._python_dispatch, "_get_current_dispatch_mode_stack"),
    (torch.utils._python_dispatch, "_get_dispatch_stack_at"),
    (torch._C, "_get_dispatch_stack_at"),
    (torch.overrides, "_pop_mode"),
    (torch.overrides, "_pop_mode_temporarily"),
    (torch.overrides, "_pop_torch_function_stack"),
    (torch.overrides, "_get_current_function_mode"),
    (torch.overrides, "_get_current_function_mode_stack"),
    (torch.overrides, "_get_function_stack_at"),
    (torch._C, "_get_function_stack_at"),
    (torch._C, "_EnablePythonDispatcher"),
    (torch._dispatch.python, "enable_python_dispatcher"),
    (torch._ops.OpOverload, "redispatch"),
    (torch._C._DispatchOperatorHandle, "redispatch_boxed"),
    (torch._C, "_dispatch_get_computed_kernel_for_dispatch_key"),
    (getattr(torch._C, "_SafeKernelFunction", torch._C), "call_boxed"),
    (torch.library, "get_kernel"),
)

# A tensor's memory goes by these to whoever reads it without an operator.
STORAGE_METHODS = frozenset(
    {
        torch._C.TensorBase.untyped_storage,
        torch.Tensor.storage,
        torch.Tensor._typed_storage,
        torch.Tensor.share_memory_,
        torch.Tensor.__reduce_ex__,
    }
)

# These write a tensor's numbers down, past every operator.
WRITERS = (
    (torch._C, "_pickle_save"),
    (torch._C, "_save_parameters"),
    (torch._C, "_save_jit_module"),
    (torch._C, "_save_jit_module_to_bytes"),
    (torch._C, "_save_mobile_module"),
    (torch._C, "_save_mobile_module_to_bytes"),
    (torch._C, "PyTorchFileWriter"),
    (torch._C.ScriptModule, "save"),
    (torch._C.ScriptModule, "save_to_buffer"),
    (torch._C.ScriptModule, "_save_for_mobile"),
    (torch._C.ScriptModule, "_save_to_buffer_for_mobile"),
    (torch._C._profiler, "_add_execution_trace_observer"),
)

# And these compile what is no Triton: CUDA's own language, whose kernels may have any name, and
# expressions that torch works out without an operator.
COMPILERS = (
    (getattr(torch._C, "_te", torch._C), "construct_codegen"),
    (getattr(torch._C, "_te", torch._C), "TensorExprKernel"),
    (torch.cuda, "_compile_kernel"),
    (torch.cuda.jiterator, "_create_jit_fn"),
    (torch.cuda.jiterator, "_create_multi_output_jit_fn"),
)

_ours = str(Path(__file__).resolve().parents[2]) + "/"
_standard = (sysconfig.get_path("stdlib") + "/", "<frozen")
_installed = (sysconfig.get_path("purelib") + "/", sysconfig.get_path("platlib") + "/")
_torch = str(Path(torch.__file__).parent) + "/"
_getframe = sys._getframe


def is_standard(name: str) -> bool:
    """Is a file Python's own? Installed libraries may lie below it."""
    return name.startswith(_standard) and not name.startswith(_installed)


def is_known_file(name: str) -> bool:
    """Is a file ours, Python's, or an installed library's?"""
    return name.startswith((*_installed, *_standard, _ours))


def is_candidates(frame: FrameType | None) -> bool:
    """Is this the candidate's code, and not ours, Python's or an installed library's?"""
    if frame is None:
        return False
    return not is_known_file(frame.f_code.co_filename)


def is_strangers(frame: FrameType) -> bool:
    """The same, of code in a text that lies in no file, too: what Python's own dataclasses and
    named tuples write belongs to the module that they are in.
    """
    if not is_candidates(frame):
        return False
    if not frame.f_code.co_filename.startswith("<") or not frame.f_builtins:
        return bool(frame.f_builtins)  # without them, as in a named tuple, nothing can be done
    names = frame.f_globals
    module = sys.modules.get(str(names.get("__name__")))
    return not (
        module and vars(module) is names and is_known_file(str(getattr(module, "__file__", "")))
    )


def first_outside(frame: FrameType | None, inside: Callable[[str], bool]) -> FrameType | None:
    """This frame or the next of those that called it whose file is not `inside`."""
    while frame is not None and inside(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def asks_for_memory() -> bool:
    """Does the candidate want a tensor's memory or its address, by itself or through torch? Triton
    wants them at every launch, and so do we. To be called by what catches torch's functions.
    """
    frame = _getframe(2)
    while frame.f_back and (
        _is_torchs_or_standard(frame.f_code.co_filename) or frame.f_code.co_name == "data_ptr"
    ):
        frame = frame.f_back
    return is_candidates(frame)


def _is_torchs_or_standard(name: str) -> bool:
    return is_standard(name) or name.startswith(_torch)


def defines_operators(name: str) -> bool:
    """Is a file torch's way of defining operators?"""
    return "/torch/library.py" in name or "/torch/_library/" in name


def asks_for_frames(frame: FrameType) -> bool:
    """Does the candidate itself want a frame, or have a library hand it one? Tracebacks that are
    printed, and logging, are no such thing.
    """
    if is_candidates(frame):
        return True
    code = frame.f_code
    hands_over = code.co_filename.endswith("/inspect.py") or code.co_name in FRAME_WALKERS
    return hands_over and is_candidates(frame.f_back)


def word_for(event: str, arguments: tuple) -> str | None:
    """The word for an audit event, or None for one that nobody minds."""
    if event == "object.__getattr__":
        return FRAMES if arguments[1] in FRAME_NAMES else None
    if event == "object.__setattr__":
        return CODE if arguments[1] == "__code__" else None
    if event == "import":
        return _word_for_import(str(arguments[0]), str(arguments[1]))
    if event == "compile":
        known = is_known_file(str(arguments[1]))
        return CODE if known and not is_that_file(arguments[0], str(arguments[1])) else None
    if event == "open":
        return MEMORY if str(arguments[0]).startswith("/proc/") else None
    return EVENTS.get(event)


def is_that_file(source: Any, name: str) -> bool:
    """Is what is compiled what the file says? Then it is an import, of a library's module that has
    no cached code: on a board, Triton's first launch imports some on the candidate's behalf.
    """
    text = source.encode() if isinstance(source, str) else source
    if not isinstance(text, bytes):
        return False
    try:
        return Path(name).read_bytes() == text
    except OSError:
        return False


def _word_for_import(name: str, file: str) -> str | None:
    """Compiled modules of one's own, and what compiles them, are native code."""
    if name == "torch.utils.cpp_extension" or (file.endswith(".so") and not is_known_file(file)):
        return NATIVE
    return LIBRARY if name.partition(".")[0] in LIBRARIES else None


def listen(tell: Tell) -> None:
    """Tell from now on, for good, what the candidate's code asks of the interpreter."""
    busy: list[bool] = []

    def hook(event: str, arguments: tuple) -> None:
        word = word_for(event, arguments)
        if word is None or busy:
            return
        busy.append(True)
        try:
            if _minds(word, _getframe(1)):
                tell(word, event)
        finally:
            busy.pop()

    sys.addaudithook(hook)


def _minds(word: str, frame: FrameType) -> bool:
    if word == FRAMES:
        return asks_for_frames(frame)
    inside = is_standard if word != NATIVE else _lends_itself
    return is_candidates(first_outside(frame, inside))


def _lends_itself(name: str) -> bool:
    """Is a file Python's own, or of a library that builds or loads native code for whoever asks?"""
    return is_standard(name) or any(part in name for part in LOADERS)


def watch_blinding(tell: Tell) -> None:
    """Tell when the candidate's own code calls what switches our modes off."""
    for owner, name in BLINDERS:
        if hasattr(owner, name):
            setattr(owner, name, _told(getattr(owner, name), name, tell))
    _watch_overrides(tell)


def watch_writers(tell: Tell) -> None:
    """Tell when a tensor's numbers are written down for the candidate, by torch or by itself, or
    when torch compiles for it what is no Triton.
    """
    for owner, name in WRITERS:
        if hasattr(owner, name):
            setattr(owner, name, _told_of(STORAGE, getattr(owner, name), name, tell))
    for owner, name in COMPILERS:
        if hasattr(owner, name):
            setattr(owner, name, _told_of(NATIVE, getattr(owner, name), name, tell))


def _told_of(word: str, original: Any, name: str, tell: Tell) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_candidates(first_outside(_getframe(1), _is_torchs_or_standard)):
            tell(word, name)
        return original(*args, **kwargs)

    return call


def _told(original: Any, name: str, tell: Tell) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if is_candidates(_quiet_frame()):
            tell(BLIND, name)
        return original(*args, **kwargs)

    return call


def _quiet_frame() -> FrameType | None:
    """The frame that called our caller's caller; without an audit event of its own being minded,
    since the frame that asks is ours.
    """
    return _getframe(2)


def _watch_overrides(tell: Tell) -> None:
    """An operator that existed before the candidate must keep its meaning."""
    original = torch._C._dispatch_library
    taken = {name.partition("::")[0] for name in known_operators()}

    def dispatch_library(kind: Any, namespace: str, *rest: Any) -> Any:
        if namespace in taken and is_candidates(first_outside(_getframe(1), defines_operators)):
            tell(BLIND, f"torch.library.Library({namespace!r})")
        return original(kind, namespace, *rest)

    torch._C._dispatch_library = dispatch_library  # type: ignore[assignment]
