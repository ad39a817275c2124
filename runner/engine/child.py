"""The candidate's process: loads one source and answers challenges, until it is killed.

Nothing here decides anything. A challenge is a case and a seed that did not exist a moment before;
the answer is raw bytes in a shared file and a manifest. Expected values, later seeds and the rule
of the comparison are elsewhere.
"""

import _thread
import contextlib
import ctypes  # noqa: F401 - loaded before the walls go up: CPython opens libraries for it
import functools
import gc
import linecache
import mmap
import os
import socket
import sys
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from benchmark import suite
from runner.engine import protocol
from runner.engine.answers import same_bits
from runner.engine.calm import Alone, Calm
from runner.engine.export import Exporter, TooMuch, storage_pointers, tensors_of
from runner.engine.listening import listen, watch_blinding, watch_writers
from runner.engine.memory import is_memory
from runner.engine.observer import (
    Observer,
    Record,
    watch_compile,
    watch_compiling,
    watch_graphs,
    watch_launches,
    watch_threads,
)
from runner.engine.shim import LooksLikeCuda, pretend_cuda, watch_capsules
from runner.engine.witness import watch_kernels_printing, watch_printing

MODULE = "candidate"
OURS = ("runner", "benchmark")
MAX_MESSAGE = 4000  # characters of an exception that the author reads
MAX_TOLD = 100  # words a request
PRINTED_FREELY = 2000  # numbers a call: two tensors of those that torch doesn't abridge
MAX_ELEMENT_SEED = 1 << 62

_no_grad, _manual_seed = torch.no_grad, torch.manual_seed
_format_exception = traceback.format_exception
_numel = torch._C.TensorBase.numel
_now = time.perf_counter
_collect = gc.collect
_thread_id, _threads = _thread.get_ident, _thread._count  # threads beside the first
_started, _synchronize = torch.cuda.is_initialized, torch.cuda.synchronize
_capturing = torch.cuda.is_current_stream_capturing


class Process:
    """One candidate's state: its entry point, its last arguments, and the outputs that are held for
    a later look.
    """

    def __init__(self, sock: socket.socket, answers: int, size: int, device: str) -> None:
        self.sock = sock
        self.device = device
        self.on_gpu = device.startswith("cuda")
        self.observer = Observer(self.tell, self.on_gpu)
        self.exporter = Exporter(mmap.mmap(answers, size), size)
        self.calm = Calm(self.tell)
        self.entry: Callable[..., Any] | None = None
        self.arguments: Any = None
        self.outputs: list[Any] = []
        self.held: list[Any] = []
        self._hidden: dict[str, types.ModuleType] = {}
        self._shown: tuple[int, dict[str, types.ModuleType]] = (0, {})
        self._told: set[tuple[str, str]] = set()
        self._observed: tuple[Record, dict] | None = None  # of the last call, as it was told
        self._printed: tuple[Any, int] = (None, 0)  # a call's record, numbers that it may print
        self._allow_overlap: Callable[[bool], None] = lambda _allowed: None
        self._synchronize: Callable[[], None] = (
            torch.cuda.synchronize if self.on_gpu else lambda: None
        )
        self._operations: dict[str, Callable[[dict], dict]] = {
            "load": self.load,
            "call": self.call,
            "held": self.show_held,
        }
        self._prepare()

    def _prepare(self) -> None:
        watch_launches(self.observer)
        watch_compile(self.observer)
        watch_threads(self.observer, self._looks)
        watch_blinding(self.tell)
        watch_writers(self.tell)
        watch_printing(self._note_printed, functools.partial(Alone, self.tell))
        sys.modules["__main__"] = types.ModuleType("__main__")  # it was the nursery's
        if self.on_gpu:
            watch_graphs(self.observer)
            compiling = Compiling(self.sock, self.observer)
            self._allow_overlap = compiling.allow
            watch_compiling(compiling.begin, compiling.end)
            from runner.engine.bench import CandidateBench

            bench = CandidateBench(self).operations()
            self._operations |= {name: self._unwatched(run) for name, run in bench.items()}
        else:
            pretend_cuda(self.observer.event)
            watch_kernels_printing(self._note_printed)
            watch_capsules(self.observer)
        listen(self.tell)

    def _unwatched(self, operation: Callable[[dict], dict]) -> Callable[[dict], dict]:
        def run(message: dict) -> dict:
            before = frozenset(self.observer.happened)
            try:
                with self.observer.apart():
                    return operation(message)
            finally:
                for name in sorted(self.observer.happened - before):
                    self.tell("only-timed", name)

        return run

    def tell(self, word: str, about: str) -> None:
        """Say something at once: what is sent can't be taken back by what runs next."""
        if len(self._told) < MAX_TOLD and (word, about) not in self._told:
            self._told.add((word, about))
            protocol.send(self.sock, {protocol.TOLD: word, "about": about[:200]})

    def _note_printed(self, numbers: int) -> None:
        """Who prints more than anybody reads wants the numbers, not the text."""
        record = self.observer.record
        if self._printed[0] is not record:
            self._printed = record, PRINTED_FREELY
        left = self._printed[1] - numbers
        record.host_numbers += max(0, -left)
        self._printed = record, max(0, left)

    def serve(self) -> None:
        """Answer until the other end closes. Ends the process."""
        while True:
            try:
                message, _ = protocol.receive(self.sock, protocol.MAX_MESSAGE)
                reply = self._answer(message)
                protocol.send(self.sock, reply)
            except protocol.Closed:
                os._exit(0)

    def _answer(self, message: dict) -> dict:
        operation = self._operations[message["op"]]
        self._told.clear()
        self._hear_late()
        self._allow_overlap(message.get(protocol.OVERLAP) is True)
        try:
            return operation(message)
        except Failed as failure:
            return {
                "ok": False,
                "error": failure.to_json(),
                "observed": self.observer.record.to_json(),
            }
        except TooMuch as error:
            return {"ok": False, "error": {"kind": "answer", "message": str(error)[:MAX_MESSAGE]}}
        except BaseException as error:  # noqa: BLE001 - anything: this process speaks only through its channel
            return {"ok": False, "error": {"kind": "harness", **describe(error)}}
        finally:
            self._allow_overlap(False)

    def _hear_late(self) -> None:
        """Tell of what threads did after the last answer: the judge's file was still theirs to
        write, and nobody heard of it.
        """
        if self._observed and self._observed[0].to_json() != self._observed[1]:
            self.tell("hidden", "in a thread, after the answer")

    # -- load and call --

    def load(self, message: dict) -> dict:
        """Import the source from a file of its own: Triton reads its kernels' text from there."""
        folder = Path(tempfile.mkdtemp(prefix="candidate-"))
        path = folder / f"{MODULE}.py"
        path.write_text(message["source"], encoding="utf-8")
        # As it was sent, whatever encoding a comment at its top claims.
        lines = message["source"].splitlines(keepends=True)
        linecache.cache[str(path)] = len(message["source"]), None, lines, str(path)
        module = types.ModuleType(MODULE)
        module.__file__ = str(path)
        sys.path.insert(0, str(folder))
        observer = self.observer
        with self.candidate_code(), observer.recording(), observer.watching() as record:
            code = compile(message["source"], str(path), "exec")
            sys.modules[MODULE] = module
            exec(code, module.__dict__)  # noqa: S102 - what this process is for
        entry = vars(module).get(message["entry"])
        if not callable(entry):
            raise Failed(TypeError(f"`{message['entry']}` is no function after the import"))
        self.entry = entry
        return {"ok": True, "observed": record.to_json()}

    def call(self, message: dict) -> dict:
        """Draw the arguments of one challenge, call the candidate, and show what came back."""
        task = suite.get(message["task"])
        case = task.case(message["case"])
        arguments = task.arguments(case, message["seed"], self.device)
        if message.get("reuse"):
            arguments = same_place(self.arguments, arguments)
        self.arguments = arguments
        inputs = storage_pointers([arguments.args, arguments.kwargs])
        self.held, self.outputs = self.outputs, []  # whatever hangs on those let go runs now
        started = _now()
        with self.observer.recording(), self.calm:
            outputs, record = self.run(
                arguments, message["draws"], message["seed"], message.get("suppress", False)
            )
            seconds = _now() - started
            reply: dict[str, Any] = {"ok": True, "seconds": seconds}
            self.exporter.begin()
            reply["outputs"] = [self.exporter.export(output, inputs) for output in outputs]
            if message.get("after"):
                reply["after"] = self.exporter.export([arguments.args, arguments.kwargs])
            reply["observed"] = record.to_json()  # with what its threads did meanwhile
        self._observed = record, record.to_json()
        self.outputs = outputs
        if not message.get("after"):
            drawn = task.arguments(case, message["seed"], self.device)
            reply["unchanged"] = same_bits(
                [arguments.args, arguments.kwargs], [drawn.args, drawn.kwargs]
            )
        reply["largest"] = largest_of(arguments, outputs)
        return reply

    def show_held(self, _message: dict) -> dict:
        """The outputs of the call before the last one, as they are now."""
        with self.observer.recording(), self.calm:
            self.calm.begin()
            self.exporter.begin()
            return {"ok": True, "outputs": [self.exporter.export(output) for output in self.held]}

    def run(
        self, arguments: Any, draws: int, seed: int, suppress: bool = False
    ) -> tuple[list[Any], Record]:
        """Call the candidate once per draw, observed; raises Failed for whatever it raises."""
        outputs = []
        self._hear_late()  # what they do from here on counts for this call
        with self.candidate_code(), _no_grad(), self.observer.watching(suppress) as record:
            for draw in range(draws):
                _manual_seed((seed + draw) % MAX_ELEMENT_SEED)
                outputs.append(self.entry(*arguments.args, **arguments.kwargs))  # type: ignore[misc]
            self.calm.begin()
            self._synchronize()
        return outputs, record

    @contextlib.contextmanager
    def candidate_code(self) -> Iterator[None]:
        """Around everything that the candidate wrote: the device it expects, our modules out of
        reach.
        """
        with self.catching():
            self.hide()
            with self._looks():
                yield

    def _looks(self) -> contextlib.AbstractContextManager:
        """What every thread of the candidate's sees of the device."""
        return contextlib.nullcontext() if self.on_gpu else LooksLikeCuda(self.observer)

    @contextlib.contextmanager
    def catching(self) -> Iterator[None]:
        """Turn whatever the candidate raises into Failed, and bring our modules back."""
        try:
            yield
        except BaseException as error:  # noqa: BLE001 - SystemExit and its like included
            raise Failed(error) from None
        finally:
            self.show()

    def hide(self) -> None:
        """Take our modules away, so that the candidate can neither use the suite nor patch the
        judge by name.
        """
        count, found = self._shown
        if len(sys.modules) != count:  # looking through thousands of names takes a while
            found = {n: module for n, module in sys.modules.items() if n.partition(".")[0] in OURS}
        for name in found:
            sys.modules.pop(name, None)
        self._hidden |= found
        sys.meta_path.insert(0, Unimportable)

    def show(self) -> None:
        """Bring them back: the suite imports some of them when it is used."""
        while Unimportable in sys.meta_path:
            sys.meta_path.remove(Unimportable)
        if self._hidden:
            sys.modules.update(self._hidden)
            self._shown = len(sys.modules), self._hidden
            self._hidden = {}


class Compiling:
    """Gives the board to others while a kernel is compiled, in requests that allow it: says so, and
    waits for the word to go on. Only when nothing of this process can be running on the board.
    """

    def __init__(self, sock: socket.socket, observer: Observer) -> None:
        self._sock = sock
        self._observer = observer
        self._home = os.getpid(), _thread_id()
        self._company = _threads()  # none here; whoever comes later is the candidate's
        self._left = 0
        self._aside = False

    def allow(self, allowed: bool) -> None:
        """For one request."""
        self._left = protocol.MAX_COMPILES - 1 if allowed else 0

    def begin(self) -> bool:
        """Say that a compilation begins; False when nobody is to hear it."""
        alone = (os.getpid(), _thread_id()) == self._home and _threads() <= self._company
        if self._aside or not self._left or not alone or not self._is_idle():
            return False
        self._left -= 1
        self._aside = True
        protocol.send(self._sock, {protocol.COMPILING: True})
        return True

    def end(self) -> None:
        """Say that it is over, and wait for the board."""
        self._aside = False
        try:
            protocol.send(self._sock, {protocol.COMPILED: True})
            if self._sock.recv(1) == protocol.GO:
                return
        except (OSError, protocol.Closed):
            pass
        os._exit(0)

    def _is_idle(self) -> bool:
        """Wait until the board has done what was asked. A graph that is being captured forbids
        that; and a context that is broken is for the next call to notice.
        """
        if not _started() or self._observer.is_capturing or _capturing():
            return False
        try:
            _synchronize()
        except RuntimeError:
            return False
        return True


class Unimportable:
    """Import hook: the suite with its references, and the judge, are not there for a candidate."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        """Refuse our packages, leave all others to the next finder."""
        if name.partition(".")[0] in OURS:
            raise ImportError(f"{name} can't be imported by a candidate")


class Failed(Exception):  # noqa: N818 - carries the candidate's failure to the supervisor
    """Whatever the candidate's code raised, SystemExit and its like included."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__()
        self.cause = cause

    def to_json(self) -> dict:
        """Type, message and traceback, cut to a readable length."""
        return {"kind": "exception", "memory": is_memory(self.cause), **describe(self.cause)}


def describe(error: BaseException) -> dict:
    """An exception as short text, even when its own `__str__` is broken or hostile."""
    try:
        lines = [line for line in _format_exception(error) if "runner/engine" not in line]
        text = "".join(lines)[-MAX_MESSAGE:]
        message = str(error)[:MAX_MESSAGE]
    except BaseException:  # noqa: BLE001 - whatever a stranger raises
        text = message = ""
    return {"type": type(error).__name__[:100], "message": clean(message), "trace": clean(text)}


def clean(text: str) -> str:
    """Text that any JSON reader and any page can hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


def same_place(old: Any, new: Any) -> Any:
    """The new arguments, with their numbers written into the old tensors wherever those have the
    same form.
    """
    if isinstance(new, torch.Tensor):
        alike = (
            isinstance(old, torch.Tensor)
            and old.shape == new.shape
            and old.dtype == new.dtype
            and old.stride() == new.stride()
        )
        return old.copy_(new) if alike else new
    if isinstance(new, list | tuple):
        olds = old if isinstance(old, list | tuple) and len(old) == len(new) else [None] * len(new)
        return type(new)(same_place(o, n) for o, n in zip(olds, new, strict=True))
    if isinstance(new, dict):
        return {
            key: same_place(old.get(key) if isinstance(old, dict) else None, n)
            for key, n in new.items()
        }
    if hasattr(new, "args") and hasattr(new, "kwargs"):
        args = same_place(getattr(old, "args", None), new.args)
        return type(new)(args, same_place(getattr(old, "kwargs", None), new.kwargs))
    return new


def largest_of(arguments: Any, outputs: list[Any]) -> int:
    """Numbers in the largest tensor of a call."""
    return max(
        (_numel(t) for t in tensors_of([arguments.args, arguments.kwargs, outputs])), default=0
    )
