"""A plain Triton solution of each task passes: the tolerance is not too strict for Triton's
arithmetic.
"""

import pytest

from benchmark import suite
from runner.proving import PLAIN, Prover

SEED = 11
TASKS = suite.all_tasks()


@pytest.fixture(scope="session")
def prover():
    """One process with Triton's interpreter for all solutions."""
    prover = Prover("cpu")
    yield prover
    prover.close()


@pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
def test_a_plain_solution_passes_every_small_case(task, prover):
    tried = (*task.small_cases, *task.beyond)
    judged = [case for case in tried if task.judgeable_on("cpu", case)]
    if not judged:
        pytest.skip("needs a GPU: the interpreter has none of its dtypes")
    path = PLAIN / task.category / f"{task.name}.py"
    reply = prover.ask("solution", task.name, SEED, path)
    assert reply == {"cases": len(judged), "faults": []}


def test_every_sample_is_named_after_a_task_in_its_category():
    found = {path.relative_to(PLAIN).as_posix() for path in PLAIN.glob("*/*.py")}
    assert found == {f"{task.category}/{task.name}.py" for task in TASKS}
