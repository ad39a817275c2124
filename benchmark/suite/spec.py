"""What a task is: its cases, arguments, contract and comparison. Frozen; tensors live only in
`Arguments`.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from benchmark import vocabulary

if TYPE_CHECKING:
    from benchmark.suite.checks import Check
    from benchmark.suite.inputs import Maker

# Triton's interpreter computes these silently wrong, so they are never judged there.
NOT_ON_INTERPRETER = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Case:
    """One shape and spread of a task's inputs; the seed comes at call time.

    `options` are the arguments away from their defaults, JSON-able (a dtype by its name). `layout`
    is how the drawn tensors lie in memory, a word of `inputs.LAYOUTS`.
    """

    name: str
    kind: str
    dtype: str
    sizes: Mapping[str, int]
    family: str
    options: Mapping[str, Any] = field(default_factory=dict)
    layout: str = "contiguous"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes in their order: the shape of the main input of most tasks."""
        return tuple(self.sizes.values())

    def describe(self) -> str:
        """One line for people: `rows=37 columns=781 float32 heavy_tail dim=0`."""
        words = [f"{name}={size}" for name, size in self.sizes.items()]
        words += [self.dtype, self.family]
        words += [f"{name}={value}" for name, value in self.options.items()]
        if self.layout != "contiguous":
            words.append(self.layout)
        return " ".join(words)


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call: trees of tensors, numbers, strings, lists, tuples."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """How far an output is from the truth.

    `error`, `reference_error` (PyTorch's own) and `tolerance` are in `unit`; None where not
    measured.
    """

    verdict: str
    error: float | None = None
    reference_error: float | None = None
    tolerance: float | None = None
    unit: str = ""
    detail: str = ""

    @property
    def passed(self) -> bool:
        return self.verdict == vocabulary.PASSED


@dataclass(frozen=True)
class Trial:
    """What a check looks at: the call's untouched arguments and what the candidate returned."""

    task: Task
    case: Case
    arguments: Arguments
    outputs: list[Any]
    mutated: Arguments | None


@dataclass(frozen=True, eq=False)
class Task:
    """An operator to implement: reference, inputs, check and cost. Built by the registry's
    decorators. `cases` decide; `beyond` go beyond the published contract, are tried and reported,
    and decide nothing.
    """

    name: str
    category: str
    difficulty: int
    signature: str
    function: Callable[..., Any]
    inputs: Callable[[Maker], Arguments]
    cases: tuple[Case, ...]
    check: Check
    flops_model: Callable[[Case], float]
    truth_function: Callable[..., Any] | None = None
    bytes_model: Callable[[Case], float] | None = None
    mutates: tuple[str, ...] | bool = ()
    may_write: tuple[str, ...] = ()  # parameters whose tensors the call may leave as anything
    delegates: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    draws: int = 1
    beyond: tuple[Case, ...] = ()
    copies: tuple[str, ...] = ()  # cases whose answer is an argument as it is: no kernel is needed

    @property
    def description(self) -> str:
        """What the operator does: the reference's docstring."""
        return inspect.getdoc(self.function) or ""

    @cached_property
    def reference_source(self) -> str:
        """The reference as written, without the decorators that register it."""
        from benchmark.suite.digest import undecorated

        return undecorated(self.function)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes its cases are about, each once, in the order of the vocabulary."""
        used = {case.dtype for case in self.cases}
        return tuple(dtype for dtype in vocabulary.DTYPES if dtype in used)

    @property
    def small_cases(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.kind == "small")

    @property
    def timed_cases(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.kind == "timed")

    @property
    def tolerance(self) -> str:
        """The rule of the comparison in one sentence."""
        return self.check.describe()

    @cached_property
    def digest(self) -> str:
        """64 hex digits over code, cases and tolerances; docstrings, comments and layout don't
        count.
        """
        from benchmark.suite.digest import task_digest

        return task_digest(self)

    def case(self, name: str) -> Case:
        """The case of this name; KeyError with the known names otherwise."""
        everything = (*self.cases, *self.beyond)
        for case in everything:
            if case.name == name:
                return case
        known = ", ".join(case.name for case in everything)
        raise KeyError(f"task {self.name} has no case {name!r}; it has {known}")

    def arguments(self, case: Case, seed: int, device: str) -> Arguments:
        """Fresh arguments on `device`, the same for the same (task, case, seed, device type)."""
        from benchmark.suite.inputs import Maker

        words = f"{self.name}\0{case.name}\0{seed}".encode()
        mixed = int.from_bytes(hashlib.sha256(words).digest()[:8], "big") >> 1
        return self.inputs(Maker.seeded(case, mixed, device))

    def reference(self, arguments: Arguments) -> Any:
        """PyTorch's answer in the case's dtype, TF32 off and half products summed in float32: the
        baseline that is timed. May write in place.
        """
        with strict_precision(), whole_sums():
            return self.function(*arguments.args, **arguments.kwargs)

    def truth(self, arguments: Arguments) -> Any:
        """The answer in float64; call it with arguments that `trees.upcast` has copied."""
        function = self.truth_function or self.function
        with strict_precision():
            return function(*arguments.args, **arguments.kwargs)

    def compare(
        self, case: Case, arguments: Arguments, outputs: list[Any], mutated: Arguments | None = None
    ) -> Comparison:
        """Judge the candidate's outputs (one per draw) against a truth computed here, from
        `arguments`.

        `arguments` are as they were before the call and stay so; `mutated` are the candidate's
        after it, needed where `may_mutate(case)`: ValueError without them.
        """
        if len(outputs) != self.draws:
            raise ValueError(f"{self.name} judges {self.draws} draws, got {len(outputs)} outputs")
        if self.may_mutate(case) and mutated is None:
            raise ValueError(f"{self.name}, {case.name}: arguments after the call are needed")
        with torch.no_grad():
            return self.check.judge(Trial(self, case, arguments, outputs, mutated))

    def may_mutate(self, case: Case) -> bool:
        """Whether the call writes into its arguments, which are then part of the answer, but for
        those of `may_write`.
        """
        if isinstance(self.mutates, bool) or self.may_write:
            return bool(self.mutates or self.may_write)
        return any(bool(case.options.get(option)) for option in self.mutates)

    @cached_property
    def free_places(self) -> frozenset[str]:
        """The places of the arguments of `may_write`, given by position or by name."""
        order = list(inspect.signature(self.function).parameters)
        by_position = [f"argument[{order.index(name)}]" for name in self.may_write]
        return frozenset([*by_position, *(f"argument.{name}" for name in self.may_write)])

    def flops(self, case: Case) -> float:
        """Floating-point operations of the textbook algorithm."""
        return float(self.flops_model(case))

    def bytes(self, case: Case) -> float:
        """Minimal traffic: each input read once, each output written once."""
        from benchmark.suite.cost import traffic

        return float((self.bytes_model or traffic(self))(case))

    def judgeable_on(self, device_kind: str, case: Case) -> bool:
        """Whether a device of this kind ("cpu": Triton's interpreter, or "cuda") can judge the
        case.
        """
        if device_kind == "cuda":
            return True
        return case.kind == "small" and case.dtype not in NOT_ON_INTERPRETER


@contextlib.contextmanager
def strict_precision() -> Iterator[None]:
    """float32 means float32: TF32 off in matrix products and in cuDNN, as before afterwards."""
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


@contextlib.contextmanager
def whole_sums() -> Iterator[None]:
    """Products of half dtypes are summed in float32, also where cuBLAS splits a sum: by default it
    may add the parts in the half dtype, which overflows float16 where the sum doesn't. As before
    afterwards.
    """
    products = torch.backends.cuda.matmul
    before = (
        products.allow_fp16_reduced_precision_reduction,
        products.allow_bf16_reduced_precision_reduction,
    )
    products.allow_fp16_reduced_precision_reduction = False
    products.allow_bf16_reduced_precision_reduction = False
    try:
        yield
    finally:
        (
            products.allow_fp16_reduced_precision_reduction,
            products.allow_bf16_reduced_precision_reduction,
        ) = before
