"""A plain Triton solution of each task passes: the tolerance is not too strict for Triton's
arithmetic.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmark import suite

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "samples" / "plain").glob("*/*.py"))


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_a_plain_solution_passes_every_small_case(path):
    task = suite.get(path.stem)
    if not any(task.judgeable_on("cpu", case) for case in task.cases):
        pytest.skip("needs a GPU: the interpreter has none of its dtypes")
    run = subprocess.run(
        [sys.executable, "tests/suite/interpret.py", str(path)],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    task = suite.get(path.stem)
    judged = sum(task.judgeable_on("cpu", case) for case in task.small_cases)  # bfloat16: none
    assert run.stdout.count('"verdict": "passed"') == judged
