"""One judgement under way: the candidate's process, the clocks, the secret seeds, and the report
that grows.
"""

import contextlib
import functools
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from benchmark import vocabulary as words
from runner.engine import protocol
from runner.engine.clocks import Clocks
from runner.engine.folders import without_folders
from runner.engine.model import Candidate, Declined, DeviceSpec, JudgeFailure, Options
from runner.engine.operators import is_delegated
from runner.engine.physics import Board
from runner.engine.proof import Observed, read_observed
from runner.engine.report import CaseResult, Report
from runner.engine.source import Source
from runner.engine.steps import Steps
from runner.engine.turns import Hold
from runner.engine.workers import Ended, Session, Worker, describe_end

Progress = Callable[[str, int, int], None]
NEEDS_GPU = re.compile(
    r"cuda|nvidia|libdevice|inline_asm|inline assembly|extern_elementwise|active drivers|ptx|"
    r"'InterpreterBuilder' object has no attribute|not supported in interpreter",
    re.IGNORECASE,
)
BROKEN_CONTEXT = re.compile(
    r"illegal memory access|illegal instruction|illegal address|misaligned address|"
    r"device-side assert|unspecified launch failure|invalid program counter",
    re.IGNORECASE,
)
INEXACT = "inexact-dtype"  # the observer's word for a launch on bfloat16 or fp8 tensors

EVASIONS = {  # what is told -> what it means: forbidden
    "blind": "it switches off what the judge sees with",
    "hidden": "operators of PyTorch were called behind the judge's back",
}
FLAGS = {  # what is told -> what it means: nothing wrong in itself, but no kernel needs it
    "frames": "looks at stack frames",
    "memory": "looks through all objects or into /proc",
    "processes": "starts processes",
    "native-code": "calls native code",
    "tracing": "traces what runs",
    "code-objects": "exchanges code",
    "signals": "sends signals",
    "other-library": "imports another library that computes",
    "sockets": "opens sockets",
    "storage": "takes the memory under a tensor",
    "only-timed": "does in timed calls what it did in no other",
}


COMPARE_SECONDS = 600.0  # in which a referee must answer
COMPILE_IN = frozenset({"load", "call"})  # requests in which a candidate's kernels are compiled


class Verdict(Exception):  # noqa: N818 - the way in which a judgement ends
    """The candidate failed; `verdict` is a word of the vocabulary, `str()` the detail."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict


@dataclass(frozen=True)
class Contract:
    """What the supervisor knows about a task, as the referee described it."""

    name: str
    category: str
    digest: str
    aliases: tuple[str, ...]
    delegates: tuple[str, ...]
    draws: int
    cases: tuple[dict, ...]

    @classmethod
    def from_facts(cls, facts: dict) -> "Contract":
        """Out of the referee's answer to `describe`."""
        return cls(
            name=facts["name"],
            category=facts["category"],
            digest=facts["digest"],
            aliases=tuple(facts["aliases"]),
            delegates=tuple(facts["delegates"]),
            draws=facts["draws"],
            cases=tuple(facts["cases"]),
        )

    def judgeable(self, kind: str) -> list[dict]:
        """The cases of a kind ("small", "timed") that this device can judge."""
        return [case for case in self.cases if case["kind"] == kind and case["judgeable"]]


@dataclass
class Answer:
    """What came back from one challenge; only manifests, the bytes lie in the shared file or are
    kept by the referee.
    """

    case: dict
    seed: int
    outputs: list
    after: object
    observed: Observed
    seconds: float
    kept: int | None = None  # its number, if the referee has read it already


def no_pause() -> float:
    """Nobody is let in between."""
    return 0.0


@dataclass
class Trial:
    """Everything that the stages share."""

    candidate: Candidate
    contract: Contract
    device: DeviceSpec
    options: Options
    referee: Worker
    report: Report
    progress: Progress
    board: Callable[[], Board]
    turn: Callable[[bool], contextlib.AbstractContextManager[Hold | None]]  # of using the board
    clocks: Clocks
    compiler: Worker | None = None  # of the second baseline, where it is asked for
    pause: Callable[[], float] = no_pause  # in a time alone: seconds for which others had the board
    source: Source | None = None
    session: Session | None = None
    observed: list[Observed] = field(default_factory=list)
    events: set[str] = field(default_factory=set)  # of all calls, the first one's too
    joined: set[str] = field(default_factory=set)  # cases whose call uses streams of its own
    heavy: set[str] = field(default_factory=set)  # library operators that were told at once
    evasion: str = ""  # how work was hidden from the judge, if it was
    flagged: bool = False
    deadline: float = 0.0
    waited: float = 0.0  # seconds for turns, in the stage
    steps: Steps = field(default_factory=Steps)  # of the time stage
    later: list[Callable[[], None]] = field(default_factory=list)  # what needs no quiet board
    kept: list[int] = field(default_factory=list)  # answers at the referee, by their numbers
    current: str = "load"
    seeds: random.Random = field(default_factory=random.SystemRandom)

    def __post_init__(self) -> None:
        if self.options.seed is not None:
            self.seeds = random.Random(self.options.seed)  # noqa: S311 - asked for: tests of the judge

    # -- clocks --

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Run a stage under its own limit, and note how long it took."""
        self.current = self.report.stage = name
        started = time.monotonic()
        self.waited = 0.0
        self.deadline = started + self.options.limits.seconds(name)
        self.progress(name, 0, 1)
        try:
            yield
        except protocol.Overdue:
            limit = self.options.limits.seconds(name)
            raise Verdict(
                words.TIMEOUT, f"the {name} stage did not end within {limit:g} s"
            ) from None
        except Ended as ended:
            raise self._death(ended.facts) from None
        except protocol.Malformed as error:
            raise Verdict(words.CRASHED, f"the process sent no proper answer: {error}") from None
        finally:
            self.report.seconds[name] = (
                self.report.seconds.get(name, 0.0) + time.monotonic() - started - self.waited
            )

    @staticmethod
    def _death(facts: dict) -> Verdict:
        if facts.get("out_of_memory"):
            return Verdict(
                words.OUT_OF_MEMORY, "the processes used more host memory than the limit"
            )
        return Verdict(words.CRASHED, describe_end(facts))

    def new_seed(self) -> int:
        """A secret seed; the candidate's process gets it with the challenge and not before."""
        return self.seeds.getrandbits(62)

    # -- challenges --

    @contextlib.contextmanager
    def its_turn(self, long: bool = False) -> Iterator[Hold | None]:
        """Around whatever uses the board. Waiting for a turn costs a candidate none of its time."""
        started = time.monotonic()
        with self.turn(long) as hold:
            self.not_its_time(time.monotonic() - started)
            yield hold

    def not_its_time(self, seconds: float) -> None:
        """Seconds that passed without the candidate: its limit moves, and no stage took them."""
        self.waited += seconds
        self.deadline += seconds

    def rest(self) -> float:
        """Between two steps of a time alone: let others use the board if it is their turn; the
        seconds that this took.
        """
        seconds = self.pause()
        self.not_its_time(seconds)
        return seconds

    def takes_long(self, message: dict) -> bool:
        """Is what a message asks for likely to need the board for a tenth of a second or more? The
        first call starts the device.
        """
        long = {"profile", "call"} if self.current == "call" else {"profile"}
        return message["op"] in long or message.get("case") in self._timed_cases

    @functools.cached_property
    def _timed_cases(self) -> frozenset[str]:
        return frozenset(case["case"] for case in self.contract.judgeable("timed"))

    def ask(self, message: dict) -> dict:
        """One message to the candidate's process; raises Verdict or Declined for what the candidate
        did wrong.
        """
        assert self.session is not None
        with self.its_turn(self.takes_long(message)) as hold:
            if hold is not None and hold.may_step_aside and message["op"] in COMPILE_IN:
                reply = self.session.ask_aside(message, Aside(self, hold))
            else:
                reply = self.session.ask(message, self.deadline)
        self.hear()
        if reply.get("ok") is True:
            return reply
        raise self.failure(reply)

    def hear(self) -> None:
        """Take note of what the candidate's process told at once, before it could think better."""
        assert self.session is not None
        for word, about in self.session.take_told():
            if word in EVASIONS and (word == "blind" or self.current != "load"):
                self.evasion = self.evasion or f"{EVASIONS[word]}: {about}"
            elif word == "operator" and self.current != "load":
                self.heavy.add(about)
            elif word in FLAGS:
                self.flagged = True
                self.report.add(f"asks-{word}", f"its code {FLAGS[word]} ({about})", self.current)

    def require_open_eyes(self) -> None:
        """Raise the verdict `forbidden` for work that was to be hidden from the judge."""
        if self.evasion:
            raise Verdict(words.FORBIDDEN, self.evasion)
        for name in sorted(self.heavy):
            if not is_delegated(name, self.contract.delegates):
                raise Verdict(words.FORBIDDEN, f"the library operator {name} was called")

    def challenge(
        self, case: dict, reuse: bool = False, suppress: bool = False, note: bool = True
    ) -> Answer:
        """Call the candidate on a case with a fresh seed."""
        seed = self.new_seed()
        message = {
            "op": "call",
            "task": self.contract.name,
            "case": case["case"],
            "seed": seed,
            "draws": self.contract.draws,
            "reuse": reuse,
            "suppress": suppress,
            "after": case["kind"] == "small" or case["may_mutate"],
        }
        reply = self.ask(message)
        outputs = reply.get("outputs")
        if not isinstance(outputs, list) or len(outputs) != self.contract.draws:
            raise Verdict(words.CRASHED, "the process sent no outputs")
        if reply.get("unchanged") is False:
            raise Verdict(
                words.INPUT_MUTATED, "an argument was changed that the contract leaves alone"
            )
        observed = read_observed(case["case"], reply.get("largest"), reply.get("observed"))
        self.events |= observed.events.keys()
        if note and observed.largest:
            self.observed.append(observed)
        return Answer(
            case, seed, outputs, reply.get("after"), observed, _seconds(reply.get("seconds"))
        )

    def compare(self, answer: Answer) -> dict:
        """The referee's judgement of an answer that it keeps, or of the last one in the shared
        file.
        """
        message = {
            "op": "compare",
            "task": self.contract.name,
            "case": answer.case["case"],
            "seed": answer.seed,
        }
        with self.its_turn(self.takes_long(message)):
            if answer.kept is None:
                found = self._ask_about(message, answer)
            else:
                self.kept.remove(answer.kept)
                found = self.referee.ask({**message, "kept": answer.kept}, COMPARE_SECONDS)
        self._decline_inexact(found, answer)
        return found

    def _ask_about(self, message: dict, answer: Answer) -> dict:
        assert self.session is not None
        file = self.session.file
        manifests = {"outputs": answer.outputs, "after": answer.after, "size": file.size}
        return self.referee.ask({**message, **manifests}, COMPARE_SECONDS, [file.descriptor])

    def judge_later(self, answer: Answer, judge: Callable[[Answer], None]) -> None:
        """Let the referee read the last answer in the shared file now, and `judge` it once others
        may use the board, or at once where what it keeps takes much of the board's memory.
        """
        reply = self._ask_about({"op": "keep", "task": self.contract.name}, answer)
        self.kept.append(reply["kept"])
        self.later.append(functools.partial(judge, replace(answer, kept=reply["kept"])))
        if reply["much"]:
            self.catch_up()

    def catch_up(self) -> None:
        """Do what was left for later, in its order; raises Verdict."""
        while self.later:
            self.later.pop(0)()

    def forget(self) -> None:
        """Let the referee keep nothing of this judgement."""
        if self.kept:
            self.referee.ask({"op": "forget", "kept": self.kept}, COMPARE_SECONDS)

    def _decline_inexact(self, found: dict, answer: Answer) -> None:
        """The interpreter computes bfloat16 and fp8 wrong: then wrong values are not the
        candidate's fault.
        """
        wrong = found["verdict"] in (words.WRONG_VALUES, words.NON_FINITE)
        inexact = INEXACT in answer.observed.events or (
            self.source and self.source.inexact_in_interpreter
        )
        if self.device.kind == "cpu" and wrong and inexact:
            raise Declined(
                "needs a GPU: it computes in bfloat16 or fp8, which the interpreter gets wrong"
            )

    def failure(self, reply: dict) -> Exception:
        """What a reply that isn't ok means: a Verdict, or Declined."""
        error = reply.get("error")
        error = error if isinstance(error, dict) else {}
        events = (
            reply.get("observed", {}).get("events", {})
            if isinstance(reply.get("observed"), dict)
            else {}
        )
        if isinstance(events, dict) and "torch.compile" in events:
            return Verdict(
                words.FORBIDDEN, "torch.compile was called: its kernels are not the candidate's"
            )
        return self._by_kind(error)

    def _by_kind(self, error: dict) -> Exception:
        kind, text = error.get("kind"), f"{error.get('type')}: {error.get('message')}"[:2000]
        if kind == "answer":
            return Verdict(words.WRONG_SHAPE, text[:500])
        if kind != "exception":
            return Verdict(
                words.CRASHED, f"the judging code in the candidate's process failed: {text}"
            )
        if error.get("memory") is True:
            return Verdict(words.OUT_OF_MEMORY, text)
        if self.device.kind == "cpu" and NEEDS_GPU.search(text):
            return Declined(f"needs a GPU: {without_folders(text)[:300]}")
        if self.device.kind == "cuda" and BROKEN_CONTEXT.search(text):
            return Verdict(words.CRASHED, f"its CUDA context broke: {text}")
        self.report.add("traceback", str(error.get("trace"))[:4000], self.current)
        verdict = words.LOAD_ERROR if self.current == "load" else words.CALL_ERROR
        return Verdict(verdict, text)

    @staticmethod
    def nothing_observed(case: dict) -> Observed:
        """For calls that run unwatched: the timed ones."""
        return read_observed(case["case"], 0, None)

    # -- results --

    def result(self, case: dict) -> CaseResult:
        """The row of a case in the report."""
        return next(row for row in self.report.cases if row.case == case["case"])


@dataclass
class Aside:
    """While the candidate's process compiles, others have its turn. Compiling is its own time;
    waiting for the board afterwards isn't.
    """

    trial: Trial
    hold: Hold

    def deadline(self) -> float:
        """The stage's, as it is now."""
        return self.trial.deadline

    def begin(self) -> None:
        """Lend the turn."""
        self.hold.step_aside()

    def end(self) -> None:
        """Take it again."""
        started = time.monotonic()
        self.hold.step_back()
        self.trial.not_its_time(time.monotonic() - started)


def _seconds(value: Any) -> float:
    return float(value) if isinstance(value, float | int) and 0 <= value < 1e6 else 0.0


def case_row(facts: dict) -> CaseResult:
    """An empty row for a case."""
    names = ("case", "kind", "shape", "dtype", "family", "flops", "bytes")
    row = CaseResult(**{name: facts[name] for name in names})
    if not facts["judgeable"]:
        row.state = "not-judgeable"
    return row


def unusable(reason: object) -> JudgeFailure:
    """Our own failure, from whatever a trusted process said."""
    return JudgeFailure(str(reason))
