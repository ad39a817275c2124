"""On the interpreter device: kernels call and touch memory as on a board.

The interpreter's tensors are numpy's underneath, and it calls whatever a name stands for. So each
call in a kernel is looked at when it is made, and the board's memory is there for kernels alone.
"""

import ast
import builtins
import functools
import math
import secrets
import sys
import types
from pathlib import Path
from typing import Any

import triton
from triton.runtime import interpreter
from triton.runtime.jit import ConstexprFunction

from runner.engine.listening import is_known_file

CHECK = f"checked_{secrets.token_hex(8)}"  # how a rewritten kernel names `checked`
OPERAND = f"operand_{secrets.token_hex(8)}"  # `operand`
SEMANTIC = f"semantic_{secrets.token_hex(8)}"  # and the interpreter's rules of assignment
_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
_OTHERS = "neg pos invert lt le gt ge getitem"
OPERATORS = frozenset(f"__{name}__" for name in _OTHERS.split()) | frozenset(
    f"__{prefix}{name}__" for prefix in ("", "r", "i") for name in _BINARY.split()
)
PLAIN = (bool, int, float, str, list, tuple, dict, set, type(None))
_triton = str(Path(triton.__file__).parent) + "/"
_builtin_values = frozenset(
    id(value) for module in (builtins, math) for value in vars(module).values()
)
DESCRIPTORS = (
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.BuiltinFunctionType,
)
KEPT = (  # classes that a kernel's numbers go through
    *(value for value in vars(interpreter).values() if isinstance(value, type)),
    triton.language.tensor,
    triton.language.semantic.TritonSemantic,
)
_found: dict[Any, dict[str, Any]] = {}
_codes: set[types.CodeType] = set()  # of kernels, as the interpreter runs them
_getframe = sys._getframe


def checked(value: Any) -> Any:
    """What a kernel is about to call; SyntaxError when no compiler would call it there."""
    if isinstance(value, ConstexprFunction):
        return _only_with_constants(value)
    if not may_be_called(value):
        name = str(getattr(value, "__name__", type(value).__name__))[:100]
        raise SyntaxError(
            f"`{name}` is not Triton's: the interpreter would call it, no board's compiler does"
        )
    return value


def _only_with_constants(function: ConstexprFunction) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, triton.language.tensor) for value in (*args, *kwargs.values())):
            raise SyntaxError("a constexpr function takes no tensors on any board")
        return function(*args, **kwargs)

    return call


def operand(value: Any) -> Any:
    """What a kernel is about to compute with; SyntaxError for an object that says itself what an
    operator means: a board would ask it while compiling, the interpreter with numbers.
    """
    inner = value.value if isinstance(value, triton.language.constexpr) else value
    kind = type(inner)
    if kind in PLAIN or _is_tritons_class(kind) or not OPERATORS & _methods_of(kind):
        return value
    raise SyntaxError(f"`{kind.__name__[:100]}` says what an operator means: no kernel needs that")


def _methods_of(kind: type) -> frozenset[str]:
    """The names of those operators that a class of the candidate's says itself."""
    return frozenset(
        name
        for owner in kind.__mro__
        for name, value in vars(owner).items()
        if name in OPERATORS and not _is_given(value)
    )


def _is_given(method: Any) -> bool:
    if type(method) is types.FunctionType:
        return is_known_file(method.__code__.co_filename)
    return type(method) is types.WrapperDescriptorType


def may_be_called(value: Any) -> bool:
    """Triton's own functions, those under @triton.jit, and the few of Python's that it compiles."""
    kind = type(value)
    if kind is types.MethodType:
        return may_be_called(value.__func__)
    if kind is functools.partial:
        return may_be_called(value.func)
    if kind is types.FunctionType:
        return is_tritons(value)
    if isinstance(value, type):
        return _is_tritons_class(value) or id(value) in _builtin_values or _is_named_tuple(value)
    if kind is types.BuiltinFunctionType:
        return id(value) in _builtin_values or type(value.__self__) in PLAIN
    return _is_tritons_class(kind) or getattr(kind, "__triton_aggregate__", False) is True


def is_tritons(function: types.FunctionType) -> bool:
    """Is a function Triton's, and what it wraps, too? NotImplementedError for a builtin of the
    candidate's own, which a board compiles and the interpreter can't.
    """
    if not function.__code__.co_filename.startswith(_triton):
        return False
    cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
    inner = [*cells, *(function.__kwdefaults__ or {}).values()]
    if all(is_tritons(one) for one in inner if type(one) is types.FunctionType):
        return True
    raise NotImplementedError("a builtin of its own is not supported in interpreter mode")


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _is_tritons_class(kind: type) -> bool:
    module = sys.modules.get(str(kind.__module__))
    file = str(getattr(module, "__file__", ""))
    return file.startswith(_triton) and getattr(module, kind.__name__, None) is kind


def _is_named_tuple(kind: type) -> bool:
    if kind.__bases__ != (tuple,) or not hasattr(kind, "_fields"):
        return False
    made_by = kind.__new__
    return isinstance(made_by, types.FunctionType) and not getattr(made_by, "__builtins__", True)


def check_calls(tree: ast.AST) -> None:
    """In a kernel's tree, as the interpreter has rewritten it: let each call and each operand be
    looked at.
    """
    for node in list(ast.walk(tree)):
        if isinstance(node, ast.Call):
            node.func = _through(CHECK, node.func)
        elif isinstance(node, ast.BinOp):
            node.left, node.right = _through(OPERAND, node.left), _through(OPERAND, node.right)
        elif isinstance(node, ast.UnaryOp):
            node.operand = _through(OPERAND, node.operand)
        elif isinstance(node, ast.Compare):
            node.left = _through(OPERAND, node.left)
            node.comparators = [_through(OPERAND, one) for one in node.comparators]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            node.value = _through(OPERAND, node.value)
        elif isinstance(node, ast.Name) and node.id == "interpreter_semantic":
            node.id = SEMANTIC


def _through(name: str, node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant):
        return node
    return ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [node], []), node)


def require_tritons_calls() -> None:
    """Hold every kernel in the interpreter of this process to it, helpers included."""
    vars(interpreter).update({CHECK: checked, OPERAND: operand})
    vars(interpreter)[SEMANTIC] = interpreter.interpreter_semantic
    rewriter = interpreter.FunctionRewriter
    rewrite, run = rewriter.rewrite_ast, rewriter._compile_and_exec

    def rewrite_ast(self: Any) -> Any:
        found = rewrite(self)
        if found is self.fn:
            raise OSError("@jit functions should be defined in a Python file")  # as on a board
        return found

    def compile_and_exec(self: Any, tree: Any) -> Any:
        function = run(self, tree)
        _codes.update(_with_inner(function.__code__))
        return function

    rewriter.rewrite_ast, rewriter._compile_and_exec = rewrite_ast, compile_and_exec
    _rewrite_combining()


def _with_inner(code: types.CodeType) -> list[types.CodeType]:
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return [code, *(found for part in inner for found in _with_inner(part))]


def _rewrite_combining() -> None:
    """What a reduction or a scan combines with is a kernel's function, too; the interpreter would
    run it as it stands.
    """
    owner = interpreter.ReduceScanOpInterface
    original = owner.__init__

    def init(self: Any, axis: Any, combine_fn: Any) -> None:
        original(self, axis, combine_fn)
        function = getattr(combine_fn, "fn", None)
        code = getattr(function, "__code__", None)
        if code is None or not code.co_filename.startswith(_triton):
            self.combine_fn = types.SimpleNamespace(fn=combine_fn.rewrite())

    owner.__init__ = init


def remember() -> None:
    """What Triton's classes are made of, before a candidate comes; for `require_unchanged`."""
    _found.update({owner: dict(vars(owner)) for owner in KEPT})


def require_unchanged() -> None:
    """Before a launch: SyntaxError when a candidate has given one of Triton's classes, which a
    kernel's numbers go through, anything of its own.
    """
    for owner, before in _found.items():
        for name, value in vars(owner).items():
            if value is not before.get(name) and _is_strange(value):
                raise SyntaxError(f"`{owner.__name__}.{name}` is Triton's, and was exchanged")


def _is_strange(value: Any) -> bool:
    kind = type(value)
    if kind is property:
        return any(_is_strange(part) for part in (value.fget, value.fset) if part)
    if kind in (staticmethod, classmethod):
        return _is_strange(value.__func__)
    if kind is types.FunctionType:
        return not is_known_file(value.__code__.co_filename)
    return kind not in (*PLAIN, *DESCRIPTORS) and not _is_tritons_class(kind)


def require_a_kernel() -> None:
    """Raise PermissionError unless a kernel is what touches the memory."""
    frame = _getframe(2)
    while frame.f_back and is_known_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame.f_code not in _codes:
        raise PermissionError("only kernels read and write a board's memory by its address")
