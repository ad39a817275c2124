"""The suite's own proof, a task at a time: the reference passes, a plain solution passes, and every
wrong answer is rejected on at least one case.

As a program it proves what standard input asks for, a JSON object a line:
`{"part": "mutants" | "solution", "task", "device", "seed", "path"}`. Only our own code runs here,
so there are no walls; but an out-of-bounds load kills Triton's interpreter, hence the process.
"""

import gc
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import torch

from benchmark.suite import mutants
from benchmark.suite.scenes import Scene, equal
from benchmark.suite.spec import Arguments, Case, Comparison, Task
from benchmark.suite.trees import copied, leaves


@dataclass(frozen=True)
class Killing:
    """What became of a task's mutants: the names of those planted, and of those that survive."""

    planted: tuple[str, ...]
    survivors: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """One case of a trusted candidate."""

    case: Case
    comparison: Comparison

    def __str__(self) -> str:
        return f"{self.case.name}: {self.comparison.detail or self.comparison.verdict}"


def cases_on(task: Task, device: str) -> tuple[Case, ...]:
    """The deciding cases whose reference the device computes: on a CPU the small ones, in every
    dtype.
    """
    return task.cases if device.startswith("cuda") else task.small_cases


def kill(task: Task, device: str, seed: int, kinds: Iterable[mutants.Mutant] = ()) -> Killing:
    """Try the mutants, largest small case first, each until it is rejected.

    Those that survive the small cases get the timed ones too where the device computes them.
    """
    alive = list(kinds or mutants.mutants_of(task))
    planted: set[str] = set()
    order = sorted(task.small_cases, key=lambda case: -sum(case.sizes.values()))
    names = [mutant.name for mutant in alive]
    for case in order:
        alive = _alive_after(Scene(task, case, seed, device), alive, planted)
    for case in cases_on(task, device):
        alive = [mutant for mutant in alive if mutant.name in planted]
        if case.kind == "timed" and alive:
            give_back(device)
            alive = _alive_after(Scene(task, case, seed, device), alive, planted)
    left = {mutant.name for mutant in alive}
    return Killing(
        tuple(name for name in names if name in planted),
        tuple(name for name in names if name in planted and name in left),
    )


def _alive_after(
    scene: Scene, alive: list[mutants.Mutant], planted: set[str]
) -> list[mutants.Mutant]:
    left = []
    for mutant in alive:
        answer = mutant.answer(scene)
        if answer is not None:
            planted.add(mutant.name)
        if answer is None or not scene.rejects(answer):
            left.append(mutant)
    return left


def judged(
    task: Task, function: Callable[..., Any], cases: Iterable[Case], device: str, seed: int
) -> Iterator[Judged]:
    """How a trusted function does on each case; every draw gets the same arguments."""
    for case in cases:
        give_back(device)
        arguments = task.arguments(case, seed, device)
        outputs, after = [], arguments
        for _ in range(task.draws):
            after = copied(arguments)
            outputs.append(function(*after.args, **after.kwargs))
        yield Judged(case, task.compare(case, arguments, outputs, after))


def faults_of_reference(task: Task, device: str, seed: int) -> list[str]:
    """What the reference's own check says against it, or that comparing changed the arguments."""
    faults = []
    for case in (*cases_on(task, device), *task.beyond):
        give_back(device)
        scene = Scene(task, case, seed, device)
        before = copied(scene.arguments)
        result = task.compare(case, scene.arguments, scene.right.outputs, scene.right.mutated)
        if not result.passed:
            faults.append(str(Judged(case, result)))
        if not same(scene.arguments, before):
            faults.append(f"{case.name}: comparing changed the arguments")
    return faults


def same(left: Arguments, right: Arguments) -> bool:
    """Whether two calls have the same arguments, tensors by value (NaN equals NaN) and strides."""
    pairs = zip(leaves(left), leaves(right), strict=True)
    return all(
        a.stride() == b.stride() and equal(a, b) if isinstance(a, torch.Tensor) else a == b
        for (_, a), (_, b) in pairs
    )


def solution(path: Path, task: Task) -> Callable[..., Any]:
    """The entry point in a solution's file, which is imported."""
    spec = importlib.util.spec_from_file_location(f"solution_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    function: Callable[..., Any] = getattr(module, task.name)
    return function


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """What the program writes for one line of its input. Afterwards it holds none of a board's
    memory: several such programs share one, and a large case takes some GiB.
    """
    try:
        return _answer(request)
    finally:
        give_back(request["device"])


def give_back(device: str) -> None:
    """Let go of memory on a board that nothing is in."""
    if device.startswith("cuda"):
        gc.collect()
        torch.cuda.empty_cache()


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    from benchmark import suite

    task, device, seed = suite.get(request["task"]), request["device"], request["seed"]
    if request["part"] == "mutants":
        killing = kill(task, device, seed)
        return {
            "reference": faults_of_reference(task, device, seed),
            "planted": list(killing.planted),
            "survivors": list(killing.survivors),
        }
    tried = (*task.cases, *task.beyond)  # ours hold beyond the published contract too
    cases = [case for case in tried if task.judgeable_on(device.partition(":")[0], case)]
    if not cases:
        return {"cases": 0, "faults": []}
    found = judged(task, solution(Path(request["path"]), task), cases, device, seed)
    return {"cases": len(cases), "faults": [str(j) for j in found if not j.comparison.passed]}


def serve(requests: Iterable[str], replies: TextIO) -> None:
    """Answer each line; what goes wrong in one becomes its `failed`."""
    for line in requests:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever a solution raises is its fault, reported
            reply = {"failed": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what solutions print goes elsewhere
    serve(sys.stdin, replies)
