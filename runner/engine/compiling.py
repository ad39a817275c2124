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

from benchmark.architectures import ARCHITECTURES, Architecture
from runner.engine import protocol
from runner.engine.devices import INTERPRETER
from runner.engine.model import Candidate, DeviceSpec, JudgeFailure, Limits, Options
from runner.engine.portability import (
    Build,
    KernelBuild,
    Trace,
    Untraced,
    chosen_configuration,
    failure_of,
    groups,
    read_trace,
    said_by,
    target_facts,
    unknown,
    verdict_of,
)
from runner.engine.source import Unloadable, inspect_source
from runner.engine.workers import Ended, Session, Started, Worker, describe_end, require_walls

COMPILER = DeviceSpec(kind="compiler", index=0, gpu="compiler", name="Triton's compilers")
WARM = ("runner.engine.tracing", "runner.engine.building")
KINDS = ("timed", "small")  # whose launches are looked at: the small case where a timed one can't
LIMITS = Limits(load=60.0, call=60.0, check=300.0, proof=0.0, time=0.0, answer=1 << 20)
BUILD_SECONDS = 60.0  # of one kernel; pathological tiles take 15 s
CANDIDATE_SECONDS = 600.0  # all architectures of one candidate
MAX_LAUNCHES = 16  # different launches of one call that are compiled; more are said
MAX_CONFIGURATIONS = 4  # of one autotuned kernel that are compiled; more are said
MAX_IR = 16 << 20  # bytes of one kernel's IR; unrolled loops make it long
SEED = 20200901  # of the traced call's arguments; nothing is compared, so it is no secret


@dataclass
class Compilation:
    """One candidate in hand: its processes, its clock."""

    nursery: Worker
    options: Options
    targets: dict[str, dict]
    deadline: float
    builder: Session | None = None
    known: dict[tuple[str, str, str], dict] = field(default_factory=dict)

    def close(self) -> None:
        """End the builder, if one was started."""
        builder, self.builder = self.builder, None
        if builder is not None:
            builder.__exit__()

    def build(self, architecture: str, ir: str, options: dict) -> dict:
        """The builder's answer; a fresh builder when it died or is late."""
        key = (architecture, ir, str(sorted(options.items())))
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


class Compiler(Started):
    """Compiles candidates. Long-lived; `compile` may be called from several threads."""

    def __init__(self, trust_candidates: bool = False, limits: Limits = LIMITS) -> None:
        self.options = Options(limits=limits, trust_candidates=trust_candidates)
        self.environment: dict = {}
        self._nursery: Worker | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process that forks."""
        self.ready()

    def close(self) -> None:
        """End all processes; what is under way ends in JudgeFailure."""
        self._closed = True
        if self._nursery:
            self._nursery.close()
        self._nursery = None

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

    def ready(self) -> Worker:
        """The process that forks; started when it is missing. JudgeFailure when it can't be."""
        with self._lock:
            if self._closed:
                raise JudgeFailure("the compiler was closed")
            if self._nursery is None or not self._nursery.alive:
                self._nursery = Worker("runner.engine.nursery", COMPILER, *WARM)
                self._greet(self._nursery)
            return self._nursery

    def _greet(self, nursery: Worker) -> None:
        hello = nursery.hello()
        require_walls(hello, self.options)
        self.environment = {
            "triton": hello["triton"],
            "torch": hello["torch"],
            "walls": hello["walls"],
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
        compilation = Compilation(self.ready(), self.options, targets, deadline)
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


class Tracing:
    """A candidate's process and what it launched. Started again for a smaller case when the first
    one doesn't come to an end.
    """

    def __init__(self, compilation: Compilation, task: str, text: str, entry: str) -> None:
        self._compilation = compilation
        self._limits = compilation.options.limits
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
            raise Untraced("; ".join(dict.fromkeys(reasons)))
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
        reply = self._ask(session, message, self._limits.call, "the call")
        if reply.get("ok") is not True:
            raise Untraced(f"the call failed: {said_by(reply)}")
        return read_trace(reply)

    def _loaded(self) -> Session:
        if self._session is None:
            compilation = self._compilation
            self._session = started(compilation.nursery, compilation.options, "tracer")
            message = {"op": "load", "source": self._text, "entry": self._entry}
            reply = self._ask(self._session, message, self._limits.load, "the import")
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
