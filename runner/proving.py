"""Proving the suite over several processes: each task's mutants, and its plain solution."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.suite import Task

LONGEST = 900.0  # seconds for a task's mutants, or for its solution
PLAIN = Path(__file__).resolve().parents[1] / "samples" / "plain"


@dataclass(frozen=True)
class Row:
    """What was found about a task.

    `accepted` is None where the device judges none of its cases. `faults` are the sentences
    against the reference, the solution, or the process that ran them.
    """

    task: str
    category: str
    accepted: bool | None
    cases: int
    planted: tuple[str, ...]
    survivors: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def killed(self) -> int:
        return len(self.planted) - len(self.survivors)

    @property
    def proven(self) -> bool:
        """No mutant survives, and nothing speaks against the reference and the solution."""
        return not self.survivors and not self.faults

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"killed": self.killed}


class Prover:
    """A process that proves, started when it is asked and again after it died."""

    def __init__(self, device: str):
        self.kind, _, self._number = device.partition(":")
        self.device = "cuda:0" if self.kind == "cuda" else device  # it sees one board
        self._running: subprocess.Popen[str] | None = None

    def ask(self, part: str, task: str, seed: int, path: Path | None = None) -> dict[str, Any]:
        """The reply of `benchmark.suite.proving`; `failed` says why there is none."""
        request = {"part": part, "task": task, "device": self.device, "seed": seed}
        running = self._process()
        assert running.stdin is not None
        assert running.stdout is not None
        overdue = threading.Event()

        def end() -> None:  # a kernel that doesn't end can only end with its process
            overdue.set()
            running.kill()

        late = threading.Timer(LONGEST, end)
        late.start()
        try:
            running.stdin.write(json.dumps(request | {"path": str(path)}) + "\n")
            running.stdin.flush()
            line = running.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if not line:
            self.close()
            status = f"the process died with status {running.returncode}"
            said = f"no answer within {LONGEST:g} s: " if overdue.is_set() else ""
            return {"failed": said + status}
        reply = json.loads(line)
        assert isinstance(reply, dict)
        return reply

    def close(self) -> None:
        """End the process, once it has ended what it is doing."""
        if self._running is not None:
            self._running.communicate()
            self._running = None

    def _board(self) -> str:
        """The board as the driver counts: Triton launches on the first that a process sees."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        number = int(self._number or 0)
        return visible[number] if len(visible) > number and visible[number] else str(number)

    def _process(self) -> subprocess.Popen[str]:
        if self._running is None:
            environment = os.environ | {"OMP_NUM_THREADS": "1"}
            if self.kind == "cuda":
                environment["CUDA_VISIBLE_DEVICES"] = self._board()
            else:
                environment["TRITON_INTERPRET"] = "1"
            self._running = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "benchmark.suite.proving"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
                text=True,
            )
        return self._running


def prove(task: Task, prover: Prover, seed: int, solutions: Path = PLAIN) -> Row:
    """The row of one task; `solutions` holds `<Category>/<task>.py`."""
    mutation = prover.ask("mutants", task.name, seed)
    path = solutions / task.category / f"{task.name}.py"
    if path.is_file():
        solved = prover.ask("solution", task.name, seed, path)
    else:
        solved = {"failed": f"there is no {path}"}
    wrong = [solved["failed"]] if "failed" in solved else solved["faults"]
    broken = [mutation["failed"]] if "failed" in mutation else mutation["reference"]
    cases = solved.get("cases", 0)
    return Row(
        task=task.name,
        category=task.category,
        accepted=None if "failed" not in solved and not cases else not wrong,
        cases=cases,
        planted=tuple(mutation.get("planted", ())),
        survivors=tuple(mutation.get("survivors", ())),
        faults=(*(f"reference: {b}" for b in broken), *(f"solution: {w}" for w in wrong)),
    )


def prove_all(
    tasks: Sequence[Task], device: str, seed: int, jobs: int, solutions: Path = PLAIN
) -> Iterator[Row]:
    """The rows of all tasks as they are done, in `jobs` processes."""
    provers: queue.SimpleQueue[Prover] = queue.SimpleQueue()
    crew = [Prover(device) for _ in range(jobs)]
    for prover in crew:
        provers.put(prover)

    def one(task: Task) -> Row:
        prover = provers.get()
        try:
            return prove(task, prover, seed, solutions)
        finally:
            provers.put(prover)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in as_completed([pool.submit(one, task) for task in tasks]):
                yield done.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
            for prover in crew:
                prover.close()
