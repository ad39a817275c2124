"""The second baseline: PyTorch's own compiler on a task's reference, in a process that does nothing
else. Its answer is judged like a candidate's, or it is no baseline.
"""

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmark import suite
from benchmark.vocabulary import PASSED

CACHES = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}


class CompiledReferences:
    """References compiled for one case each, by task and case."""

    def __init__(self, device: str, backend: Any = "inductor") -> None:
        self.device = device
        self._backend = backend
        self._compiled: dict[tuple[str, str], Callable[[Any], Any]] = {}
        self._caches = tempfile.TemporaryDirectory(prefix="kbx-compiled-")  # nobody else's code
        for name, folder in CACHES.items():
            os.environ[name] = os.path.join(self._caches.name, folder)
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of processes beside the board

    def compile(self, message: dict, _descriptors: list[int]) -> dict:
        """Compile, call and judge one reference: `reason` says why there is none, "" for nothing;
        `seconds` for the first call.
        """
        task = suite.get(message["task"])
        case = task.case(message["case"])
        torch._dynamo.reset()
        call = torch.compile(task.reference, backend=self._backend, dynamic=False)
        started = time.monotonic()
        try:
            reason = self._fault(task, case, message["seed"], call)
        except Exception as error:  # noqa: BLE001 - whatever a compiler raises is the answer
            reason = f"{type(error).__name__}: {error}"[:500]
        if not reason:
            self._compiled[task.name, case.name] = call
        return {"ok": True, "reason": reason, "seconds": time.monotonic() - started}

    def _fault(self, task: Any, case: Any, seed: int, call: Callable[[Any], Any]) -> str:
        arguments = task.arguments(case, seed, self.device)
        with torch.no_grad():
            outputs = [call(arguments) for _ in range(task.draws)]
        mutated = arguments if task.may_mutate(case) else None
        found = task.compare(case, task.arguments(case, seed, self.device), outputs, mutated)
        return "" if found.verdict == PASSED else f"{found.verdict}: {found.detail}"[:500]

    def call_of(self, task: str, case: str) -> Callable[[Any], Any]:
        """What was compiled for a case; KeyError for one that wasn't, or failed."""
        return self._compiled[task, case]
