"""Static portability: does a candidate build for an architecture that is not here, and what would
its kernels need there? Needs no GPU and gives no verdict.

Three kinds of processes, each behind the judge's walls: a *tracer* holds the candidate, calls it
with its launches noted instead of run, and lowers what was noted to Triton's IR; a *builder*, which
never holds a candidate, compiles that IR; the supervisor here only reads numbers.
"""

import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from benchmark import vocabulary as words
from benchmark.architectures import ARCHITECTURES, Architecture
from runner.engine import protocol
from runner.engine.devices import INTERPRETER
from runner.engine.model import Candidate, DeviceSpec, JudgeFailure, Limits, Options
from runner.engine.source import Unloadable, inspect_source
from runner.engine.workers import Ended, Session, Worker, describe_end

COMPILER = DeviceSpec(kind="compiler", index=0, gpu="compiler", name="Triton's compilers")
WARM = ("runner.engine.tracing", "runner.engine.building")
KINDS = ("timed", "small")  # whose launches are looked at: the small case where a timed one can't
LIMITS = Limits(load=60.0, call=60.0, check=300.0, proof=0.0, time=0.0, answer=1 << 20)
BUILD_SECONDS = 60.0  # of one kernel; pathological tiles take 15 s
CANDIDATE_SECONDS = 600.0  # all architectures of one candidate
MAX_LAUNCHES = 16  # different launches of one call that are compiled; more are said
MAX_CONFIGURATIONS = 4  # of one autotuned kernel that are compiled; more are said
MAX_IR = 16 << 20  # bytes of one kernel's IR; unrolled loops make it long
MAX_REASON = 2000
MAX_COUNT = 1 << 31
TENSOR_MEMORY_LIMIT = 512  # columns of a block on sm_100: PTX ISA, tcgen05.alloc
SEED = 20200901  # of the traced call's arguments; nothing is compared, so it is no secret
TRITON_NUMBER = {"sm_80": 80, "sm_89": 89, "sm_90": 90, "sm_100": 100, "sm_120": 120}
AMD_WARP = 64


@dataclass(frozen=True)
class KernelBuild:
    """One kernel of one launch on one architecture. Of an autotuned kernel it is the configuration
    that fits and spills least; `configurations` says how many there are, tried and fitting.
    """

    name: str
    configuration: str
    configurations: int
    tried: int
    fitting: int
    reason: str = ""
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    threads: int | None = None
    seconds: float | None = None

    def to_json(self) -> dict:
        """The kernel as an element of a build's `kernels`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Build:
    """A candidate on one architecture. `reason` is empty when it is built, and only then."""

    architecture: str
    state: str
    reason: str
    shared_limit: int
    kernels: tuple[KernelBuild, ...] = ()

    def most(self, figure: str) -> int | None:
        """The largest figure of its kernels; None when nothing was compiled."""
        found = [getattr(kernel, figure) for kernel in self.kernels]
        return max((value for value in found if value is not None), default=None)

    def to_json(self) -> dict:
        """As `--json` writes it and the site stores it."""
        return {
            "architecture": self.architecture,
            "state": self.state,
            "reason": self.reason,
            "kernel_count": sum(kernel.registers is not None for kernel in self.kernels),
            "registers": self.most("registers"),
            "spills": self.most("spills"),
            "shared_bytes": self.most("shared_bytes"),
            "shared_limit": self.shared_limit,
            "kernels": [kernel.to_json() for kernel in self.kernels],
        }


@dataclass(frozen=True)
class Trace:
    """What the candidate launched in one call, and why that may not be all."""

    case: str
    launches: tuple[dict, ...]
    alternatives: dict[str, int]
    stopped: str = ""


class Untraced(Exception):  # noqa: N818 - the third state: neither builds nor fails
    """What the candidate launches couldn't be found out here; `str()` says why."""


@dataclass
class Compilation:
    """One candidate in hand: its processes, its clock."""

    nursery: Worker
    options: Options
    targets: dict[str, dict]
    deadline: float
    builder: Session | None = None
    known: dict[tuple[str, str], dict] = field(default_factory=dict)

    def close(self) -> None:
        """End the builder, if one was started."""
        builder, self.builder = self.builder, None
        if builder is not None:
            builder.__exit__()

    def build(self, architecture: str, ir: str, options: dict) -> dict:
        """The builder's answer; a fresh builder when it died or is late."""
        key = (architecture, ir)
        if key in self.known:
            return self.known[key]
        seconds = min(BUILD_SECONDS, self.deadline - time.monotonic())
        if seconds <= 0:
            raise Untraced(f"not compiled within {CANDIDATE_SECONDS:g} s for all architectures")
        if self.builder is None:
            self.builder = started(self.nursery, self.options, "builder")
        message = {
            "op": "build",
            "ir": ir,
            "options": options,
            "target": self.targets[architecture],
        }
        try:
            reply = self.builder.ask(message, time.monotonic() + seconds)
        except protocol.Overdue:
            self.close()
            raise Untraced(f"the compiler did not end within {seconds:.0f} s") from None
        except Ended as ended:
            reply = {"ok": False, "reason": f"the compiler crashed: {describe_end(ended.facts)}"}
            self.close()
        else:
            if reply.get("ok") is not True:
                reply["reason"] = failure_of(reply, self.builder.channel.log_tail())
                self.close()  # a builder per failure: the next log is of the next kernel
        self.known[key] = reply
        return reply


def started(nursery: Worker, options: Options, role: str) -> Session:
    """A forked process that is ready."""
    session = Session(nursery, COMPILER, options, role=role)
    try:
        session.start()
    except BaseException:
        session.__exit__()
        raise
    return session


class Compiler:
    """Compiles candidates. Long-lived; `compile` may be called from several threads."""

    def __init__(self, trust_candidates: bool = False) -> None:
        self.options = Options(limits=LIMITS, trust_candidates=trust_candidates)
        self.environment: dict = {}
        self._nursery: Worker | None = None
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End all processes; what is under way ends in JudgeFailure."""
        self._closed = True
        if self._nursery:
            self._nursery.close()
        self._nursery = None

    @property
    def closed(self) -> bool:
        """Does it take nothing on any more?"""
        return self._closed

    def tasks(self) -> list[dict]:
        """Every task of the suite: name, category, aliases, description. Takes seconds."""
        referee = Worker("runner.engine.referee", INTERPRETER, INTERPRETER.torch_name)
        try:
            referee.hello()
            found: list[dict] = referee.ask({"op": "tasks"})["tasks"]
            return found
        finally:
            referee.close()

    @property
    def triton_version(self) -> str:
        """The version of the Triton that compiles."""
        return str(self.environment["triton"])

    def _start(self) -> Worker:
        with self._lock:
            if self._closed:
                raise JudgeFailure("the compiler was closed")
            if self._nursery is None or not self._nursery.alive:
                self._nursery = Worker("runner.engine.nursery", COMPILER, *WARM)
                self._greet(self._nursery)
            return self._nursery

    def _greet(self, nursery: Worker) -> None:
        hello = nursery.hello()
        walls = hello["walls"]
        if not walls["minimum"] and not self.options.trust_candidates:
            missing = "; ".join(hello["missing"])
            raise JudgeFailure(
                f"this host can't wall strangers' code in: {missing}. Or pass --trust-candidates"
            )
        self.environment = {
            "triton": hello["triton"],
            "torch": hello["torch"],
            "walls": walls,
            "trusted_candidates": self.options.trust_candidates,
        }

    def compile(
        self,
        candidate: Candidate,
        aliases: Sequence[str] = (),
        architectures: Iterable[Architecture] = ARCHITECTURES,
    ) -> tuple[str, list[Build]]:
        """The traced case's name and a build per architecture; JudgeFailure when we failed."""
        chosen = list(architectures)
        try:
            return self._compile(candidate, aliases, chosen)
        except Untraced as untraced:
            return "", [unknown(one, str(untraced)) for one in chosen]
        except (protocol.Malformed, OSError) as error:
            raise JudgeFailure(f"{type(error).__name__}: {error}") from error

    def _compile(
        self, candidate: Candidate, aliases: Sequence[str], chosen: list[Architecture]
    ) -> tuple[str, list[Build]]:
        try:
            source = inspect_source(candidate.source, [candidate.task, *aliases])
        except Unloadable as error:
            raise Untraced(str(error)) from error
        targets = {one.slug: target_facts(one) for one in chosen}
        deadline = time.monotonic() + CANDIDATE_SECONDS
        compilation = Compilation(self._start(), self.options, targets, deadline)
        tracing = Tracing(compilation, candidate.task, source.text, source.entry)
        try:
            trace = tracing.trace()
            return trace.case, [self._build(one, trace, tracing, compilation) for one in chosen]
        finally:
            tracing.close()
            compilation.close()

    @staticmethod
    def _build(
        one: Architecture, trace: Trace, tracing: "Tracing", compilation: Compilation
    ) -> Build:
        kernels: list[KernelBuild] = []
        try:
            for group in groups(trace):
                alternatives = [
                    (launch, tracing.build(compilation, index, one)) for index, launch in group
                ]
                kernels.append(chosen_configuration(alternatives, trace.alternatives, one))
        except Untraced as untraced:
            return verdict_of(one, kernels, str(untraced))
        return verdict_of(one, kernels, trace.stopped)


def verdict_of(one: Architecture, kernels: list[KernelBuild], stopped: str) -> Build:
    """Failed as soon as one kernel fails; built only when all are known."""
    made = tuple(kernels)
    failed = next((kernel for kernel in made if kernel.reason), None)
    if failed is not None:
        reason = f"{failed.name}: {failed.reason}"[:MAX_REASON]
        return Build(one.slug, words.BUILD_FAILED, reason, one.shared_limit, made)
    if stopped:
        return unknown(one, stopped, made)
    return Build(one.slug, words.BUILT, "", one.shared_limit, made)


def unknown(one: Architecture, reason: str, kernels: tuple[KernelBuild, ...] = ()) -> Build:
    """The third state."""
    return Build(one.slug, words.UNTRACED, reason[:MAX_REASON], one.shared_limit, kernels)


def groups(trace: Trace) -> list[list[tuple[int, dict]]]:
    """Launches with their numbers, an autotuner's alternatives together, in order of appearance."""
    found: dict[int, list[tuple[int, dict]]] = {}
    for index, launch in enumerate(trace.launches):
        found.setdefault(launch["group"], []).append((index, launch))
    return list(found.values())


def target_facts(one: Architecture) -> dict:
    """The architecture as Triton names it."""
    if one.slug in TRITON_NUMBER:
        return {"backend": "cuda", "arch": TRITON_NUMBER[one.slug], "warp": 32}
    return {"backend": "hip", "arch": one.slug, "warp": AMD_WARP}


class Tracing:
    """A candidate's process and what it launched. Started again for a smaller case when the first
    one doesn't come to an end.
    """

    def __init__(self, compilation: Compilation, task: str, text: str, entry: str) -> None:
        self._compilation = compilation
        self._task, self._text, self._entry = task, text, entry
        self._session: Session | None = None

    def close(self) -> None:
        """End the candidate's process."""
        session, self._session = self._session, None
        if session is not None:
            session.__exit__()

    def trace(self) -> Trace:
        """The first call that ends by itself and launches something; else the best there is, with
        the reason why it may not be all. Untraced when nothing was launched at all.
        """
        begun, reasons = "", []
        for kind in KINDS:
            try:
                found = self._traced(kind)
            except Untraced as untraced:
                reasons.append(str(untraced))
                continue
            if found.launches and not found.stopped:
                return found
            reasons.append(found.stopped or "its call launches no Triton kernel")
            begun = begun or (kind if found.launches else "")
        if not begun:
            raise Untraced(reasons[-1])
        return self._traced(begun)

    def _traced(self, kind: str) -> Trace:
        session = self._loaded()
        message = {
            "op": "trace",
            "task": self._task,
            "kind": kind,
            "seed": SEED,
            "targets": self._compilation.targets,
            "most": {"launches": MAX_LAUNCHES, "configurations": MAX_CONFIGURATIONS},
        }
        reply = self._ask(session, message, LIMITS.call, "the call")
        if reply.get("ok") is not True:
            raise Untraced(f"the call failed: {said_by(reply)}")
        return read_trace(reply)

    def _loaded(self) -> Session:
        if self._session is None:
            compilation = self._compilation
            self._session = started(compilation.nursery, compilation.options, "tracer")
            message = {"op": "load", "source": self._text, "entry": self._entry}
            reply = self._ask(self._session, message, LIMITS.load, "the import")
            if reply.get("ok") is not True:
                self.close()
                raise Untraced(f"the import failed: {said_by(reply)}")
        return self._session

    def _ask(self, session: Session, message: dict, seconds: float, what: str) -> dict:
        try:
            deadline = min(time.monotonic() + seconds, self._compilation.deadline)
            session.channel.post(message)
            return session.channel.wait(deadline, MAX_IR)
        except protocol.Overdue:
            self.close()
            raise Untraced(f"{what} did not end within {seconds:g} s on a CPU") from None
        except protocol.Malformed as error:
            self.close()
            raise Untraced(f"{what} broke the protocol: {error}") from error
        except protocol.Closed:
            facts = session.end(grace=1.0)
            self.close()
            raise Untraced(f"{what} ended the process: {describe_end(facts)}") from None

    def build(self, compilation: Compilation, index: int, one: Architecture) -> dict:
        """One launch on one architecture: the builder's figures, or {"reason": why not}."""
        if self._session is None:
            raise Untraced("the candidate's process ended while its kernels were lowered")
        message = {"op": "lower", "launch": index, "architecture": one.slug}
        lowered = self._ask(self._session, message, BUILD_SECONDS, "Triton's front end")
        if lowered.get("ok") is not True:
            return {"reason": said_by(lowered)}
        ir, options = lowered.get("ir"), lowered.get("options")
        if not isinstance(ir, str) or not isinstance(options, dict):
            raise Untraced("the candidate's process sent no IR")
        return compilation.build(one.slug, ir, options)


def read_trace(reply: dict) -> Trace:
    """What a stranger's process says that it launched; Untraced when it makes no sense."""
    launches, alternatives = reply.get("launches"), reply.get("alternatives")
    if not isinstance(launches, list) or not isinstance(alternatives, dict):
        raise Untraced("the candidate's process sent no launches")
    read = tuple(
        {
            "name": text_of(one, "name"),
            "group": count_of(one, "group") or 0,
            "configuration": text_of(one, "configuration"),
        }
        for one in launches[:1000]
        if isinstance(one, dict)
    )
    counts = {key: count_of(alternatives, key) or 1 for key in list(alternatives)[:1000]}
    beyond = count_of(reply, "beyond")
    stopped = f"{beyond} more kernels were launched than we compile" if beyond else ""
    if reply.get("error"):
        stopped = f"the call failed after {len(read)} launches: {said_by(reply)}"
    return Trace(text_of(reply, "case"), read, counts, stopped)


def chosen_configuration(
    alternatives: list[tuple[dict, dict]], counts: dict[str, int], one: Architecture
) -> KernelBuild:
    """The alternative that fits and spills least, the first of equals; else why the first fails."""
    found = [kernel_build(launch, reply, one) for launch, reply in alternatives]
    fitting = [kernel for kernel in found if not kernel.reason]
    best = min(fitting, key=lambda kernel: kernel.spills or 0) if fitting else found[0]
    group = str(alternatives[0][0]["group"])
    facts = best.to_json() | {
        "configurations": max(counts.get(group, 1), len(found)),
        "tried": len(found),
        "fitting": len(fitting),
    }
    return KernelBuild(**facts)


def kernel_build(launch: dict, reply: dict, one: Architecture) -> KernelBuild:
    """A builder's answer, read against the architecture's limits."""
    name, configuration = launch["name"], launch["configuration"]
    if reply.get("ok") is not True:
        reason = text_of(reply, "reason") or "the compiler gave no reason"
        return KernelBuild(name, configuration, 1, 1, 0, reason=reason)
    figures = {
        figure: count_of(reply, figure)
        for figure in ("registers", "spills", "shared_bytes", "threads")
    }
    if None in figures.values():
        raise Untraced(f"the builder's answer about {name} makes no sense")
    seconds = reply.get("seconds")
    return KernelBuild(
        name,
        configuration,
        1,
        1,
        1,
        reason=too_much(figures, count_of(reply, "tensor_memory") or 0, one),
        seconds=round(seconds, 3) if isinstance(seconds, float) else None,
        **figures,
    )


def too_much(figures: dict[str, Any], tensor_memory: int, one: Architecture) -> str:
    """Which limit of the architecture a kernel breaks, in words; empty when it fits."""
    if figures["shared_bytes"] > one.shared_limit:
        return (
            f"needs {figures['shared_bytes']} bytes of shared memory; "
            f"a block on {one.slug} has {one.shared_limit}"
        )
    if figures["threads"] > one.threads_limit:
        return f"needs {figures['threads']} threads; a block on {one.slug} has {one.threads_limit}"
    if tensor_memory > TENSOR_MEMORY_LIMIT:
        return f"needs {tensor_memory} columns of tensor memory; a block has {TENSOR_MEMORY_LIMIT}"
    return ""


def said_by(reply: dict) -> str:
    """An exception of the candidate's process, in one readable piece."""
    error = reply.get("error")
    error = error if isinstance(error, dict) else {}
    return essence(f"{text_of(error, 'type')}: {text_of(error, 'message')}")


def failure_of(reply: dict, log: str) -> str:
    """Why a builder failed: what it raised, and what its compilers printed."""
    said = said_by(reply)
    printed = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    new = [line for line in dict.fromkeys(printed) if line not in said]
    return essence(" | ".join([said, *new[:4]]))


def essence(text: str) -> str:
    """The text without the listing of a kernel, which authors have."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 6:
        lines = [*lines[:1], "...", *lines[-4:]]
    return " ".join(lines)[:MAX_REASON]


def text_of(facts: dict, name: str) -> str:
    """A stranger's text, cut."""
    value = facts.get(name)
    return value[:MAX_REASON] if isinstance(value, str) else ""


def count_of(facts: dict, name: str) -> int | None:
    """A stranger's count; None when it is none."""
    value = facts.get(name)
    return value if type(value) is int and 0 <= value < MAX_COUNT else None
