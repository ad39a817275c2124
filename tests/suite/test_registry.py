"""Properties of every task: deterministic inputs, a reference that passes, mutants that fail,
models that add up.
"""

import ast
import inspect
import json
import re
import subprocess
import sys

import pytest
import torch

from benchmark import suite, vocabulary
from benchmark.suite import cost, manifest, mutants, proving, scenes
from benchmark.suite.inputs import FAMILIES, LAYOUTS
from benchmark.suite.trees import tensors

TASKS = suite.all_tasks()
each_task = pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
BUDGET = 24 * 2**30  # bytes: the smallest board that ought to judge everything


@each_task
def test_inputs_depend_on_the_seed_alone(task):
    for case in task.small_cases:
        first, again = task.arguments(case, 3, "cpu"), task.arguments(case, 3, "cpu")
        assert proving.same(first, again), case.name


@each_task
def test_another_seed_gives_other_inputs(task):
    if task.draws > 1 and not tensors(task.arguments(task.cases[0], 0, "cpu")):
        pytest.skip("takes no tensors")
    case = max(task.small_cases, key=lambda case: sum(case.sizes.values()))
    assert not proving.same(task.arguments(case, 3, "cpu"), task.arguments(case, 4, "cpu"))


@each_task
def test_the_reference_passes_its_own_check(task):
    assert [
        fault for seed in (1, 2) for fault in proving.faults_of_reference(task, "cpu", seed)
    ] == []


@each_task
def test_every_wrong_answer_is_rejected(task):
    killing = proving.kill(task, "cpu", scenes.SEED)
    assert killing.survivors == ()
    assert len(killing.planted) >= 10


@pytest.mark.parametrize("name", mutants.WITHOUT_EFFECT)
def test_a_parameter_without_effect_is_one_and_the_contract_names_it(name):
    task = suite.get(name)
    contract = " ".join((task.description, *task.differences))
    for parameter in mutants.WITHOUT_EFFECT[name]:
        assert parameter in inspect.signature(task.function).parameters
        assert re.search(rf"`{parameter}\b", contract), parameter


def left_at_default(task) -> set[str]:
    """Optional parameters that no small case moves away from their defaults."""
    parameters = inspect.signature(task.function).parameters
    left = {name for name, p in parameters.items() if p.default is not inspect.Parameter.empty}
    for case in task.small_cases:
        arguments = task.arguments(case, 0, "cpu")
        bound = inspect.signature(task.function).bind(*arguments.args, **arguments.kwargs)
        left -= {
            name
            for name, value in bound.arguments.items()
            if isinstance(value, torch.Tensor) or value != parameters[name].default
        }
    return left


@each_task
def test_every_parameter_is_asked_for_or_its_absence_explained(task):
    explained = " ".join(task.differences)
    assert {name for name in left_at_default(task) if f"`{name}`" not in explained} == set()


@each_task
def test_the_signature_is_the_published_one(task):
    wanted = ast.parse(f"def {task.signature}: ...").body[0].args
    given = inspect.signature(task.function).parameters
    named = [a.arg for a in (*wanted.posonlyargs, *wanted.args)]
    extra = [wanted.vararg.arg] if wanted.vararg else []
    assert list(given) == named + extra + [a.arg for a in wanted.kwonlyargs]
    optional = len(wanted.defaults)
    assert [n for n in named if given[n].default is not inspect.Parameter.empty] == (
        named[-optional:] if optional else []
    )
    assert task.name == task.signature.split("(")[0]


@each_task
def test_the_cases_are_well_formed(task):
    assert 5 <= len(task.small_cases) <= 10
    assert len(task.timed_cases) == 3
    for case in task.cases:
        assert case.name.startswith(case.kind)
        assert case.kind in vocabulary.CASE_KINDS
        assert case.dtype in vocabulary.DTYPES
        assert case.family in FAMILIES
        assert case.layout in LAYOUTS
        assert json.loads(json.dumps(dict(case.options))) == dict(case.options)


@each_task
def test_a_task_explains_itself(task):
    assert len(task.description) > 20
    assert task.tolerance.endswith(".")
    assert task.reference_source.startswith(f"def {task.name}(")


@each_task
def test_timed_cases_fit_a_board_of_24_gb_and_say_their_cost(task):
    for case in task.timed_cases:
        assert cost.judging_memory(task, case) < BUDGET, case.name
        assert task.bytes(case) > 0, case.name
        assert task.flops(case) > 0, case.name


def test_registered_tasks_are_published_ones_in_their_category():
    facts = manifest.published()
    for task in TASKS:
        fact = facts[task.name]
        assert (task.category, task.difficulty) == (fact.category, fact.difficulty)


def test_the_manifest_counts_as_the_vocabulary_does():
    facts = manifest.published().values()
    assert len(facts) == vocabulary.PUBLISHED_TASK_COUNT
    for category in vocabulary.CATEGORIES:
        assert sum(fact.category == category.name for fact in facts) == category.size


def test_every_published_task_is_there():
    assert manifest.missing(suite.names()) == ()


def test_digests_are_the_same_in_another_process():
    script = "from benchmark import suite; print(*(t.digest for t in suite.all_tasks()))"
    printed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "7"},
    )
    assert printed.stdout.split() == [task.digest for task in TASKS]
    assert len(set(printed.stdout.split())) == len(TASKS)


def test_an_unknown_task_names_near_misses():
    with pytest.raises(suite.UnknownTask, match=r"did you mean.*matmul"):
        suite.get("matmull")
    assert suite.resolve("matmull") is None


def test_the_suite_imports_no_django():
    script = (
        "import sys; from benchmark import suite; suite.names(); sys.exit('django' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
