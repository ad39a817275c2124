"""What the interpreter refuses because no board's compiler takes it."""

import ast
import enum
import functools
import inspect
import math
import os
import textwrap

import numpy
import pytest
import triton
import triton.language as tl
from triton.language.extra import libdevice

from runner.engine.kernel_calls import may_be_called, operand
from runner.engine.kernel_language import OnlyTriton

ONE = tl.constexpr(1)
TWO = 2
WAITING: list = []


def helper(x):
    return x


def refused(function) -> list[int]:
    """The lines of a function, its `def` being 0, which would raise."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    changed = OnlyTriton(function).visit(tree)
    return [
        node.lineno - 1
        for node in ast.walk(changed)
        if isinstance(node, ast.Raise) and "board" in ast.unparse(node)
    ]


def imports(x):
    import numpy as np  # noqa: F401

    return x


def breaks(n):
    for i in range(n):
        if i > 3:
            break
    return n


def reads_lists(x):
    return x + WAITING[0]


def reads_numbers(x):
    return x + TWO


def calls_numpy(x):
    return numpy.maximum(x, 0)


def calls_python(x):
    return helper(x)


def calls_builtins(x):
    return abs(x)


def looks_inside(x):
    return x.handle.data


def has_lambda(x):
    return (lambda y: y)(x)


def has_function(x):
    def inner(y):
        return y

    return inner(x)


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (imports, [1]),
        (breaks, [3]),
        (reads_lists, [1]),
        (reads_numbers, [1]),
        (calls_numpy, [1]),
        (calls_python, [1]),
        (calls_builtins, [1]),
        (looks_inside, [1]),
        (has_lambda, [1]),
        (has_function, [1]),
    ],
)
def test_what_does_not_compile_raises_where_it_stands(function, lines):
    assert refused(function) == lines


def plain(x_ptr, n, BLOCK: tl.constexpr, ACT: tl.constexpr = "relu"):
    """A kernel that any board takes."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x: tl.tensor = tl.load(x_ptr + offsets, mask=offsets < n, other=float("-inf"))
    tl.static_assert(BLOCK >= 1, f"at least {BLOCK}")
    parts = [x, x]
    for _ in tl.static_range(2):
        x = x * math.pi + ONE + min(n, 3) + len(parts)
    while n > 0:
        n -= 1
    if ACT == "relu" and not n:
        x = tl.maximum(x, 0) if n > 3 else x
    print("x", x)  # noqa: T201 - on a board, too
    return x, triton.language.math.exp(x)


def test_what_compiles_is_left_alone():
    assert refused(plain) == []


def test_a_closed_over_constant_is_known_and_a_closed_over_list_refused():
    constant, things = tl.constexpr(3), [1]

    def with_constant(x):
        return x + constant

    def with_list(x):
        return x + things

    assert refused(with_constant) == []
    assert refused(with_list) == [1]


class Flags(enum.IntFlag):
    ONE = 1
    TWO = 2


GRAND = "class Grand:\n    def __mul__(self, other):\n        return other\n"
SCOPE: dict = {}
exec(compile(GRAND, "candidate.py", "exec"), SCOPE)
Grand = SCOPE["Grand"]


@pytest.mark.parametrize("module", [tl, tl.core, tl.math, tl.standard, libdevice])
def test_all_that_triton_offers_to_kernels_may_be_called(module):
    offered = {name: getattr(module, name) for name in dir(module) if not name.startswith("_")}
    tritons = {
        name: value
        for name, value in offered.items()
        if callable(value) and str(getattr(value, "__module__", "")).startswith("triton")
    }
    assert len(tritons) > 10
    assert [name for name, value in tritons.items() if not may_be_called(value)] == []


@pytest.mark.parametrize("value", [max, math.ceil, "x".upper, functools.partial(print, "x"), int])
def test_what_python_offers_to_kernels_may_be_called(value):
    assert may_be_called(value)


@pytest.mark.parametrize("value", [helper, numpy.maximum, numpy.dot, Grand, os.getpid, dict.get])
def test_nothing_else_may(value):
    assert not may_be_called(value)


@pytest.mark.parametrize("value", [1, 2.0, (1, 2), ONE, tl.float32, Flags.ONE, numpy.float32(1)])
def test_numbers_and_what_is_made_of_them_are_operands(value):
    assert operand(value) is value


@pytest.mark.parametrize("value", [Grand(), tl.constexpr(Grand())])
def test_what_says_itself_what_an_operator_means_is_none(value):
    with pytest.raises(SyntaxError, match="Grand"):
        operand(value)
