"""The trusted process beside the board: knows the tasks, compares answers, finds what PyTorch
itself calls, times PyTorch.

Run as `python -m runner.engine.referee FD DEVICE`. It draws the arguments of a challenge itself,
from its own copy of the suite, and takes from a candidate nothing but bytes.
"""

import contextlib
import gc
import os
import platform
import socket
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch.utils._python_dispatch import TorchDispatchMode

from benchmark import suite
from benchmark.suite import registry
from benchmark.vocabulary import INPUT_MUTATED, PASSED, WRONG_DTYPE, WRONG_SHAPE
from runner.engine import protocol
from runner.engine.answers import (
    ARGUMENTS,
    BadManifest,
    Landing,
    Reader,
    WrongType,
    same_bits,
    same_form,
)
from runner.engine.memory import ease_memory, holds_much_memory, is_memory
from runner.engine.operators import FREE_KIND, kind_of

MAX_REQUEST = 8 << 20


@dataclass(frozen=True)
class Unusable:
    """An answer that can't be compared: the verdict, and why."""

    verdict: str
    detail: str


class Referee:
    """Serves the supervisor's requests: describe, compare, operators, and on a board those of the
    bench.
    """

    def __init__(self, sock: socket.socket, device: str) -> None:
        self.sock = sock
        self.device = device
        self._on_board = device.startswith("cuda")
        self._landing = Landing(pinned=self._on_board)
        self._kept: dict[int, Any] = {}  # answers by their number
        self._last_kept = 0
        self._operations: dict[str, Callable[[dict, list[int]], dict]] = {
            "tasks": self.tasks,
            "digest": self.digest,
            "describe": self.describe,
            "beyond": self.beyond,
            "compare": self.compare,
            "keep": self.keep,
            "forget": self.forget,
            "operators": self.operators,
        }
        if self._on_board:
            from runner.engine.bench import RefereeBench

            self._operations |= RefereeBench(device, sock).operations()

    def serve(self) -> None:
        """Say hello, then answer until the supervisor goes. Any exception is ours and is reported
        as such.
        """
        if self._on_board:
            self.describe({"task": suite.names()[0]}, [])  # imports what torch needs for shapes
        gc.collect()
        gc.freeze()  # torch's own objects never die: each later collection need not visit them
        protocol.send(self.sock, {"ok": True, "environment": environment(self.device)})
        with contextlib.suppress(protocol.Closed):
            while True:
                message, descriptors = protocol.receive(self.sock, MAX_REQUEST)
                try:
                    reply = self._operations[message["op"]](message, descriptors)
                except protocol.Closed:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever a stranger raises
                    reply = {
                        "ok": False,
                        "reason": traceback.format_exc()[-4000:],
                        "memory": is_memory(error),
                    }
                finally:
                    for descriptor in descriptors:
                        os.close(descriptor)
                protocol.send(self.sock, reply)

    def digest(self, _message: dict, _descriptors: list[int]) -> dict:
        """One digest over the whole suite: it reads every task's source, which takes a while."""
        return {"ok": True, "digest": registry.suite_digest()}

    def tasks(self, _message: dict, _descriptors: list[int]) -> dict:
        """What intake needs to know about every task."""
        found = [
            {
                "name": task.name,
                "category": task.category,
                "aliases": list(task.aliases),
                "description": task.description,
            }
            for task in suite.all_tasks()
        ]
        return {"ok": True, "tasks": found}

    def describe(self, message: dict, _descriptors: list[int]) -> dict:
        """The facts about a task that the supervisor needs; `task` is null for one that the suite
        doesn't have.
        """
        try:
            task = suite.get(message["task"])
        except KeyError as error:
            return {"ok": True, "task": None, "reason": str(error)}
        kind = self.device.partition(":")[0]
        facts = {
            "name": task.name,
            "category": task.category,
            "digest": task.digest,
            "aliases": list(task.aliases),
            "delegates": list(task.delegates),
            "draws": task.draws,
            "cases": [case_facts(task, case, kind) for case in task.cases],
        }
        return {"ok": True, "task": facts}

    def beyond(self, message: dict, _descriptors: list[int]) -> dict:
        """The cases of a task that go beyond the published contract."""
        task, kind = suite.get(message["task"]), self.device.partition(":")[0]
        return {"ok": True, "cases": [case_facts(task, case, kind) for case in task.beyond]}

    def keep(self, message: dict, descriptors: list[int]) -> dict:
        """Read an answer now, to be judged later by the number `kept`: its process may write on.
        `much`: together they take a good part of the board.
        """
        self._last_kept += 1
        answer = self._answer(suite.get(message["task"]), message, descriptors)
        self._kept[self._last_kept] = answer
        much = self._on_board and holds_much_memory()
        return {"ok": True, "kept": self._last_kept, "much": much}

    def forget(self, message: dict, _descriptors: list[int]) -> dict:
        """Keep these answers no longer, if they still are."""
        for number in message["kept"]:
            self._kept.pop(number, None)
        return {"ok": True}

    def compare(self, message: dict, descriptors: list[int]) -> dict:
        """Judge one answer, one that was kept or the one in the file: its outputs, and its
        arguments after the call where they came along.
        """
        task = suite.get(message["task"])
        case = task.case(message["case"])
        if "kept" in message:
            answer = self._kept.pop(message["kept"])
        else:
            answer = self._answer(task, message, descriptors)
        if isinstance(answer, Unusable):
            found = {"verdict": answer.verdict, "detail": answer.detail}
        else:
            arguments = task.arguments(case, message["seed"], self.device)
            found = self._compare(task, case, arguments, *answer)
            del arguments
        del answer
        gc.collect(0)
        if self._on_board:
            ease_memory()
        return {"ok": True, **found}

    def _answer(self, task: Any, message: dict, descriptors: list[int]) -> Any:
        """Outputs and arguments after the call out of the shared file, or Unusable."""
        reader = Reader(descriptors[0], message["size"], self.device, self._landing)
        try:
            outputs = [
                reader.tree(node, _place(i, task.draws))
                for i, node in enumerate(message["outputs"])
            ]
            after = reader.tree(message["after"], ARGUMENTS) if message.get("after") else None
        except WrongType as error:
            return Unusable(WRONG_DTYPE, str(error))
        except BadManifest as error:
            return Unusable(WRONG_SHAPE, f"unusable answer: {error}")
        return outputs, after

    def _compare(self, task: Any, case: Any, arguments: Any, outputs: list, after: Any) -> dict:
        mutated = None
        if task.may_mutate(case):
            if not same_form(after, [arguments.args, arguments.kwargs]):
                return {
                    "verdict": INPUT_MUTATED,
                    "detail": "the arguments have another form after the call",
                }
            mutated = type(arguments)(*after)
        elif after is not None and not same_bits(after, [arguments.args, arguments.kwargs]):
            return {"verdict": INPUT_MUTATED, "detail": changed_argument(after, arguments)}
        comparison = task.compare(case, arguments, outputs, mutated)
        return comparison_facts(comparison)

    def operators(self, message: dict, _descriptors: list[int]) -> dict:
        """The operators that PyTorch's own implementation calls on a case: name and numbers in the
        largest tensor; and the bytes that those of them touch which are work.
        """
        task = suite.get(message["task"])
        case = task.case(message["case"])
        arguments = task.arguments(case, message["seed"], self.device)
        listing = Listing()
        with torch.no_grad(), listing:
            task.reference(arguments)
        operators = [[name, size] for name, size in listing.largest.items()]
        return {"ok": True, "operators": operators, "bytes": listing.bytes}


class Listing(TorchDispatchMode):
    """Lists the operators called inside, with the numbers in the largest tensor of each, and counts
    the bytes that all but the free ones read and write.
    """

    def __init__(self) -> None:
        super().__init__()
        self.largest: dict[str, int] = {}
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        leaves = torch.utils._pytree.tree_leaves((args, kwargs or {}, result))
        tensors = [leaf for leaf in leaves if torch.is_tensor(leaf)]
        sizes = [tensor.numel() for tensor in tensors]
        self.largest[func.name()] = max([self.largest.get(func.name(), 0), *sizes])
        if kind_of(func.name()) != FREE_KIND:
            self.bytes += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return result


def _place(index: int, draws: int) -> str:
    return "output" if draws == 1 else f"output of draw {index}"


def changed_argument(after: Any, arguments: Any) -> str:
    """Which argument isn't what it was: a sentence."""
    before = [*enumerate(arguments.args), *arguments.kwargs.items()]
    with contextlib.suppress(TypeError, ValueError, AttributeError, IndexError):
        now = [*enumerate(after[0]), *after[1].items()]
        for (name, old), (_, new) in zip(before, now, strict=True):
            if not same_bits(new, old):
                return f"argument {name!r} was changed by the call; the contract leaves it alone"
    return "the arguments were changed by the call; the contract leaves them alone"


def case_facts(task: Any, case: Any, kind: str) -> dict:
    """A case as the supervisor and the report know it."""
    return {
        "case": case.name,
        "kind": case.kind,
        "shape": case.describe(),
        "dtype": case.dtype,
        "family": case.family,
        "judgeable": task.judgeable_on(kind, case),
        "may_mutate": task.may_mutate(case),
        "copies": case.name in task.copies,
        "flops": finite(task.flops(case)),
        "bytes": finite(task.bytes(case)),
    }


def comparison_facts(comparison: Any) -> dict:
    """A comparison as JSON: numbers that aren't finite become null."""
    return {
        "verdict": comparison.verdict,
        "error": finite(comparison.error),
        "reference_error": finite(comparison.reference_error),
        "tolerance": finite(comparison.tolerance),
        "unit": comparison.unit,
        "detail": comparison.detail[:2000] if comparison.verdict != PASSED else "",
    }


def finite(number: float | None) -> float | None:
    """The number, or None where there is none, or NaN, or infinity."""
    if number is None:
        return None
    number = float(number)
    return number if abs(number) < float("inf") else None


def environment(device: str) -> dict:
    """Versions of what judges here."""
    found = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": torch.version.cuda,
        "platform": platform.platform(),
    }
    if device.startswith("cuda"):
        found["device_name"] = torch.cuda.get_device_name(device)
    return found


def main() -> None:
    """Serve on the descriptor and the device that the command line names."""
    Referee(socket.socket(fileno=int(sys.argv[1])), sys.argv[2]).serve()


if __name__ == "__main__":
    main()
