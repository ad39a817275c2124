"""In the candidate's process: which kernels it launches and which PyTorch operators it calls, call
by call.

Launches are seen by wrapping Triton's own launch, in the interpreter and on a GPU alike; operators
by a dispatch mode. The same wrappers switch the candidate's kernels off for the test that its
answer depends on them.
"""

import _thread
import contextlib
import math
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode

from runner.engine.calm import Alone
from runner.engine.operators import HEAVY_KIND, base_name, kind_of
from runner.engine.witness import Witness, known_operators

MAX_OPERATORS = 200
UNINITIALIZED = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
)
INEXACT_DTYPES = frozenset(
    {torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2}
)  # in the interpreter
COPIES = frozenset({"_to_copy", "copy_"})
TRUNCATION = "aten::trunc"
Tell = Callable[[str, str], None]
INTEGER_POISON = 113  # fits int8; out of most small ranges as an index, conspicuous as a value

_Tensor = torch.Tensor
_fill_ = torch._C.TensorBase.fill_
_numel, _element_size = torch._C.TensorBase.numel, torch._C.TensorBase.element_size
_is_floating_point, _is_complex = (
    torch._C.TensorBase.is_floating_point,
    torch._C.TensorBase.is_complex,
)
_dtype = torch._C.TensorBase.dtype.__get__  # type: ignore[attr-defined]
_device = torch._C.TensorBase.device.__get__
_has_storage, _untyped_storage = torch._C._has_storage, torch._C.TensorBase.untyped_storage
_redispatch = torch._ops.OpOverload.redispatch
_BACKENDS = {
    name: torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name.upper()))
    for name in ("cpu", "cuda")
}
_libraries = tuple(
    {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), sysconfig.get_path("stdlib")}
)


def say_nothing(_word: str, _about: str) -> None:
    """For an observer that nobody listens to."""


class Record:
    """What one call did. `operators` maps a name to [calls, numbers in its largest tensor, bytes
    read and written, numbers worked on].
    """

    def __init__(self) -> None:
        self.operators: dict[str, list[int]] = {}
        self.launches: dict[str, int] = {}
        self.foreign: dict[str, int] = {}
        self.kernel_bytes = 0
        self.events: dict[str, int] = {}
        self.host_numbers = 0

    def add(self, other: "Record") -> None:
        """What another record holds was done again, in this call."""
        for name, (calls, largest, size, numbers) in other.operators.items():
            entry = self.operators.setdefault(name, [0, 0, 0, 0])
            entry[:] = entry[0] + calls, max(entry[1], largest), entry[2] + size, entry[3] + numbers
        for ours, theirs in (
            (self.launches, other.launches),
            (self.foreign, other.foreign),
            (self.events, other.events),
        ):
            for name, count in theirs.items():
                ours[name] = ours.get(name, 0) + count
        self.kernel_bytes += other.kernel_bytes
        self.host_numbers += other.host_numbers

    def to_json(self) -> dict:
        """The record as the supervisor reads it."""
        operators = sorted(self.operators.items(), key=lambda item: -item[1][3])[:MAX_OPERATORS]
        return {
            "operators": [[name, *numbers] for name, numbers in operators],
            "launches": dict(list(self.launches.items())[:MAX_OPERATORS]),
            "foreign": dict(list(self.foreign.items())[:MAX_OPERATORS]),
            "kernel_bytes": self.kernel_bytes,
            "events": self.events,
            "host_numbers": self.host_numbers,
        }


class Observer(TorchDispatchMode):
    """Records every operator of the calls inside, and fills fresh uninitialised memory with NaN.

    Tensors whose class says what an operator means go first: whatever their class does is seen.
    """

    def __init__(self, tell: Tell = say_nothing, on_gpu: bool = False) -> None:
        super().__init__()
        self.on_gpu = on_gpu
        self.record = Record()
        self.suppressed = False
        self.functions: dict[int, Any] = {}  # the candidate's launched functions, by id
        self.tell = tell
        self.witness = Witness()
        self.happened: set[str] = set()  # events of all calls so far
        self._told: set[str] = set()
        self._around_capture: Record | None = None  # the call's own, while a graph is captured

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if goes_first(types):
            return NotImplemented
        return self.dispatch(self, func, args, kwargs or {})

    def dispatch(self, mode: TorchDispatchMode, func: Any, args: Any, kwargs: dict) -> Any:
        """Call an operator that `mode` caught, and note it."""
        name = func.name()
        if name not in known_operators():
            return self._look_inside(mode, func, args, kwargs)
        if kind_of(name) == HEAVY_KIND and name not in self._told:
            self._told.add(name)
            self.tell("operator", name)
        with Alone(self.tell, "an operator of PyTorch's"), self.witness.seen(kind_of(name)):
            result = func(*args, **kwargs)
        self._note(func, args, kwargs, result)
        fresh = base_name(name) in UNINITIALIZED and type(result) is _Tensor
        if fresh and not self._around_capture:  # a graph would fill it again at each replay
            poison(result)
        return result

    @staticmethod
    def _look_inside(mode: TorchDispatchMode, func: Any, args: Any, kwargs: dict) -> Any:
        """An operator of the candidate's own is what it calls: run it under the mode again, below
        the place where the mode caught it.
        """
        kinds = {_device(tensor).type for tensor in _flat_tensors((args, kwargs))}
        backend = _BACKENDS["cuda" if "cuda" in kinds else "cpu"]
        with mode:
            return _redispatch(func, backend, *args, **kwargs)

    def _note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        given, made = _flat_tensors((args, kwargs)), _flat_tensors(result)
        name = TRUNCATION if cuts_off(func.name(), given, made) else func.name()
        if func._schema.is_mutable and not made:  # it returns nothing and writes what it read
            made = given
        sizes = [(_numel(t), _element_size(t)) for t in (*given, *made)]
        entry = self.record.operators.setdefault(name, [0, 0, 0, 0])
        entry[0] += 1
        entry[1] = max([entry[1], *(count for count, _ in sizes)])
        entry[2] += sum(count * width for count, width in sizes)
        entry[3] += max(map(_numbers, (made, *args, *kwargs.values())), default=0)
        if base_name(name) == "_local_scalar_dense":  # what .item() is made of
            self.record.host_numbers += 1
        if not self.on_gpu and func._schema.is_mutable:
            self._note_host_memory((*given, *made))
        elif "copy" in func.name():
            self._note_host(given, made)

    def _note_host_memory(self, tensors: Iterable[Any]) -> None:
        """Without a board: numbers in memory that isn't torch's own (numpy's, a bytearray's, a
        file's), where whatever computes on the host finds and leaves them without an operator.
        """
        for tensor in tensors:
            if is_host_memory(tensor):
                self.record.host_numbers += _numel(tensor)

    def _note_host(self, given: list[Any], made: list[Any]) -> None:
        """Numbers that leave the board; without a board the shim counts them, too."""
        kinds = {_device(tensor).type for tensor in given}
        if "cuda" in kinds and any(_device(tensor).type == "cpu" for tensor in made):
            self.record.host_numbers += max(_numel(tensor) for tensor in made)

    def event(self, name: str) -> None:
        """What a call did beside operators and launches, such as calling torch.compile."""
        self.record.events[name] = self.record.events.get(name, 0) + 1
        self.happened.add(name)

    def launch(self, function: Any, args: tuple, kwargs: dict) -> bool:
        """Note a launch of a kernel; False when it must not happen."""
        name = str(getattr(function, "__name__", "?"))[:200]
        own = id(function) in self.functions or is_own(function)
        if own:
            self.functions[id(function)] = function
        ours = self.record.launches if own else self.record.foreign
        ours[name] = ours.get(name, 0) + 1
        tensors = _flat_tensors((args, kwargs))
        self.record.kernel_bytes += sum(_numel(t) * _element_size(t) for t in tensors)
        if not self.on_gpu:
            self._note_host_memory(tensors)
        if any(_dtype(t) in INEXACT_DTYPES for t in tensors):
            self.event("inexact-dtype")
        return not self.suppressed or self._around_capture is not None

    @property
    def is_capturing(self) -> bool:
        """Is what comes captured into a graph?"""
        return self._around_capture is not None

    def begin_capture(self) -> None:
        """What comes is captured into a graph, not done."""
        self._around_capture, self.record = self.record, Record()

    def end_capture(self) -> Record:
        """What was captured since."""
        captured = self.record
        if self._around_capture is not None:
            self.record, self._around_capture = self._around_capture, None
        return captured

    def replay(self, captured: Record) -> bool:
        """Note what a graph does again; False when it must not."""
        self.record.add(captured)
        return not self.suppressed

    @contextlib.contextmanager
    def watching(self, suppressed: bool = False) -> Iterator[Record]:
        """Observe what happens inside, in a fresh record; with `suppressed`, kernels don't run."""
        self.record, self.suppressed = Record(), suppressed
        self._told.clear()
        try:
            with self:
                yield self.record
        finally:
            self.suppressed = False

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Around calls that nobody watches, the timed ones: what is launched inside belongs to no
        call's record, least of all to the last one's, which was told.
        """
        last, self.record = self.record, Record()
        try:
            yield
        finally:
            self.record = last

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Around whatever watches, and what follows until the answer is written: torch's own record
        of this thread, which shows what no mode saw.
        """
        self.witness.start()
        try:
            yield
        finally:
            self._hear_witness()

    def _hear_witness(self) -> None:
        found = self.witness.stop()
        if found is None:
            self.tell("blind", "the recorder of operators")
        elif found:
            self.tell("hidden", ", ".join(found)[:200])


def cuts_off(name: str, given: list[Any], made: list[Any]) -> bool:
    """Does a copy turn fractions into whole numbers? Then it computes: what a task may ask for."""
    if base_name(name) not in COPIES or not made or not is_whole(made[0]):
        return False
    return _is_floating_point(given[-1])


def is_whole(tensor: Any) -> bool:
    """Does a tensor hold whole numbers of 16 bits or more? Fewer are flags, and quantized ones."""
    inexact = _is_floating_point(tensor) or _is_complex(tensor)
    return not inexact and _element_size(tensor) > 1


def goes_first(types: Iterable[type]) -> bool:
    """Is there a class among those of an operator's tensors that says what the operator means?"""
    return any(kind is not _Tensor for kind in types)


def _flat_tensors(value: Any) -> list[Any]:
    if isinstance(value, _Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _flat_tensors(item)]
    if isinstance(value, dict):
        return [tensor for item in value.values() for tensor in _flat_tensors(item)]
    return []


def _numbers(value: Any) -> int:
    """In a tensor, or in all of a list of them: `torch._foreach_*` works on many at once."""
    return sum(map(_numel, _flat_tensors(value)))


def is_host_memory(tensor: Any) -> bool:
    """Does a tensor lie in memory that torch did not allocate: numpy's, a bytearray's, a file's?"""
    return _has_storage(tensor) and not _untyped_storage(tensor).resizable()


def poison(tensor: Any) -> None:
    """Fill a tensor so that numbers left unwritten are seen: NaN, or a conspicuous integer."""
    if _is_floating_point(tensor) or _is_complex(tensor):
        _fill_(tensor, math.nan)
    elif _dtype(tensor) is torch.bool:
        _fill_(tensor, True)
    else:
        _fill_(tensor, INTEGER_POISON)


def is_own(function: Any) -> bool:
    """Is a kernel the candidate's, and not one out of an installed library?"""
    code = getattr(getattr(function, "fn", None), "__code__", None)
    return code is not None and not code.co_filename.startswith(_libraries)


def watch_launches(observer: Observer) -> None:
    """Wrap every way in which Triton starts a kernel in this process, for good."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    _wrap_run(InterpretedFunction, observer)
    _wrap_run(JITFunction, observer)
    _wrap_compiled(observer)


def _wrap_run(owner: Any, observer: Observer) -> None:
    original = owner.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if not warmup and not observer.launch(self, args, kwargs):
            return None
        return original(self, *args, grid=grid, warmup=warmup, **kwargs)

    owner.run = run


def watch_compiling(begin: Callable[[], bool], end: Callable[[], None]) -> None:
    """Around each compilation, autotuners' included, and around the C compiler, which Triton before
    3.7 starts for the launch of each signature. Not by Triton's hooks: the one for the end isn't
    called when compiling fails. `end` is called when `begin` said True.
    """
    from triton.runtime import build
    from triton.runtime.jit import JITFunction

    def between(original: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            if not begin():
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                end()

        return call

    JITFunction._do_compile = between(JITFunction._do_compile)
    build._build = between(build._build)


def _wrap_compiled(observer: Observer) -> None:
    """A kernel compiled ahead of its launch: `compiled = kernel.warmup(...)`, then
    `compiled[grid](...)`.
    """
    owner = triton.compiler.CompiledKernel
    original = owner.__getitem__

    def getitem(self: Any, grid: Any) -> Callable:
        start = original(self, grid)
        function = getattr(self.src, "fn", self)

        def launch(*args: Any, **kwargs: Any) -> Any:
            return start(*args, **kwargs) if observer.launch(function, args, {}) else None

        return launch

    owner.__getitem__ = getitem


def watch_graphs(observer: Observer) -> None:
    """A CUDA graph does, at each replay, what was launched and called when it was captured: without
    this a replay would be no work of the candidate's, and could not be switched off.
    """
    owner = torch.cuda.CUDAGraph
    begin, end, replay = owner.capture_begin, owner.capture_end, owner.replay
    captured: weakref.WeakKeyDictionary[Any, Record] = weakref.WeakKeyDictionary()

    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, *args, **kwargs)
        observer.begin_capture()

    def capture_end(self: Any) -> None:
        captured[self] = observer.end_capture()
        end(self)

    def replay_noted(self: Any) -> None:
        if observer.replay(captured.get(self, Record())):
            replay(self)

    owner.capture_begin, owner.capture_end = capture_begin, capture_end  # type: ignore[method-assign]
    owner.replay = replay_noted  # type: ignore[method-assign]


def watch_compile(observer: Observer) -> None:
    """torch.compile writes kernels that are not the candidate's: refuse it, and remember that it
    was asked for.
    """

    def refuse(*_: Any, **__: Any) -> Any:
        observer.event("torch.compile")
        raise RuntimeError(
            "torch.compile is not allowed here: the kernels must be the candidate's own"
        )

    torch.compile = refuse
    with contextlib.suppress(AttributeError):
        torch.jit.script = torch.jit.trace = refuse


class Thread(TorchDispatchMode):
    """Modes belong to a thread: the observer's eye in one of the candidate's, at whatever call."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()
        self._observer = observer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if goes_first(types):
            return NotImplemented
        return self._observer.dispatch(self, func, args, kwargs or {})


def watch_threads(observer: Observer, around: Callable[[], Any] = contextlib.nullcontext) -> None:
    """Whoever starts a thread, and by whatever class, starts it under the observer's eye, and with
    what else belongs `around` code of the candidate's.
    """
    original = _thread.start_new_thread

    def start(function: Any, args: tuple, kwargs: Any = None) -> int:
        def run(*args: Any, **kwargs: Any) -> None:
            with observer.recording(), around(), Thread(observer):
                function(*args, **kwargs)

        observer.event("thread")
        return original(run, args, kwargs or {})

    for name in ("start_new_thread", "start_new"):
        setattr(_thread, name, start)
    threading._start_new_thread = start  # type: ignore[attr-defined]
