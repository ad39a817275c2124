"""Reading a candidate's source without running it: the cut, the entry point, the kernels, the
tripwires.

Standard library only, so that intake can use it. Nothing here decides alone except what makes
judging impossible: no text, no Python, no entry point, no kernel. Findings explain and warn;
running decides.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass

from benchmark.vocabulary import FORBIDDEN, LOAD_ERROR, MAX_SOURCE_BYTES
from runner.intake.cleaning import cut_tests

KERNEL_DECORATORS = frozenset({"jit", "autotune", "heuristics"})
FALLBACK_ENTRY = "kernel_function"
INEXACT_IN_INTERPRETER = ("bfloat16", "float8", "bf16", "fp8")


@dataclass(frozen=True)
class Finding:
    """Something that a reader of the run should know; `code` is stable, `message` is a sentence."""

    code: str
    message: str
    stage: str

    def to_json(self) -> dict:
        """The finding as an element of the report's `findings`."""
        return {"code": self.code, "message": self.message, "stage": self.stage}


class Unloadable(Exception):  # noqa: N818 - a verdict, not an error of ours
    """The source can't be judged: `verdict` and a sentence that names the place and the remedy."""

    def __init__(self, verdict: str, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict


@dataclass(frozen=True)
class Source:
    """A source that parses. `entry` is the name to call, `kernels` its Triton functions in order of
    appearance.
    """

    text: str
    entry: str
    kernels: tuple[str, ...]
    findings: tuple[Finding, ...]
    kernel_names: frozenset[str]

    @property
    def reaches_inside(self) -> bool:
        """Does it name what only somebody needs who wants to change others' code?"""
        return any(finding.code == f"source-{REACHES_INSIDE}" for finding in self.findings)

    @property
    def inexact_in_interpreter(self) -> bool:
        """Does a kernel name bfloat16 or fp8, which Triton's interpreter computes wrong without a
        word?
        """
        return any(name.startswith(INEXACT_IN_INTERPRETER) for name in self.kernel_names)


def inspect_source(text: str, entries: Iterable[str], rules: bool = True) -> Source:
    """Parse a candidate's source; Unloadable with the verdict `load-error` or `forbidden`. Without
    `rules` nothing is forbidden or found by its text: running it must do.
    """
    text = cut_tests(_checked_text(text))
    tree = _parse(text)
    entry = _entry_point(tree, [*entries, FALLBACK_ENTRY])
    nodes = list(_kernels(tree))
    if rules and not nodes:
        raise Unloadable(
            FORBIDDEN,
            "no function is decorated with @triton.jit: the task asks for a kernel of your own",
        )
    findings = tuple(_findings(tree, frozenset(_names(tree)))) if rules else ()
    inside = frozenset(name for node in nodes for name in _names(node))
    return Source(text, entry, tuple(node.name for node in nodes), findings, inside)


def _checked_text(text: str) -> str:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise Unloadable(
            LOAD_ERROR, f"not UTF-8: lone surrogate at character {error.start}"
        ) from error
    if size > MAX_SOURCE_BYTES:
        raise Unloadable(LOAD_ERROR, f"{size} bytes of source; the limit is {MAX_SOURCE_BYTES}")
    if "\0" in text:
        raise Unloadable(LOAD_ERROR, "the source holds a NUL byte")
    return text


def _parse(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise Unloadable(LOAD_ERROR, f"line {error.lineno}: {error.msg}") from error
    except (RecursionError, MemoryError, ValueError) as error:
        raise Unloadable(LOAD_ERROR, f"can't be parsed: {type(error).__name__}: {error}") from error


def _entry_point(tree: ast.Module, entries: list[str]) -> str:
    defined = set(_top_level_names(tree))
    for entry in entries:
        if entry in defined:
            return entry
    functions = sorted(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    there = f"; it defines {', '.join(functions[:8])}" if functions else "; it defines no function"
    raise Unloadable(
        LOAD_ERROR, f"no top-level function `{entries[0]}` (or `{FALLBACK_ENTRY}`){there}"
    )


def _top_level_names(tree: ast.Module) -> Iterable[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def _kernels(tree: ast.Module) -> Iterable[ast.FunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(
            map(_is_kernel_decorator, node.decorator_list)
        ):
            yield node


def _is_kernel_decorator(node: ast.expr) -> bool:
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute):
        return target.attr in KERNEL_DECORATORS and _root(target) not in {"torch", "numba", "jax"}
    return isinstance(target, ast.Name) and target.id in KERNEL_DECORATORS | {"triton_jit"}


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _names(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield from node.name.split(".")


def _texts(tree: ast.AST) -> Iterable[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


REACHES_INSIDE = (
    "reaches-inside"  # no kernel needs it: such a run is held back for somebody to look
)
SUSPECT_NAMES = {
    "uses-frames": (
        {
            "_getframe",
            "currentframe",
            "getouterframes",
            "f_back",
            "get_objects",
            "get_referrers",
        },
        "looks at stack frames or at all live objects",
    ),
    "starts-processes": (
        {"subprocess", "fork", "popen", "Popen", "execv", "multiprocessing"},
        "starts processes",
    ),
    "ends-the-process": ({"_exit", "abort", "kill"}, "ends processes"),
    "native-code": (
        {"ctypes", "cffi", "load_inline", "cpp_extension", "dlopen", "CDLL"},
        "loads native code",
    ),
    "own-stream": ({"Stream", "set_stream", "ExternalStream"}, "uses streams of its own"),
    "cuda-graph": ({"CUDAGraph", "make_graphed_callables"}, "records CUDA graphs"),
    "torch-compile": ({"_dynamo", "_inductor"}, "reaches for torch's own compiler"),
    "tensor-subclass": (
        {"__torch_function__", "__torch_dispatch__", "_make_subclass", "_make_wrapper_subclass"},
        "defines what torch operators mean",
    ),
    "runs-text": (
        {"exec", "eval", "compile", "__import__"},
        "runs code that it builds at run time",
    ),
    REACHES_INSIDE: (
        {
            "__closure__",
            "cell_contents",
            "__globals__",
            "f_globals",
            "__subclasses__",
            "f_locals",
            "__code__",
        },
        "reaches inside of functions that are not its own",
    ),
    "clock": ({"elapsed_time", "perf_counter", "do_bench"}, "touches clocks"),
}


def _findings(tree: ast.Module, names: frozenset[str]) -> Iterable[Finding]:
    for code, (words, meaning) in SUSPECT_NAMES.items():
        found = sorted(words & names)
        if code == REACHES_INSIDE:
            found = sorted({*found, *(words & frozenset(_texts(tree)))})
        if found:
            yield Finding(f"source-{code}", f"the source {meaning}: {', '.join(found)}", "load")
    if _falls_back(tree):
        yield Finding("source-catches-all", "the source catches every exception somewhere", "load")


def _falls_back(tree: ast.Module) -> bool:
    handlers = (node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler))
    return any(_catches_all(handler) for handler in handlers)


def _catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return isinstance(handler.type, ast.Name) and handler.type.id in {"Exception", "BaseException"}
