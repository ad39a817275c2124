"""Run a candidate on the small cases with Triton's interpreter; one JSON line per case.

A process of its own, because TRITON_INTERPRET counts when triton is imported and an out-of-bounds
load kills it: `python tests/suite/interpret.py samples/plain/Activation/gelu.py [--device cuda]`.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TRITON_INTERPRET", "1")


def load(path: Path):
    """The module of a candidate's file."""
    spec = importlib.util.spec_from_file_location(f"candidate_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def judged(task, case, function, device: str, seed: int = 11) -> dict:
    """The case's comparison, as a dict; every draw gets the same arguments."""
    from benchmark.suite.trees import copied

    arguments = task.arguments(case, seed, device)
    outputs, after, start = [], None, time.monotonic()
    for _ in range(task.draws):
        after = copied(arguments)
        outputs.append(function(*after.args, **after.kwargs))
    result = task.compare(case, arguments, outputs, after)
    seconds = round(time.monotonic() - start, 2)
    return {"case": case.name, "shape": case.describe(), "seconds": seconds} | vars(result)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--task", help="the task's name, when the file's is another")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    from benchmark import suite

    task = suite.get(options.task or options.path.stem)
    function = getattr(load(options.path), task.name)
    kind = options.device.split(":")[0]
    failed = 0
    for case in task.cases if kind == "cuda" else task.small_cases:
        if task.judgeable_on(kind, case):
            result = judged(task, case, function, options.device)
            failed += result["verdict"] != "passed"
            sys.stdout.write(json.dumps(result) + "\n")
            sys.stdout.flush()  # what follows may kill the process
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
