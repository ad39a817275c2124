"""In a candidate's process: call it with its launches noted instead of run, and lower what was
noted to Triton's IR for a target.

Outputs stay as they were allocated (zeroed): a launch returns at once. So what a candidate decides
by looking at its own results is decided by zeros.
"""

import contextlib
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode
from triton.backends.compiler import GPUTarget
from triton.compiler.code_generator import ast_to_ttir
from triton.compiler.compiler import ASTSource, make_backend
from triton.compiler.errors import CompilationError
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, create_function_from_signature

from benchmark import suite
from runner.engine.child import Failed, Process, describe
from runner.engine.observer import UNINITIALIZED
from runner.engine.operators import base_name

MAX_NAME = 200
PLAIN = (bool, int, float, str)

_ir = triton._C.libtriton.ir
_no_grad, _manual_seed = torch.no_grad, torch.manual_seed
_zero_ = torch._C.TensorBase.zero_


def target_of(facts: dict) -> GPUTarget:
    """A target out of a message: {"backend": "cuda" | "hip", "arch": 90 | "gfx942", "warp": 32}."""
    return GPUTarget(facts["backend"], facts["arch"], facts["warp"])


@dataclass
class Lowering:
    """What one launch means on one target; `error` says why it can't be launched there."""

    source: ASTSource | None = None
    options: dict = field(default_factory=dict)
    error: dict | None = None


@dataclass
class Launch:
    """A kernel with one specialisation of its arguments and one set of options.

    Launches with the same `group` are an autotuner's alternatives.
    """

    name: str
    group: int
    configuration: str
    by_target: dict[str, Lowering]
    calls: int = 1

    def to_json(self) -> dict:
        """What the supervisor hears of it."""
        return {
            "name": self.name,
            "group": self.group,
            "configuration": self.configuration,
            "calls": self.calls,
        }


class Captured:
    """What a launch returns: a compiled kernel as tutorials read one, with invented numbers."""

    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(self, name: str) -> None:
        self.name = name
        self.asm: dict[str, str] = {}
        self.metadata = types.SimpleNamespace(
            name=name, shared=1024, num_warps=4, num_stages=2, num_ctas=1
        )

    def _init_handles(self) -> None:
        """Nothing is loaded."""

    def __getitem__(self, _grid: Any) -> Callable[..., None]:
        return lambda *_, **__: None  # noted when it was compiled


class Recorder:
    """Notes the launches of one call: `launches` different ones at most, and of an autotuned kernel
    as many `configurations`. More are counted.
    """

    def __init__(self, targets: dict[str, GPUTarget], launches: int, configurations: int) -> None:
        self.most_launches, self.most_configurations = launches, configurations
        self.backends = {slug: make_backend(target) for slug, target in targets.items()}
        self.launches: dict[tuple, Launch] = {}
        self.alternatives: dict[int, set[tuple]] = {}
        self.beyond: set[int] = set()
        self._group: int | None = None
        self._groups: dict[tuple, int] = {}
        self._binders: dict[tuple[int, str], Callable[..., Any]] = {}

    @property
    def is_autotuning(self) -> bool:
        """Are the launches of this moment an autotuner's?"""
        return self._group is not None

    @contextlib.contextmanager
    def autotuning(self, tuner: Any, specialisation: tuple) -> Iterator[None]:
        """Around an autotuner's launches: they are alternatives."""
        before, self._group = self._group, self._number((id(tuner), specialisation))
        try:
            yield
        finally:
            self._group = before

    def _number(self, key: tuple) -> int:
        return self._groups.setdefault(key, len(self._groups))

    def note(self, function: Any, args: tuple, kwargs: dict) -> Captured:
        """Note a launch; raises what binding the arguments raises."""
        kwargs = {"debug": function.debug, "instrumentation_mode": "", **kwargs}
        lowerings, key = self._lower(function, args, kwargs)
        group = self._group if self._group is not None else self._number(key)
        known = self.launches.get(key)
        if known is not None:
            known.calls += 1
            return Captured(known.name)
        name = str(function.__name__)[:MAX_NAME]
        tried = self.alternatives.setdefault(group, set())
        tried.add(key)
        if len(self.alternatives) > self.most_launches and group not in self._kept_groups():
            self.beyond.add(group)
        elif len(tried) <= self.most_configurations:
            described = describe_options(function, kwargs) if self.is_autotuning else ""
            self.launches[key] = Launch(name, group, described, lowerings)
        return Captured(name)

    def _kept_groups(self) -> set[int]:
        return {launch.group for launch in self.launches.values()}

    def _lower(self, function: Any, args: tuple, kwargs: dict) -> tuple[dict, tuple]:
        found: dict[str, Lowering] = {}
        bound: dict[str, tuple] = {}
        for slug, backend in self.backends.items():
            kind = backend.target.backend
            if kind not in bound:
                bound[kind] = self._binder(function, backend)(*args, **kwargs)
            found[slug] = lowering(function, backend, dict(kwargs), bound[kind])
        specialised = str([bound[kind][1] for kind in sorted(bound)])
        return found, (id(function), specialised, str(sorted(plain_options(kwargs).items())))

    def _binder(self, function: Any, backend: Any) -> Callable[..., Any]:
        key = (id(function), backend.target.backend)
        if key not in self._binders:
            self._binders[key] = create_function_from_signature(
                function.signature, function.params, backend
            )
        return self._binders[key]


def lowering(function: Any, backend: Any, kwargs: dict, bound: tuple) -> Lowering:
    """One launch as one target sees it, by Triton's own rules."""
    arguments, specialisation, options = bound
    try:
        packed = function._pack_args(backend, kwargs, arguments, specialisation, options)
        _, signature, constexprs, attributes = packed
    except Exception as error:  # noqa: BLE001 - whatever a target's rules say
        return Lowering(error=describe(error))
    source = ASTSource(function, signature, constexprs, attributes)
    names = set(signature)
    own = {name: value for name, value in plain_options(kwargs).items() if name not in names}
    return Lowering(source, own)


def plain_options(kwargs: dict) -> dict:
    """The keyword arguments that are numbers, words or switches."""
    return {
        str(name): value
        for name, value in kwargs.items()
        if type(value) in PLAIN and not (name == "debug" and not value)
    }


def describe_options(function: Any, kwargs: dict) -> str:
    """An autotuner's configuration in words: "BLOCK=128, num_warps=4"."""
    compile_time = {p.name for p in function.params if p.is_constexpr}
    runtime = {p.name for p in function.params} - compile_time
    chosen = {n: v for n, v in plain_options(kwargs).items() if n not in runtime and v != ""}
    return ", ".join(f"{name}={value}" for name, value in chosen.items())[:300]


class Zeroed(TorchDispatchMode):
    """Fresh memory holds zeros: what no kernel writes is at least the same each time."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if type(result) is torch.Tensor and base_name(func.name()) in UNINITIALIZED:
            _zero_(result)
        return result


class Tracer(Process):
    """A candidate's process whose kernels never run."""

    recorder: Recorder | None = None

    def _prepare(self) -> None:
        super()._prepare()
        self._operations = {"load": self.load, "trace": self.trace, "lower": self.lower}
        watch_runs(self)
        watch_autotuners(self)

    def trace(self, message: dict) -> dict:
        """Call the candidate on a case of a kind; what it launched, and how the call ended."""
        task = suite.get(message["task"])
        case = chosen_case(task, message["kind"])
        if case is None:
            return {
                "ok": True,
                "case": "",
                "launches": [],
                "alternatives": {},
                "beyond": 0,
                "error": None,
            }
        arguments = task.arguments(case, message["seed"], self.device)
        targets = {slug: target_of(facts) for slug, facts in message["targets"].items()}
        self.recorder = recorder = Recorder(targets, **message["most"])
        error = None
        try:
            with self.candidate_code(), _no_grad(), Zeroed():
                _manual_seed(message["seed"])
                self.entry(*arguments.args, **arguments.kwargs)  # type: ignore[misc]
        except Failed as failure:
            error = failure.to_json()
        return {
            "ok": True,
            "case": case.name,
            "launches": [launch.to_json() for launch in recorder.launches.values()],
            "alternatives": {str(k): len(keys) for k, keys in recorder.alternatives.items()},
            "beyond": len(recorder.beyond),
            "error": error,
        }

    def lower(self, message: dict) -> dict:
        """The IR of one launch for one target, as text, with the options that belong to it."""
        assert self.recorder is not None
        launch = list(self.recorder.launches.values())[message["launch"]]
        found = launch.by_target[message["architecture"]]
        if found.source is None:
            return {"ok": False, "error": found.error}
        backend = self.recorder.backends[message["architecture"]]
        try:
            with self.candidate_code():
                text = to_ir(found.source, backend, dict(found.options))
        except Failed as failure:
            return {"ok": False, "error": describe_failure(failure.cause)}
        return {"ok": True, "ir": text, "options": found.options}


def chosen_case(task: Any, kind: str) -> Any:
    """The first case of the kind, in float32 where the task has it: what most candidates are
    written for. Of the timed ones, so that the specialisation is that of a real size.
    """
    cases = [case for case in task.cases if case.kind == kind]
    return next((case for case in cases if case.dtype == "float32"), next(iter(cases), None))


def describe_failure(error: BaseException) -> dict:
    """Where in the kernel Triton's front end stopped, and what it raised first: its outer errors
    say only where a function of its own was called from.
    """
    told, inner = describe(error), error
    for _ in range(20):
        if not isinstance(inner.__cause__, CompilationError):
            break
        inner = inner.__cause__
    if inner is not error:
        last = describe(inner)["message"].strip().splitlines()[-1:]
        told["message"] = "\n".join([told["message"], *last])
    return told


def to_ir(source: ASTSource, backend: Any, options: dict) -> str:
    """Triton's IR of a kernel before any pass; raises what Triton's front end raises."""
    context = _ir.context()
    _ir.load_dialects(context)
    backend.load_dialects(context)
    parsed = backend.parse_options(options)
    module = ast_to_ttir(
        source.fn,
        source,
        context=context,
        options=parsed,
        codegen_fns=backend.get_codegen_implementation(parsed),
        module_map=backend.get_module_map(),
    )
    return str(module)


def watch_runs(tracer: Tracer) -> None:
    """Note every launch of this process instead of running it, for good."""

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if tracer.recorder is None:  # at import, before anything is traced
            return Captured(str(self.__name__)[:MAX_NAME])
        return tracer.recorder.note(self, args, kwargs)

    JITFunction.run = run


def watch_autotuners(tracer: Tracer) -> None:
    """Let an autotuner try its configurations, without a clock, and know them as alternatives."""
    import triton.testing

    original = Autotuner.run

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if tracer.recorder is None:
            return original(self, *args, **kwargs)
        forms = tuple(form_of(value) for value in (*args, *kwargs.values()))
        with tracer.recorder.autotuning(self, forms):
            return original(self, *args, **kwargs)

    def bench(call: Any, *_: Any, quantiles: Any = None, **__: Any) -> Any:
        if tracer.recorder is not None and tracer.recorder.is_autotuning:
            call()
        return [1.0] * len(quantiles) if quantiles else 1.0

    Autotuner.run = run
    triton.testing.do_bench = triton.testing.do_bench_cudagraph = bench
    type(triton.runtime.driver.active).get_benchmarker = lambda _self: bench


def form_of(value: Any) -> Any:
    """What makes two calls of an autotuned kernel different ones."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype)
    return value if type(value) in PLAIN else type(value).__name__
