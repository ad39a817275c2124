"""Properties of every task: deterministic inputs, a reference that passes, mutants that fail,
models that add up.
"""

import ast
import inspect
import json
import subprocess
import sys

import pytest
import torch

from benchmark import suite, vocabulary
from benchmark.suite import cost, manifest, mutants
from benchmark.suite.inputs import FAMILIES, LAYOUTS
from benchmark.suite.spec import Arguments
from benchmark.suite.trees import leaves

TASKS = suite.all_tasks()
SMALL = [pytest.param(t, c, id=f"{t.name}-{c.name}") for t in TASKS for c in t.small_cases]
TIMED = [pytest.param(t, c, id=f"{t.name}-{c.name}") for t in TASKS for c in t.timed_cases]
MUTANTS = [
    pytest.param(t, m, id=f"{t.name}-{m.__name__}") for t in TASKS for m in mutants.mutants_of(t)
]
each_task = pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
BUDGET = 24 * 2**30  # bytes: the smallest board that ought to judge everything


def same(left: Arguments, right: Arguments) -> bool:
    pairs = zip(leaves(left), leaves(right), strict=True)
    return all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) and a.stride() == b.stride()
        if isinstance(a, torch.Tensor)
        else a == b
        for (_, a), (_, b) in pairs
    )


@pytest.mark.parametrize(("task", "case"), SMALL)
def test_inputs_depend_on_the_seed_alone(task, case):
    first, again = task.arguments(case, 3, "cpu"), task.arguments(case, 3, "cpu")
    assert same(first, again)


@each_task
def test_another_seed_gives_other_inputs(task):
    if task.draws > 1 and not mutants.tensors(task.arguments(task.cases[0], 0, "cpu")):
        pytest.skip("takes no tensors")
    case = max(task.small_cases, key=lambda case: sum(case.sizes.values()))
    assert not same(task.arguments(case, 3, "cpu"), task.arguments(case, 4, "cpu"))


@pytest.mark.parametrize(("task", "case"), SMALL)
def test_the_reference_passes_its_own_check(task, case):
    for seed in (1, 2):
        arguments = task.arguments(case, seed, "cpu")
        before = mutants.copied(arguments)
        answer = mutants.honest(task, arguments)
        result = task.compare(case, arguments, answer.outputs, answer.mutated)
        assert result.passed, result.detail
        assert same(arguments, before), "compare changed the arguments"


@pytest.mark.parametrize(("task", "mutant"), MUTANTS)
def test_a_wrong_answer_is_rejected(task, mutant):
    for case in sorted(task.small_cases, key=lambda case: -sum(case.sizes.values())):
        arguments = task.arguments(case, mutants.SEED, "cpu")
        if mutants.rejected(task, case, arguments, mutant(task, case, arguments)):
            return
    pytest.fail(f"{task.name} accepts {mutant.__name__} on every small case")


def scaled(tensor: torch.Tensor) -> torch.Tensor:
    """Other values of the same kind: probabilities and definite matrices stay what they are."""
    return tensor * 0.5 + 0.25


def rolled(tensor: torch.Tensor) -> torch.Tensor:
    """Other places: what an argmax sees."""
    return tensor.reshape(-1).roll(1).reshape(tensor.shape)


def matters(task, case, arguments: Arguments, tensor: torch.Tensor, change) -> bool:
    """Whether PyTorch's answer with this tensor changed is wrong for the arguments."""
    changed = mutants.map_tree(arguments, lambda leaf: change(leaf) if leaf is tensor else leaf)
    return mutants.rejected(task, case, arguments, mutants.honest(task, changed))


@each_task
def test_every_tensor_argument_counts(task):
    case = max(task.small_cases, key=lambda case: (not case.options, sum(case.sizes.values())))
    arguments = task.arguments(case, mutants.SEED, "cpu")
    for tensor in mutants.tensors(arguments):
        if not mutants.floating(tensor) or tensor is arguments.kwargs.get("out"):
            continue
        assert any(matters(task, case, arguments, tensor, change) for change in (scaled, rolled))


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


@pytest.mark.parametrize(("task", "case"), TIMED)
def test_a_timed_case_fits_a_board_of_24_gb_and_says_its_cost(task, case):
    assert cost.judging_memory(task, case) < BUDGET
    assert task.bytes(case) > 0
    assert task.flops(case) > 0


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


@pytest.mark.xfail(strict=True, reason="tasks are still being written; remove when all 176 are")
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
