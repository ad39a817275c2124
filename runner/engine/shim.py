"""On the interpreter device: let the CPU look like a GPU to candidates that ask for one.

Most published kernels assert `x.is_cuda`, allocate with device="cuda" or ask how many processors
the board has. None of it changes what they compute, so the answers here are those of a board, and
every tensor stays where it is: on the CPU.
"""

import contextlib
import types
from collections.abc import Callable
from operator import is_not
from typing import Any

import numpy
import torch
import triton
from torch.overrides import TorchFunctionMode
from triton.runtime import interpreter

from runner.engine.kernel_calls import (
    remember,
    require_a_kernel,
    require_tritons_calls,
    require_unchanged,
)
from runner.engine.kernel_language import require_triton
from runner.engine.listening import STORAGE, STORAGE_METHODS, asks_for_memory
from runner.engine.observer import Observer, is_host_memory

LOOKS_LIKE = torch.device("cuda", 0)
_Base = torch._C.TensorBase
_numel, _clone = _Base.numel, _Base.clone


def _getter(name: str) -> Any:
    return getattr(_Base, name).__get__


ANSWERS: dict[Any, Any] = {
    _getter("device"): LOOKS_LIKE,
    _getter("is_cuda"): True,
    _getter("is_cpu"): False,
    _Base.get_device: 0,
}
BY_PYTHON = frozenset({_Base.apply_, _Base.map_, _Base.map2_})  # a call for each number
TO_HOST = frozenset(
    {_Base.cpu, _Base.numpy, _Base.tolist, torch.Tensor.__array__, torch.Tensor.__dlpack__}
)


BOARD_MEMORY = 1 << 47  # processes of x86-64 and Arm have nothing there
CAPSULES = (
    (torch._C, "_to_dlpack"),
    (torch._C, "_to_dlpack_versioned"),
    (torch.utils.dlpack, "to_dlpack"),
    (torch, "to_dlpack"),
)


class LooksLikeCuda(TorchFunctionMode):
    """Rewrites devices in every torch call of the candidate, and notes how much data goes to the
    host.
    """

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in ANSWERS:
            return ANSWERS[func]
        if func in TO_HOST:
            self._note_host(args)
        if func in STORAGE_METHODS and asks_for_memory():
            self._observer.tell(STORAGE, func.__name__)
        if func is _Base.data_ptr:
            return on_board(func(*args))
        if func is _Base.cuda:
            return on_our_side(args[0])
        if func is _Base.pin_memory:
            return args[0]
        if func in BY_PYTHON:
            raise TypeError(f"{func.__name__} is only implemented on CPU tensors")
        kwargs = kwargs or {}
        here = [to_cpu(value) for value in args]
        options = {key: to_cpu(value) for key, value in kwargs.items()}
        if options.get("pin_memory"):
            options["pin_memory"] = False
        result = func(*here, **options)
        moved = any(map(is_not, here, args)) or any(
            options[key] is not kwargs[key] for key in kwargs
        )
        return on_our_side(result) if moved else result

    def _note_host(self, args: Any) -> None:
        note_host(self._observer, args[0])


def on_our_side(result: Any) -> Any:
    """A tensor that was moved to the board is a copy there: not numpy's memory, nor a file's."""
    if type(result) is torch.Tensor and is_host_memory(result):
        return _clone(result)
    return result


def note_host(observer: Observer, tensor: Any) -> None:
    """Note that a tensor's numbers were handed to whatever computes on the host."""
    observer.record.host_numbers += _numel(tensor)


def watch_capsules(observer: Observer) -> None:
    """DLPack's capsules go past torch's functions: note them, they are a way to the host."""
    for owner, name in CAPSULES:
        setattr(owner, name, _noted(getattr(owner, name), observer))


def _noted(original: Callable, observer: Observer) -> Callable:
    def to_capsule(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        note_host(observer, tensor)
        return original(tensor, *args, **kwargs)

    return to_capsule


def on_board(address: int) -> int:
    """An address as a board's: kernels can use it, the host crashes on it. 0 stays: no memory."""
    return address + BOARD_MEMORY if address else 0


def _on_host(addresses: Any) -> Any:
    """Addresses that the interpreter's kernels read and write, in numpy, as the host has them."""
    return numpy.where(addresses >= BOARD_MEMORY, addresses - BOARD_MEMORY, addresses)


def map_memory() -> None:
    """Let the interpreter's kernels, and nobody else, use the board's addresses."""
    native = interpreter._interpreter

    def mapped(name: str) -> Callable:
        original = getattr(native, name)

        def access(first: Any, second: Any, *rest: Any) -> Any:
            require_a_kernel()
            if name == "atomic_rmw":  # the kind of change comes first
                return original(first, _on_host(second), *rest)
            return original(_on_host(first), second, *rest)

        return access

    names = {name: getattr(native, name) for name in dir(native) if not name.startswith("_")}
    accesses = {name: mapped(name) for name in ("load", "store", "atomic_rmw", "atomic_cas")}
    interpreter._interpreter = types.SimpleNamespace(**{**names, **accesses})


def drop_nans() -> None:
    """A board's maximum and minimum of a NaN and a number are the number unless asked otherwise;
    the interpreter's are NaN.
    """
    builder = interpreter.InterpreterBuilder
    clamp = builder.create_clampf

    def clampf(self: Any, value: Any, low: Any, high: Any, propagate: Any) -> Any:
        if propagate == triton.language.PropagateNan.ALL:
            return clamp(self, value, low, high, propagate)
        raised = self.binary_op(value, low, numpy.fmax)
        return self.binary_op(raised, high, numpy.fmin)

    builder.create_maxnumf = lambda self, one, other: self.binary_op(one, other, numpy.fmax)
    builder.create_minnumf = lambda self, one, other: self.binary_op(one, other, numpy.fmin)
    builder.create_clampf = clampf


def to_cpu(value: Any) -> Any:
    """A device argument that names CUDA becomes the CPU; anything else stays."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def numbers_for_bools(function: Any, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """A kernel's bool arguments as 0 and 1, constexpr ones aside.

    On a board a bool is a one-bit argument; Triton 3.7's interpreter refuses it as too wide.
    """
    hints = getattr(function.fn, "__annotations__", {})
    names = [*function.arg_names, *[""] * len(args)]

    def plain(name: str, value: Any) -> Any:
        return (
            int(value) if type(value) is bool and "constexpr" not in str(hints.get(name)) else value
        )

    return (
        tuple(plain(name, value) for name, value in zip(names, args, strict=False)),
        {name: plain(name, value) for name, value in kwargs.items()},
    )


def accept_bools() -> None:
    """Apply `numbers_for_bools` to every launch in the interpreter of this process, and look at
    Triton's own classes before it.
    """
    original = interpreter.InterpretedFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        require_unchanged()
        args, kwargs = numbers_for_bools(self, args, kwargs)
        return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    interpreter.InterpretedFunction.run = run


PROPERTIES = types.SimpleNamespace(
    name="Triton interpreter on the CPU",
    major=9,
    minor=0,
    multi_processor_count=8,
    total_memory=16 << 30,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    warp_size=32,
    L2_cache_size=50 << 20,
    is_integrated=False,
    is_multi_gpu_board=False,
    gcnArchName="",
)


class Idle:
    """A stream or an event on a device that has none: everything is done when a call returns."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.cuda_stream = 0
        self.device = LOOKS_LIKE

    def __enter__(self) -> "Idle":
        return self

    def __exit__(self, *_: Any) -> None:
        return None

    def query(self) -> bool:
        """Always finished."""
        return True

    def elapsed_time(self, _other: Any) -> float:
        """No clock here: the interpreter's times mean nothing."""
        return 0.001

    def record(self, *_: Any, **__: Any) -> "Idle":
        """Nothing to record."""
        return self

    synchronize = wait = wait_event = wait_stream = record_event = record


def pretend_cuda(note: Callable[[str], None]) -> None:
    """Let torch.cuda and Triton's driver answer as on one board. `note` hears of what only a real
    board can do.
    """
    for name, answer in CUDA_ANSWERS.items():
        setattr(torch.cuda, name, answer)
    torch.cuda.Stream = torch.cuda.Event = Idle  # type: ignore[misc, assignment]
    torch.cuda.ExternalStream = Idle  # type: ignore[misc, assignment]
    torch.Tensor.record_stream = _answer(None)  # type: ignore[method-assign]  # refuses an Idle
    torch._C._cuda_getCurrentRawStream = _answer(0)
    triton.runtime.driver.set_active(Driver(note))
    accept_bools()
    require_triton()
    require_tritons_calls()
    map_memory()
    drop_nans()
    remember()
    _settle_autotuning(note)


def _answer(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _seed_cpu(seed: int) -> None:
    """The board's generator is the CPU's; torch.manual_seed calls this itself."""
    torch.default_generator.manual_seed(int(seed))


CUDA_ANSWERS: dict[str, Any] = {
    "is_available": _answer(True),
    "is_initialized": _answer(True),
    "is_bf16_supported": _answer(True),
    "is_current_stream_capturing": _answer(False),
    "device_count": _answer(1),
    "current_device": _answer(0),
    "set_device": _answer(None),
    "synchronize": _answer(None),
    "empty_cache": _answer(None),
    "init": _answer(None),
    "manual_seed": _seed_cpu,
    "manual_seed_all": _seed_cpu,
    "get_device_name": _answer(PROPERTIES.name),
    "get_device_capability": _answer((9, 0)),
    "get_device_properties": _answer(PROPERTIES),
    "memory_allocated": _answer(0),
    "max_memory_allocated": _answer(0),
    "reset_peak_memory_stats": _answer(None),
    "mem_get_info": _answer((16 << 30, 16 << 30)),
    "current_stream": lambda *_, **__: Idle(),
    "default_stream": lambda *_, **__: Idle(),
    "stream": lambda *_, **__: contextlib.nullcontext(),
    "device": lambda *_, **__: contextlib.nullcontext(),
    "device_of": lambda *_, **__: contextlib.nullcontext(),
}


class Driver:
    """Triton's driver as candidates ask it: one board of compute capability 9.0, number 0. `note`
    hears that an autotuner asked for a clock.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    class utils:  # noqa: N801 - Triton's name
        """Triton's view of the board."""

        @staticmethod
        def get_device_properties(_device: int = 0) -> dict[str, int]:
            """As Triton's CUDA driver answers, in bytes and kHz."""
            return {
                "max_shared_mem": PROPERTIES.shared_memory_per_block_optin,
                "max_num_regs": PROPERTIES.regs_per_multiprocessor,
                "multiprocessor_count": PROPERTIES.multi_processor_count,
                "warpSize": PROPERTIES.warp_size,
                "sm_clock_rate": 1_000_000,
                "mem_clock_rate": 1_000_000,
                "mem_bus_width": 4096,
            }

    def get_current_target(self) -> Any:
        """The target that most candidates branch on."""
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        """Board 0."""
        return 0

    def set_current_device(self, _device: int) -> None:
        """There is only one."""

    def get_current_stream(self, _device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        """As the target says."""
        return (9, 0)

    def get_active_torch_device(self) -> torch.device:
        """A device that the shim turns into the CPU."""
        return LOOKS_LIKE

    def get_device_interface(self) -> Any:
        """torch.cuda, as answered here."""
        return torch.cuda

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """A buffer that nobody measures with."""
        return torch.empty(1)

    def clear_cache(self, _cache: Any) -> None:
        """Nothing is cached."""

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """What the autotuner times with, without running: all alike, so the first one wins."""

        def first_wins(_call: Any, quantiles: Any = None, **_: Any) -> list[float]:
            self._note("autotune")
            return [1.0] * len(quantiles or (0.5, 0.2, 0.8))

        return first_wins


def _settle_autotuning(note: Callable[[str], None]) -> None:
    import triton.testing

    def do_bench(*_: Any, quantiles: Any = None, **__: Any) -> Any:
        note("autotune")
        return [1.0] * len(quantiles) if quantiles else 1.0

    triton.testing.do_bench = triton.testing.do_bench_cudagraph = do_bench
