"""On the interpreter device: kernels may say only what Triton's compiler takes.

The interpreter runs a kernel's body as Python: it imports, reads global lists, calls numpy, and
breaks out of loops, none of which compiles for a board. A statement that the compiler would refuse
becomes an error here, raised where the kernel gets to it: a branch that is never taken is compiled
by nobody either.
"""

import ast
import builtins
import inspect
import types
from collections.abc import Iterator
from typing import Any

import triton
from triton.compiler.code_generator import CodeGenerator
from triton.runtime import interpreter
from triton.runtime.jit import JITCallable

from runner.engine.kernel_calls import check_calls

ABSENT = object()
# These have no visitor of their own: the one of what they stand in reads them.
PARTS = (ast.Starred, ast.FormattedValue)
NAMED = (types.ModuleType, JITCallable, triton.KernelInterface, triton.language.constexpr)
VALUES = (int, float, bool, str, type(None))  # of a module: `math.pi`
PYTHON_MODULES = frozenset({"math", "builtins"})  # called while compiling, with constants
INSIDE = frozenset({"handle"})  # the interpreter's own side of a tensor: numpy's array is there
BODIES = frozenset({"body", "orelse", "finalbody", "handlers"})


class OnlyTriton(interpreter.ASTTransformer):
    """The interpreter's own transformer for one function, which also puts an error in the place of
    each statement that doesn't compile.
    """

    def __init__(self, function: Any) -> None:
        self._scope = scope_of(function)
        self._locals: frozenset[str] = frozenset()

    def visit(self, node: ast.AST) -> Any:
        """A node as the interpreter runs it."""
        if isinstance(node, ast.FunctionDef):
            if self._locals:
                return error_at(node, "a kernel has no function inside")
            self._locals = names_set_in(node)
        elif isinstance(node, ast.stmt):
            reason = self._refused(node)
            if reason:
                return error_at(node, reason)
        return super().visit(node)

    def _refused(self, statement: ast.stmt) -> str | None:
        """Why the compiler would not take this statement, without those inside of it; or None."""
        return next(filter(None, map(self._wrong_with, own_nodes(statement))), None)

    def _wrong_with(self, node: ast.AST) -> str | None:
        if isinstance(node, ast.stmt | ast.expr) and not compiles(node):
            return f"a kernel has no `{type(node).__name__.lower()}`"
        if isinstance(node, ast.Attribute):
            if node.attr in INSIDE:
                return f"`.{node.attr}` is the interpreter's own"
            return self._wrong_attribute(node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            return self._wrong_name(node.id)
        return None

    def _wrong_name(self, name: str) -> str | None:
        if name in self._locals or name in CodeGenerator.builtin_namespace:
            return None
        value = self._scope.get(name, ABSENT)
        if value is ABSENT or usable(value):
            return None
        return f"the global `{name}` is neither a constexpr nor Triton's"

    def _wrong_attribute(self, node: ast.Attribute) -> str | None:
        """What a module that isn't Triton's has to offer: values and Triton's functions."""
        path = dotted(node)
        if not path or path[0] in self._locals:
            return None
        value = self._scope.get(path[0], ABSENT)
        for name in path[1:]:
            if type(value) is not types.ModuleType or trusted(value):
                return None
            value = getattr(value, name, ABSENT)
        if type(value) in (*VALUES, types.ModuleType) or value is ABSENT or usable(value):
            return None
        return f"`{'.'.join(path)}` is not Triton's"


def compiles(node: ast.stmt | ast.expr) -> bool:
    """Does Triton's compiler know this kind of node?"""
    return isinstance(node, PARTS) or hasattr(CodeGenerator, f"visit_{type(node).__name__}")


def usable(value: Any) -> bool:
    """May a kernel name this object of its module? Triton's own rule for globals."""
    if type(value) in VALUES:
        return bool(triton.knobs.compilation.allow_non_constexpr_globals)
    return (
        isinstance(value, NAMED)
        or getattr(value, "__triton_builtin__", False) is True
        or getattr(value, "__triton_aggregate__", False) is True
        or str(getattr(value, "__module__", "")).startswith("triton")
        or (isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"))
    )


def trusted(module: types.ModuleType) -> bool:
    """Is a module one whose functions a kernel calls?"""
    return module.__name__.partition(".")[0] == "triton" or module.__name__ in PYTHON_MODULES


def scope_of(function: types.FunctionType) -> dict[str, Any]:
    """What a function's free names mean, beside Python's own."""
    closed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    found = {name: cell.cell_contents for name, cell in closed if _is_filled(cell)}
    return {**vars(builtins), **function.__globals__, **found}


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def names_set_in(function: ast.FunctionDef) -> frozenset[str]:
    """A function's parameters and what is assigned in it."""
    arguments = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    stored = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return frozenset(arguments | stored | {"interpreter_semantic"})


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """A statement and its expressions; not the statements in its body, nor annotations."""
    yield statement
    for name, value in ast.iter_fields(statement):
        if name in BODIES or name == "annotation":
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST):
                yield from ast.walk(item)


def dotted(node: ast.Attribute) -> list[str]:
    """`math.pi` -> ["math", "pi"]; nothing for an attribute of anything but names."""
    path = [node.attr]
    inner = node.value
    while isinstance(inner, ast.Attribute):
        path.append(inner.attr)
        inner = inner.value
    return [*path, inner.id][::-1] if isinstance(inner, ast.Name) else []


def error_at(node: ast.stmt, reason: str) -> ast.stmt:
    """A statement that raises."""
    message = f"{reason}: the interpreter would run it, no board's compiler takes it"
    error = ast.Call(ast.Name("SyntaxError", ast.Load()), [ast.Constant(message)], [])
    return ast.copy_location(ast.Raise(error), node)


def require_triton() -> None:
    """Hold every kernel in the interpreter of this process to it, helpers included."""
    original = interpreter.FunctionRewriter._transform_ast

    def transform(self: Any, source: str) -> Any:
        if inspect.isfunction(self.fn):
            self.ast_transformer = OnlyTriton(self.fn)
        tree = original(self, source)
        check_calls(tree)
        return ast.fix_missing_locations(tree)

    interpreter.FunctionRewriter._transform_ast = transform
