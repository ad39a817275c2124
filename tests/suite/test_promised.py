"""What decides is what the published contract promises: its dtypes, its layouts, its names, its
freedom to write.
"""

import inspect
from collections import Counter

import pytest

from benchmark import suite
from benchmark.suite import promised
from benchmark.suite.inputs import small, timed, with_options
from benchmark.suite.manifest import Published, published
from benchmark.suite.trees import copied

TASKS = suite.all_tasks()
each_task = pytest.mark.parametrize("task", TASKS, ids=[task.name for task in TASKS])
SINGLE = Published("t", "Math", 1, "t(x)", ("float32",))
HALF = with_options(small("half", "wide", "float16", rows=3, columns=5), dim=1)
STRIDED = small("strided", "ties", layout="strided", rows=7, columns=9)


@each_task
def test_no_deciding_case_goes_beyond_the_publication(task):
    fact = published()[task.name]
    assert [case.name for case in task.cases if promised.goes_beyond(fact, case)] == []


@each_task
def test_what_goes_beyond_has_a_twin_that_decides(task):
    for case in task.beyond:
        twin = task.case(f"{case.name}-plain")
        assert twin in task.small_cases
        assert (twin.sizes, twin.family, twin.options) == (case.sizes, case.family, case.options)


@each_task
def test_what_goes_beyond_is_said(task):
    told = " ".join(task.differences)
    for case in task.beyond:
        assert case.layout == "contiguous" or case.layout in told
        assert case.dtype in ("float32", "complex64") or case.dtype in told


@each_task
def test_no_two_timed_cases_are_the_same(task):
    seen = Counter(
        (repr(dict(c.sizes)), c.dtype, c.family, repr(sorted(c.options.items())))
        for c in task.timed_cases
    )
    assert max(seen.values()) == 1


def test_a_dtype_or_layout_that_was_not_published_is_set_apart():
    cases, beyond = promised.split(SINGLE, (HALF, STRIDED))
    assert beyond == (HALF, STRIDED)
    assert [(case.name, case.dtype, case.layout) for case in cases] == [
        ("small-half-plain", "float32", "contiguous"),
        ("small-strided-plain", "float32", "contiguous"),
    ]
    assert cases[0].options == {"dim": 1}


def test_what_was_published_decides_as_it_is():
    both = Published("t", "Math", 1, "t(x)", ("float32", "float16"), any_layout=True)
    assert promised.split(both, (HALF, STRIDED)) == ((HALF, STRIDED), ())


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_a_conversion_that_the_signature_offers_was_promised(dtype):
    asked = with_options(HALF, dtype=dtype)
    assert promised.split(SINGLE, (asked,)) == ((asked,), ())


def test_integers_are_left_to_the_description():
    whole = small("whole", "integers", "int64", n=9)
    assert promised.split(SINGLE, (whole,)) == ((whole,), ())


def test_a_timed_twin_does_not_time_the_same_again():
    large, half = timed("large", "mixed", n=64), timed("half", "mixed", "float16", n=64)
    cases, beyond = promised.split(SINGLE, (large, half))
    assert [dict(case.sizes) for case in cases] == [{"n": 64}, {"n": 32}]
    assert beyond == ()


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("relu_sqrt", "fused_relu_sqrt"),
        ("add_gelu", "fused_add_gelu"),
        ("linalg_svd", "svd"),
        ("linalg_cholesky", "cholesky"),
        ("torch_permute_copy", "permute_copy"),
        ("SGD", "sgd_step"),
    ],
)
def test_names_of_published_prompts_are_names_here(name, task):
    assert suite.resolve(name) == task
    assert name in suite.get(task).aliases


def test_tritonbench_names_28_tasks_without_their_prefix():
    short = [
        fact for fact in published().values() if fact.name.removeprefix("fused_") in fact.aliases
    ]
    assert len(short) == 28


def test_no_alias_is_another_task_s_name_or_alias():
    named = Counter(name for fact in published().values() for name in (fact.name, *fact.aliases))
    assert max(named.values()) == 1


WRITABLE = [task for task in TASKS if task.may_write]


@pytest.mark.parametrize("task", WRITABLE, ids=[task.name for task in WRITABLE])
def test_a_target_may_be_overwritten_and_nothing_else(task):
    case = task.case("small-odd")
    arguments = task.arguments(case, 3, "cpu")
    after = copied(arguments)
    output = task.reference(after)
    parameters = list(inspect.signature(task.function).parameters)
    written, other = after.args[parameters.index("C")], after.args[0]
    assert task.compare(case, arguments, [output], after).passed
    written.fill_(float("nan"))
    assert task.compare(case, arguments, [output], after).passed
    other[0, 0] += 1
    assert not task.compare(case, arguments, [output], after).passed


def test_three_tasks_have_a_target():
    assert {task.name for task in WRITABLE} == {
        "matrix_multiply_and_row_dot",
        "matrix_multiply_symmetric",
        "symmetric_mm_and_abs_sum",
    }


COPYING = [(task, name) for task in TASKS for name in task.copies]


@pytest.mark.parametrize(("task", "name"), COPYING, ids=[task.name for task, _ in COPYING])
def test_a_case_that_needs_no_kernel_is_answered_by_its_argument(task, name):
    arguments = task.arguments(task.case(name), 3, "cpu")
    assert task.reference(arguments).equal(arguments.args[0])


def test_tanh_is_called_by_what_both_publications_call_its_parameters():
    """One names the second parameter `out`, the other `out_tensor`."""
    task = suite.get("tanh")
    assert {name for case in task.cases for name in task.arguments(case, 0, "meta").kwargs} == set()
