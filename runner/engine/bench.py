"""The stopwatch on a board, the same code for PyTorch in the referee and for the candidate in its
own process.

One sample: fresh arguments from a seed that has just arrived, a cold L2, a spinning kernel behind
which the host can queue the call, an event, the call, an event. Nothing waits for the device inside
a block, so launch latency does not leak in.
"""

import contextlib
import gc
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from benchmark import suite
from runner.engine import protocol
from runner.engine.activity import (
    Activity,
    busy_microseconds,
    compiled_kernels,
    device_activity,
    summarize,
)
from runner.engine.compiled import CompiledReferences
from runner.engine.driver import Gathering, reset_persisting
from runner.engine.memory import ease_memory, give_back_memory
from runner.engine.protocol import FAILED, LEAST_SPIN, MOST_SPIN, NEXT, SEED

if TYPE_CHECKING:
    from runner.engine.child import Process

FLUSH_BYTES = 128 << 20  # at least; twice the L2 where that is more
HEATER_SECONDS = 0.3
HEATER_CYCLES = 2_000_000  # about a millisecond
CYCLES_PER_MICROSECOND = (
    2000  # of the spinning kernel, near the boost clock: only its order matters
)
COPY_BYTES = 2 << 30
EMPTY_SAMPLES = 101

# Torch's C-level functions, not its Python wrappers: a candidate can replace what those look up.
_wait_for_device = torch._C._cuda_synchronize
_sleep = torch._C._cuda_sleep
_Event = torch._C._CudaEventBase
_record, _elapsed = _Event.record, _Event.elapsed_time
_current_stream = torch.cuda.current_stream
_set_stream = torch.cuda.set_stream
_handle_of: Any = torch.cuda.Stream.cuda_stream
_zero_ = torch._C.TensorBase.zero_
_now = time.perf_counter
_no_grad = torch.no_grad
_median = statistics.median


def _synchronize(_device: torch.device) -> None:
    """Wait for everything on the one device that this process sees."""
    _wait_for_device()


@dataclass
class Block:
    """What a block needs: how many samples, the spin in microseconds, whether a call ends only with
    the work on all streams.
    """

    samples: int
    spin: float
    join: bool


class StreamLeft(Exception):  # noqa: N818 - becomes a verdict
    """The candidate switched the current stream and did not switch back."""


class Stopwatch:
    """Events, a flush buffer and a spinning kernel on one device."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.properties = torch.cuda.get_device_properties(self.device)
        size = max(FLUSH_BYTES, 2 * int(getattr(self.properties, "L2_cache_size", 0)))
        self._flush = torch.empty(size, dtype=torch.int8, device=self.device)
        self.stream = _current_stream(self.device)
        self._handle = int(_handle_of.__get__(self.stream))
        self._gathering = Gathering()

    def flush(self) -> None:
        """Leave nothing of use in the L2, nor lines that were asked to stay."""
        reset_persisting()
        _zero_(self._flush)

    def sample(self, call: Callable[[], Any], block: Block) -> tuple[Any, Any, Any, float]:
        """Queue one timed call: its result, its two events, the host's seconds for queueing it."""
        start, end = _Event(enable_timing=True), _Event(enable_timing=True)
        self.flush()
        _sleep(int(block.spin * CYCLES_PER_MICROSECOND))
        _record(start, self.stream)
        began = _now()
        result = call()
        queued = _now() - began
        self._check_stream()
        if block.join:
            self._gather()
        _record(end, self.stream)
        return result, start, end, queued

    def _check_stream(self) -> None:
        if _current_stream(self.device) != self.stream:
            _set_stream(self.stream)
            raise StreamLeft("the call switched the current CUDA stream and did not switch back")

    def _gather(self) -> None:
        """What comes next on our stream comes after the work on all streams. An old driver leaves
        it to the host to wait, whose time is in the reading then.
        """
        if not self._gathering.wait(self._handle):
            _synchronize(self.device)

    def heat(self, seconds: float = HEATER_SECONDS) -> None:
        """Bring the clocks up from idle, with little power: a board that was heated up to its power
        limit begins with its clocks held down.
        """
        until = _now() + seconds
        while _now() < until:
            self.flush()
            _sleep(HEATER_CYCLES)
            _synchronize(self.device)

    def event_ms(self, join: bool = False) -> float:
        """What two events read, in ms, with nothing between them: the stopwatch's own part. Where
        the host would have to wait for all streams, it is that of a call which needs no such wait:
        a host's time is too uncertain to be taken off.
        """
        block = Block(1, LEAST_SPIN, join=join and self._gathering.usable)
        events = [self.sample(lambda: None, block)[1:3] for _ in range(EMPTY_SAMPLES)]
        _synchronize(self.device)
        return _median(_elapsed(start, end) for start, end in events)

    def copy_bandwidth(self) -> float:
        """Bytes per second of a large copy, reads and writes counted: what this board really
        reaches.
        """
        source = torch.empty(COPY_BYTES // 2, dtype=torch.int8, device=self.device).zero_()
        target = torch.empty_like(source)
        block = Block(1, LEAST_SPIN, join=False)
        events = [self.sample(lambda: target.copy_(source), block)[1:3] for _ in range(7)]
        _synchronize(self.device)
        milliseconds = _median(_elapsed(start, end) for start, end in events)
        return COPY_BYTES / (milliseconds / 1e3)


def lockstep(
    sock: socket.socket,
    block: Block,
    watch: Stopwatch,
    prepare: Callable[[int], Callable[[], Any]],
    keep: Callable[[Any], None],
) -> dict:
    """Run one block. The seed of a sample arrives when the call before it has been queued, not
    earlier.

    Returns `times` (ms between the events) and `queued` (ms of the host per call), one per sample,
    once the device is done, which a last NEXT says.
    """
    events = []
    result = None
    gc.disable()
    try:
        for _ in range(block.samples):
            seed, keep_last = _ask(sock)
            if keep_last:
                keep(result)
            call = prepare(seed)
            result, start, end, queued = watch.sample(call, block)
            events.append((start, end, queued))
        if _ask(sock)[1]:
            keep(result)
        _synchronize(watch.device)
    finally:
        gc.enable()
    found = {
        "times": [_elapsed(start, end) for start, end, _ in events],
        "queued": [queued * 1e3 for *_, queued in events],
    }
    sock.sendall(NEXT)
    return found


@contextlib.contextmanager
def telling(sock: socket.socket) -> Iterator[None]:
    """Around a block: whoever waits for its next byte gets to know that it failed, and then why."""
    try:
        yield
    except BaseException:
        sock.sendall(FAILED)
        raise


def _ask(sock: socket.socket) -> tuple[int, int]:
    sock.sendall(NEXT)
    data = b""
    while len(data) < SEED.size:
        part = sock.recv(SEED.size - len(data))
        if not part:
            raise protocol.Closed("end of stream")
        data += part
    seed, keep = SEED.unpack(data)
    return seed, keep


def read_block(message: dict) -> Block:
    """A block's parameters out of a request."""
    spin = min(MOST_SPIN, max(LEAST_SPIN, float(message["spin"])))
    return Block(int(message["samples"]), spin, bool(message.get("join")))


class RefereeBench:
    """PyTorch's side: the baseline, timed like the candidate."""

    def __init__(self, device: str, sock: socket.socket) -> None:
        self.device = device
        self.sock = sock
        self.watch = Stopwatch(device)
        self._compiled: CompiledReferences | None = None

    def operations(self) -> dict[str, Callable[[dict, list[int]], dict]]:
        """What the supervisor can ask for, by name."""
        return {
            "compile": self.compile,
            "heat": self.heat,
            "block": self.block,
            "board": self.board,
            "memory": self.memory,
        }

    def heat(self, message: dict, _descriptors: list[int]) -> dict:
        """Bring the clocks up, or keep them there."""
        self.watch.heat(float(message["seconds"]))
        return {"ok": True}

    def board(self, _message: dict, _descriptors: list[int]) -> dict:
        """What the board can do, measured: bytes per second, the events' own ms, also of a call
        that ends with all streams; and its L2 in bytes.
        """
        self.watch.heat()
        found = {
            "bandwidth": self.watch.copy_bandwidth(),
            "event_ms": self.watch.event_ms(),
            "joined_event_ms": self.watch.event_ms(join=True),
        }
        ease_memory()
        return {"ok": True, **found, "l2": int(self.watch.properties.L2_cache_size)}

    def memory(self, _message: dict, _descriptors: list[int]) -> dict:
        """Bytes of the board that nobody has, once we have given back what we can, and all."""
        give_back_memory()
        free, total = torch.cuda.mem_get_info()
        return {"ok": True, "free": free, "total": total}

    def compile(self, message: dict, descriptors: list[int]) -> dict:
        """Make the compiled reference of a case, for blocks that ask for it."""
        if self._compiled is None:
            self._compiled = CompiledReferences(self.device)
        found = self._compiled.compile(message, descriptors)
        give_back_memory()
        return found

    def block(self, message: dict, _descriptors: list[int]) -> dict:
        """One block of the reference on a case, compiled if asked for."""
        task = suite.get(message["task"])
        case = task.case(message["case"])
        reference: Callable[[Any], Any] = task.reference
        if message.get("compiled") and self._compiled:
            reference = self._compiled.call_of(task.name, case.name)

        def prepare(seed: int) -> Callable[[], Any]:
            arguments = task.arguments(case, seed, self.device)
            return lambda: reference(arguments)

        with telling(self.sock), _no_grad():
            found = lockstep(self.sock, read_block(message), self.watch, prepare, lambda _: None)
        ease_memory()
        return {"ok": True, **found}


class CandidateBench:
    """The candidate's side; what it returns is checked by the supervisor as a stranger's."""

    def __init__(self, process: "Process") -> None:
        self.process = process
        self._watch: Stopwatch | None = None
        self._arguments: Any = None

    def operations(self) -> dict[str, Callable[[dict], dict]]:
        """What the supervisor can ask for, by name."""
        return {
            "warm": self.warm,
            "block": self.block,
            "row": self.row,
            "profile": self.profile,
            "kernels": self.kernels,
        }

    @property
    def watch(self) -> Stopwatch:
        """Made on first use: before that the process may not need the device at all."""
        if self._watch is None:
            self._watch = Stopwatch(self.process.device)
        return self._watch

    def warm(self, _message: dict) -> dict:
        """Does the device start behind the walls, and does Triton compile and launch there?"""
        from runner.engine.probe_kernel import add_one

        tensor = torch.zeros(4, device=self.process.device)
        add_one[(1,)](tensor, 4, BLOCK=16)
        return {"ok": tensor.tolist() == [1.0] * 4}

    def _case(self, message: dict) -> tuple[Any, Any]:
        task = suite.get(message["task"])
        return task, task.case(message["case"])

    def block(self, message: dict) -> dict:
        """One block of the candidate on a case, with the outputs of the sample that was kept."""
        task, case = self._case(message)
        process = self.process
        kept: list[Any] = []
        block = read_block(message)
        process.observer.suppressed = bool(message.get("suppress"))

        def prepare(seed: int) -> Callable[[], Any]:
            process.show()
            arguments = self._arguments = task.arguments(case, seed, process.device)
            process.hide()
            return lambda: process.entry(*arguments.args, **arguments.kwargs)  # type: ignore[misc]

        def keep(result: Any) -> None:
            arguments = self._arguments
            after = [arguments.args, arguments.kwargs] if message.get("after") else None
            kept[:] = copies([result, after])

        try:
            with telling(process.sock), process.catching(), _no_grad():
                found = lockstep(process.sock, block, self.watch, prepare, keep)
        finally:
            process.observer.suppressed = False
        return {"ok": True, **found, **self._kept(kept)}

    def _kept(self, kept: list) -> dict:
        exporter = self.process.exporter
        exporter.begin()
        if not kept:
            return {"outputs": None, "after": None}
        output, after = kept
        return {
            "outputs": [exporter.export(output)],
            "after": None if after is None else exporter.export(after),
        }

    def row(self, message: dict) -> dict:
        """Calls in a row on the same arguments, no clock here: the supervisor's own clock runs
        between the two bytes.
        """
        task, case = self._case(message)
        process = self.process
        arguments = task.arguments(case, message["seed"], process.device)
        with process.candidate_code(), _no_grad():
            process.entry(*arguments.args, **arguments.kwargs)  # type: ignore[misc]
            _synchronize(self.watch.device)
            _ask(process.sock)
            for _ in range(message["calls"]):
                process.entry(*arguments.args, **arguments.kwargs)  # type: ignore[misc]
            _synchronize(self.watch.device)
        return {"ok": True}

    def profile(self, message: dict) -> dict:
        """Device activity of a few calls by the profiler: `activity` over all of them, rows of
        [name, ours, on our stream, launches, microseconds]; `busy` of the calls in microseconds.
        """
        task, case = self._case(message)
        functions = self.process.observer.functions
        names = {kernel["name"] for kernel in compiled_kernels(functions)}
        calls = [
            self._profiled(task.arguments(case, seed, self.process.device))
            for seed in message["seeds"]
        ]
        names |= {kernel["name"] for kernel in compiled_kernels(functions)}
        busy = [busy_microseconds(call) for call in calls]
        return {"ok": True, "activity": summarize(calls, names), "busy": busy}

    def _profiled(self, arguments: Any) -> list[Activity]:
        """What ran on the device in one call; the first event is our marker."""
        process = self.process
        marker = torch.empty(1, device=process.device)
        activities = [torch.profiler.ProfilerActivity.CUDA]
        _synchronize(self.watch.device)
        with (
            process.candidate_code(),
            _no_grad(),
            torch.profiler.profile(activities=activities) as found,
        ):
            _zero_(marker)
            process.entry(*arguments.args, **arguments.kwargs)  # type: ignore[misc]
            _synchronize(self.watch.device)
        return device_activity(found)

    def kernels(self, _message: dict) -> dict:
        """What was compiled: registers, spills, shared memory, digest of the binary; and the
        process's peak memory.
        """
        peak = torch.cuda.max_memory_allocated(self.watch.device)
        return {
            "ok": True,
            "kernels": compiled_kernels(self.process.observer.functions),
            "peak": peak,
        }


def copies(tree: Any) -> Any:
    """A tree with its tensors cloned on the device, other leaves as they are."""
    if isinstance(tree, torch.Tensor):
        return tree.clone() if type(tree) is torch.Tensor else tree
    if isinstance(tree, list | tuple):
        items = [copies(item) for item in tree]
        return items if isinstance(tree, list) else tuple(items)
    if isinstance(tree, dict):
        return {key: copies(value) for key, value in tree.items()}
    return tree
