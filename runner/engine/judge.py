"""The supervisor: owns seeds, clocks, limits and verdicts, and holds no CUDA context."""

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Self

from benchmark import vocabulary as words
from runner.engine import boards, cores, physics, stages, timing
from runner.engine.baselines import Baselines
from runner.engine.clocks import Clocks
from runner.engine.devices import boards_here
from runner.engine.model import (
    GIB,
    BoardFailure,
    Candidate,
    Declined,
    DeviceSpec,
    JudgeFailure,
    NoMemory,
    Options,
)
from runner.engine.report import Report
from runner.engine.source import Unloadable, inspect_source
from runner.engine.trial import Contract, Progress, Trial, Verdict, case_row
from runner.engine.turns import Turns, nobody_else
from runner.engine.workers import Session, Started, Worker, require_interpreter, require_walls

# Walls to leave out, until the device starts behind the rest.
TRIALS: tuple[tuple[str, ...], ...] = (
    (),
    ("pid",),
    ("seccomp",),
    ("pid", "mount"),
    ("pid", "mount", "seccomp"),
)

# Of a board's memory: who holds more of it leaves us none, and where less is free it is short.
MOST_HELD, LEAST_FREE = 0.5, 0.05
ENDS_OF_MEMORY = (words.OUT_OF_MEMORY, words.CALL_ERROR, words.CRASHED)
DIAGNOSIS_SECONDS = 30.0  # for which a probe says how a board is


def no_progress(_stage: str, _done: int, _total: int) -> None:
    """Nobody is watching."""


class Judge(Started):
    """Judges candidates on one device. Long-lived; `judge` may be called from several threads."""

    def __init__(self, device: DeviceSpec, options: Options | None = None) -> None:
        self.device = device
        self.options = options or Options()
        self.turns = Turns(device)
        self.clocks = Clocks(device)
        self._lock = threading.Lock()
        self._referees: list[Worker] = []
        self._hands: Counter[Worker] = Counter()  # judgements that a referee has in hand
        self._nursery: Worker | None = None
        self._compiler: Worker | None = None
        self._environment: dict = {}
        self._walls: dict = {}
        self._without: tuple[str, ...] = ()
        self._contracts: dict[str, Contract] = {}
        self._board: physics.Board | None = None
        self._cores: cores.Cores | None = None
        self._diagnosis = Diagnosis(device)
        self._baselines = Baselines()

    def __enter__(self) -> Self:
        try:
            return super().__enter__()
        except JudgeFailure as failure:
            raise self._diagnosis.of(failure) from failure

    def close(self) -> None:
        """End all processes; judgements under way end in JudgeFailure, and none begins any more."""
        self._closed = True
        for worker in (self._nursery, self._compiler, *self._referees):
            if worker:
                worker.close()
        self._nursery, self._compiler, self._referees = None, None, []

    # -- processes --

    def start(self) -> None:
        """Start what is missing: all of them at first, the one that died later."""
        with self._lock:
            if self._closed:
                raise JudgeFailure("the judge was closed")
            self._referees = [referee for referee in self._referees if referee.alive]
            fresh = [
                Worker("runner.engine.referee", self.device, self.device.torch_name)
                for _ in range(self.options.referees_on(self.device) - len(self._referees))
            ]
            self._referees += fresh
            if self._nursery is None or not self._nursery.alive:
                self._nursery = Worker("runner.engine.nursery", self.device)
                self._greet_nursery(self._nursery)
                self._make_busy(self._nursery)
            self._start_compiler()
            for referee in fresh:
                self._environment = referee.hello()["environment"]
                self._make_busy(referee)

    def _start_compiler(self) -> None:
        """The process that compiles references for the second baseline, on a board and if asked
        for.
        """
        if not self.options.compiled_baseline or self.device.kind == "cpu":
            return
        if self._compiler is None or not self._compiler.alive:
            self._compiler = Worker("runner.engine.referee", self.device, self.device.torch_name)
            self._compiler.hello()
            self._make_busy(self._compiler)

    def _greet_nursery(self, nursery: Worker) -> None:
        hello = nursery.hello()
        self._walls = hello["walls"]
        require_walls(hello, self.options)
        if self.device.kind == "cpu":
            require_interpreter(hello)
        self._without = self._find_walls(nursery)

    def _find_walls(self, nursery: Worker) -> tuple[str, ...]:
        """On a board: leave out walls behind which CUDA doesn't start, and no others."""
        if self.device.kind == "cpu":
            return ()
        reasons = []
        for without in TRIALS:
            try:
                with Session(nursery, self.device, self.options, without) as session:
                    session.start()
                    reply = session.ask({"op": "warm"}, time.monotonic() + 120.0)
                    if reply.get("ok"):
                        self._settle_overlap(session)
                if reply.get("ok"):
                    self._walls = session.walls
                    return without
                reasons.append(str(reply.get("error")))
            except Exception as error:  # noqa: BLE001 - not starting, in any way: try a wall less
                reasons.append(f"{type(error).__name__}: {error}")
        raise BoardFailure(
            f"the device doesn't start in a candidate's process: {' | '.join(reasons)}"
        )

    def _settle_overlap(self, session: Session) -> None:
        """May others compile while one is timed? By itself only where cores can be kept quiet for
        that, which is tried on a candidate's process.
        """
        wanted = self.options.overlap
        found = None
        try:
            if wanted is not False:
                found = cores.cores_for(self.device.index, boards_here())
            if found:
                self._move(session, found.quiet)
        except OSError:
            found = None
        self._cores = found
        self.turns.overlap = bool(found) if wanted is None else wanted

    def _make_busy(self, worker: Worker) -> None:
        """Away from the cores that are kept quiet, and what it forks with it."""
        if self._cores:
            self._move(worker, self._cores.busy)

    @staticmethod
    def _move(process: Worker | Session, where: frozenset[int]) -> None:
        pid = process.pid
        cores.move(lambda: cores.threads_of(pid), where)

    @property
    def environment(self) -> dict:
        """Device, versions and walls, as every report records them."""
        return {
            **self._environment,
            "device": self.device.to_json(),
            "walls": self._walls,
            "trusted_candidates": self.options.trust_candidates,
            "stages": list(self.options.stages),
            "baselines": ["eager", "compile"] if self._compiler else ["eager"],
            "overlap": self.turns.overlap,
            "quiet_cores": sorted(self._cores.quiet) if self._cores else [],
        }

    def board(self) -> physics.Board:
        """What the board can do, measured once. Call it with the board to oneself."""
        if self._board is None:
            found = self._any_referee.ask({"op": "board"}, 120.0)
            self._board = physics.Board(
                found["bandwidth"],
                found["l2"],
                self.device.architecture,
                found["event_ms"],
                found["joined_event_ms"],
            )
        return self._board

    # -- judging --

    def tasks(self) -> list[dict]:
        """Every task of the suite: name, category, aliases, description."""
        found: list[dict] = self._any_referee.ask({"op": "tasks"}, 120.0)["tasks"]
        return found

    def suite_digest(self) -> str:
        """The whole suite's digest, in hex."""
        found: str = self._any_referee.ask({"op": "digest"}, 300.0)["digest"]
        return found

    def task_digest(self, task: str) -> str:
        """A task's digest in hex; Declined for a task that this suite doesn't have."""
        return self.contract(task, self._any_referee).digest

    def contract(self, task: str, referee: Worker) -> Contract:
        """The task's facts; Declined for a task that this suite doesn't have."""
        if task not in self._contracts:
            reply = referee.ask({"op": "describe", "task": task}, 120.0)
            if reply["task"] is None:
                raise Declined(f"this suite has no task {task!r}: {reply['reason']}")
            self._contracts[task] = Contract.from_facts(reply["task"])
        return self._contracts[task]

    def judge(self, candidate: Candidate, progress: Progress | None = None) -> Report:
        """One report. Declined when this device can't judge it, JudgeFailure when we failed; of its
        kinds BoardFailure when the device doesn't work any more.
        """
        try:
            return self._judge_once(candidate, progress or no_progress)
        except JudgeFailure as failure:
            if self._closed:
                raise
            with self.turns.among_others(long=True):
                raise self._diagnosis.of(failure) from failure

    def _judge_once(self, candidate: Candidate, progress: Progress) -> Report:
        try:
            self.start()
            with self._quiet_thread():
                report = self._attempt(candidate, progress)
                while report is None:  # once: by itself it has no company
                    report = self._attempt(candidate, progress, alone=True)
            return report
        except OSError as error:
            raise JudgeFailure(f"{type(error).__name__}: {error}") from error

    def _attempt(
        self, candidate: Candidate, progress: Progress, alone: bool = False
    ) -> Report | None:
        """None where a board's memory ran out beside others, who may have held it: nobody is blamed
        for that before it was on the board by itself.
        """
        with self.turns.in_hand(alone) as stay, self._referee() as referee:
            if alone and self.device.kind == "cuda":
                for one in list(self._referees):
                    one.ask({"op": "memory"})  # gives back what it doesn't use
            try:
                report = self._judge(candidate, referee, progress, alone)
            except NoMemory:
                if stay.had_company:
                    return None
                raise
            return None if stay.had_company and self._lacked_memory(report, referee) else report

    def _lacked_memory(self, report: Report, referee: Worker) -> bool:
        """May it be for want of the board's memory that a candidate failed? Libraries word that
        error in many ways.
        """
        if self.device.kind == "cpu" or report.verdict not in ENDS_OF_MEMORY:
            return False
        if report.verdict == words.OUT_OF_MEMORY:
            return True
        with self.turns.among_others():
            found = referee.ask({"op": "memory"})
        return bool(found["free"] < LEAST_FREE * found["total"])

    @property
    def _any_referee(self) -> Worker:
        with self._lock:
            if not self._referees:
                raise JudgeFailure("the judge was closed")
            return self._referees[0]

    @contextlib.contextmanager
    def _referee(self) -> Iterator[Worker]:
        """The one with the fewest judgements in hand, for a whole judgement."""
        with self._lock:
            if not self._referees:
                raise JudgeFailure("the judge was closed")
            referee = min(self._referees, key=self._hands.__getitem__)
            self._hands[referee] += 1
        try:
            yield referee
        finally:
            with self._lock:
                self._hands[referee] -= 1

    def _judge(
        self, candidate: Candidate, referee: Worker, progress: Progress, alone: bool
    ) -> Report:
        started = time.monotonic()
        contract = self.contract(candidate.task, referee)
        trial = self._trial(candidate, contract, referee, progress)
        report = trial.report
        try:
            self._run(trial, alone)
        except Verdict as verdict:
            report.verdict, report.detail = verdict.verdict, str(verdict)
        except Unloadable as error:
            report.verdict, report.detail = error.verdict, str(error)
        report.suspect |= trial.flagged and report.verdict == words.PASSED
        self._look_at_baseline(trial)
        report.seconds["total"] = time.monotonic() - started
        report.environment = {**self.environment, **report.environment}
        return report

    def _look_at_baseline(self, trial: Trial) -> None:
        """Of a run that passed and was timed, once the candidate's processes are gone."""
        report = trial.report
        if report.verdict != words.PASSED or report.speedup is None:
            return
        cases = {case["case"]: case for case in trial.contract.cases}
        doubtful = self._baselines.doubtful(report)
        with self.turns.alone() if doubtful else contextlib.nullcontext():
            self._baselines.settle(
                report, doubtful, lambda row: timing.reference_alone(trial, cases[row.case])
            )

    def _trial(
        self, candidate: Candidate, contract: Contract, referee: Worker, progress: Progress
    ) -> Trial:
        kinds = [case["judgeable"] for case in contract.cases]
        if not any(kinds):
            raise Declined(
                f"needs a GPU: the interpreter can't judge {contract.name} in its dtypes"
            )
        report = Report(
            task=contract.name,
            category=contract.category,
            round=candidate.round,
            source_sha256=candidate.sha256,
            task_digest=contract.digest,
            device=self.device.gpu,
            cases=[case_row(case) for case in contract.cases],
        )
        return Trial(
            candidate=candidate,
            contract=contract,
            device=self.device,
            options=self.options,
            referee=referee,
            report=report,
            progress=progress,
            board=self.board,
            turn=self.turns.among_others,
            clocks=self.clocks,
            compiler=self._compiler,
        )

    def _run(self, trial: Trial, alone: bool) -> None:
        with trial.stage("load"):
            contract = trial.contract
            rules = self.options.static_rules
            trial.source = inspect_source(
                trial.candidate.source, [contract.name, *contract.aliases], rules
            )
            trial.report.findings.extend(trial.source.findings)
            trial.flagged = trial.source.reaches_inside
        assert self._nursery is not None
        with Session(self._nursery, self.device, self.options, self._without) as session:
            session.start()
            trial.session = session
            try:
                with self._alone(trial) if alone else contextlib.nullcontext():
                    self._run_stages(trial, alone)
            except NoMemory as failure:
                raise self._whose_memory(trial, session, failure) from failure
            finally:
                # A process that ends gives its memory on the board back, which holds the others up.
                with self.turns.among_others(long=True):
                    self._close_report(trial, session)
                    session.end()
                with contextlib.suppress(JudgeFailure):
                    trial.forget()

    def _whose_memory(self, trial: Trial, session: Session, failure: NoMemory) -> Exception:
        """We got no memory: the verdict where the candidate's processes held most of the board's,
        by what their end sets free.
        """
        if self.device.kind == "cpu":
            return failure
        with self.turns.among_others(long=True):
            before = trial.referee.ask({"op": "memory"})
            session.end()
            after = trial.referee.ask({"op": "memory"})
        held = after["free"] - before["free"]
        if held < MOST_HELD * after["total"]:
            return failure
        share = f"{held / GIB:.0f} of the board's {after['total'] / GIB:.0f} GiB"
        return Verdict(words.OUT_OF_MEMORY, f"it held {share} and left PyTorch none")

    def _run_stages(self, trial: Trial, alone: bool) -> None:
        for name in words.STAGES:
            if name not in self.options.stages or (name == "time" and self.device.kind == "cpu"):
                continue
            if name == "time":
                self._time(trial, alone)
            else:
                with trial.stage(name):
                    stages.STAGES[name](trial)
            trial.progress(name, 1, 1)
        stages.try_beyond(trial)

    def _time(self, trial: Trial, alone: bool) -> None:
        """With the board to itself, if it hasn't got that already, as long as it must be quiet.
        Outputs are judged after it, also where a verdict ended it: a wrong one counts before that.
        """
        turn = contextlib.nullcontext() if alone else self._alone(trial, in_slices=True)
        try:
            with turn, trial.stage("time"):
                stages.time(trial)
        except Verdict:
            with trial.stage("time"):
                trial.catch_up()
            raise
        with trial.stage("time"):
            trial.catch_up()

    @contextlib.contextmanager
    def _alone(self, trial: Trial, in_slices: bool = False) -> Iterator[None]:
        """With the board to itself a judgement needs no turn for each of its calls. `in_slices`: it
        may let others in between two steps.
        """
        with self.turns.alone() as pause, self._quiet(trial):
            before = trial.turn, trial.pause
            trial.turn = nobody_else
            if in_slices:
                trial.pause = pause
            try:
                yield
            finally:
                trial.turn, trial.pause = before

    @contextlib.contextmanager
    def _quiet(self, trial: Trial) -> Iterator[None]:
        """Both sides on the quiet cores, where this thread is."""
        if self._cores is None:
            yield
            return
        assert trial.session is not None
        sides = trial.referee, trial.session
        try:
            for side in sides:
                self._move(side, self._cores.quiet)
            yield
        finally:
            for side in sides:
                self._move(side, self._cores.busy)

    def _quiet_thread(self) -> contextlib.AbstractContextManager[None]:
        """The supervisor's threads are never in the way of the one that passes the token for long,
        and must not wait for a core while they hold Python's lock.
        """
        if self._cores is None:
            return contextlib.nullcontext()
        return cores.this_thread_on(self._cores.quiet)

    @staticmethod
    def _close_report(trial: Trial, session: Session) -> None:
        report = trial.report
        report.kernels = report.kernels or launched(trial)
        report.log_tail = session.channel.log_tail()
        with contextlib.suppress(JudgeFailure):
            ended = session.end()
            report.peak_memory_bytes = report.peak_memory_bytes or ended.get("peak_memory")


class Diagnosis:
    """Tells a failure of ours from one of the board, which fails whoever uses it next, too."""

    def __init__(self, device: DeviceSpec) -> None:
        self._device = device
        self._lock = threading.Lock()
        self._found, self._until = boards.Probed(True), float("-inf")

    def of(self, failure: JudgeFailure) -> JudgeFailure:
        """The same, or a BoardFailure where the board fails its probe. Judgements that end together
        ask once.
        """
        if self._device.kind != "cuda" or isinstance(failure, BoardFailure):
            return failure
        with self._lock:
            if time.monotonic() > self._until:
                self._found = boards.probe(self._device)
                self._until = time.monotonic() + DIAGNOSIS_SECONDS
        return failure if self._found.ok else BoardFailure(f"{self._found.reason}; so {failure}")


def launched(trial: Trial) -> list[dict]:
    """The kernels that were seen, without what only a compiler or a board can say."""
    calls: dict[str, int] = {}
    for one in trial.observed:
        for name, count in one.launches.items():
            calls[name] = calls.get(name, 0) + count
    unknown = dict.fromkeys(("hash", "registers", "spills", "shared_bytes", "device_ms"))
    return [{"name": name, **unknown, "calls": count} for name, count in sorted(calls.items())]
