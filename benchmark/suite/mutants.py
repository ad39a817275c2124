"""Wrong answers that every task must reject on at least one of its small cases, made out of
PyTorch's right ones.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from benchmark.suite.checks import Close, Exact, Mixture, SameDistribution, expectations, floating
from benchmark.suite.cost import shapes
from benchmark.suite.spec import Arguments, Case, Task, Trial
from benchmark.suite.trees import copied, map_tree, tensors

SEED = 5
LOWER = {
    torch.float64: torch.float32,
    torch.complex128: torch.complex64,
    torch.float32: torch.float16,
    torch.float16: torch.float8_e4m3fn,
    torch.bfloat16: torch.float8_e4m3fn,
}


@dataclass(frozen=True)
class Answer:
    """What a candidate returned in each draw, and its arguments after the last."""

    outputs: list[Any]
    mutated: Arguments


def honest(task: Task, arguments: Arguments) -> Answer:
    """PyTorch's own answer, as a candidate would give it."""
    outputs, after = [], arguments
    for _ in range(task.draws):
        after = copied(arguments)
        outputs.append(copied(task.reference(after)))
    return Answer(outputs, after)


def rejected(task: Task, case: Case, arguments: Arguments, answer: Answer) -> bool:
    return not task.compare(case, arguments, answer.outputs, answer.mutated).passed


def changed(answer: Answer, change: Callable[[torch.Tensor], torch.Tensor]) -> Answer:
    """The answer with every non-empty tensor changed, in outputs and arguments alike."""

    def on_leaf(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.numel():
            return change(leaf).to(leaf.dtype).reshape(leaf.shape).contiguous()
        return leaf

    return Answer(map_tree(answer.outputs, on_leaf), map_tree(answer.mutated, on_leaf))


def zeros(task: Task, case: Case, arguments: Arguments) -> Answer:
    return changed(honest(task, arguments), torch.zeros_like)


def constant(task: Task, case: Case, arguments: Arguments) -> Answer:
    """Every tensor full of its own mean."""

    def mean(tensor: torch.Tensor) -> torch.Tensor:
        wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        return torch.full_like(wide, wide.nan_to_num(0, 0, 0).mean().item())

    return changed(honest(task, arguments), mean)


def identity(task: Task, case: Case, arguments: Arguments) -> Answer:
    """The first argument of the output's form, copied; without one, the first argument."""
    answer = honest(task, arguments)
    given = tensors(arguments)

    def passed_through(tensor: torch.Tensor) -> torch.Tensor:
        same = [g for g in given if (g.shape, g.dtype) == (tensor.shape, tensor.dtype)]
        return same[0].clone() if same else torch.zeros_like(tensor)

    outputs = changed(Answer(answer.outputs, arguments), passed_through).outputs
    return Answer(outputs, arguments)


def lower_dtype(task: Task, case: Case, arguments: Arguments) -> Answer:
    """Arguments and outputs rounded to the next lower dtype, arithmetic in the task's own."""

    def narrowed(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype in LOWER:
            return leaf.to(LOWER[leaf.dtype]).to(leaf.dtype)
        return leaf

    answer = honest(task, map_tree(copied(arguments), narrowed))
    return Answer(map_tree(answer.outputs, narrowed), map_tree(answer.mutated, narrowed))


def tf32_inputs(task: Task, case: Case, arguments: Arguments) -> Answer:
    """float32 arguments with ten bits of mantissa: what a tensor core makes of them by default."""

    def rounded(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32:
            bits = leaf.contiguous().view(torch.int32)
            return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
        return leaf

    answer = honest(task, map_tree(copied(arguments), rounded))
    return Answer(answer.outputs, answer.mutated)


def last_tile_missing(task: Task, case: Case, arguments: Arguments) -> Answer:
    """The last eighth of every tensor is never written."""

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.reshape(-1).clone()
        flat[-max(1, flat.numel() // 8) :] = 0
        return flat

    return changed(honest(task, arguments), cut)


def permuted(task: Task, case: Case, arguments: Arguments) -> Answer:
    return changed(honest(task, arguments), lambda tensor: tensor.reshape(-1).roll(1))


def one_nan(task: Task, case: Case, arguments: Arguments) -> Answer:
    def poison(tensor: torch.Tensor) -> torch.Tensor:
        if not floating(tensor):
            return tensor + 1
        flat = tensor.reshape(-1).clone()
        flat[flat.numel() // 2] = float("nan")
        return flat

    return changed(honest(task, arguments), poison)


def one_element_off(task: Task, case: Case, arguments: Arguments) -> Answer:
    """One element of each floating output is off by four tolerances, or the next number where
    exactness is asked.
    """
    answer = honest(task, arguments)
    if isinstance(task.check, Close):
        outputs, check = [], task.check
        expected = expectations(Trial(task, case, arguments, [], None), check.magnitude)
        leaf = next(leaf for leaf in expected.values() if floating(leaf.native))
        own = max(chunk[0] for chunk in check.errors(leaf, leaf.native))
        unit = check.unit(leaf.truth, leaf.magnitude, leaf.native.dtype).reshape(-1)
        finite = torch.isfinite(leaf.truth.reshape(-1)) & torch.isfinite(unit)
        index = int(finite.int().argmax())
        wrong = leaf.truth.reshape(-1).clone()
        wrong[index] += (
            4
            * check.limit(own, leaf.native.dtype)
            * unit[index]
            * (1 if wrong[index].abs() < 1 else -1)
        )

        def off(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.shape != leaf.native.shape or tensor.dtype != leaf.native.dtype:
                return tensor
            flat = tensor.reshape(-1).clone()
            flat[index] = wrong[index].to(flat.dtype)
            return flat

        outputs = changed(answer, off).outputs
        return Answer(outputs, answer.mutated)
    return changed(answer, _slightly_off)


def _slightly_off(tensor: torch.Tensor) -> torch.Tensor:
    flat = tensor.reshape(-1).clone()
    if not floating(flat):
        return torch.cat(
            (flat[:1].logical_not() if flat.dtype == torch.bool else flat[:1] + 1, flat[1:])
        )
    flat[0] = flat[0] * (1 + 256 * torch.finfo(flat.dtype).eps)
    return flat


def same_in_every_draw(task: Task, case: Case, arguments: Arguments) -> Answer:
    answer = honest(task, arguments)
    return Answer([answer.outputs[0]] * task.draws, answer.mutated)


DETERMINISTIC = (
    zeros,
    constant,
    identity,
    lower_dtype,
    last_tile_missing,
    permuted,
    one_nan,
    one_element_off,
)
OWN_ANSWER = ("fused_svd_reconstruct",)  # tasks whose answer is their input within rounding
RANDOM = (zeros, constant, last_tile_missing, one_nan, same_in_every_draw)


def one_number(task: Task) -> bool:
    """Whether every answer is a single number: its mean is itself, and so is its permutation."""
    if any(task.may_mutate(case) for case in task.cases):
        return False
    outputs = [shapes(task, case)[1] for case in task.small_cases]
    return all(tensor.numel() == 1 for tensor in tensors(outputs))


def mutants_of(task: Task) -> tuple[Callable[..., Answer], ...]:
    """The mutants that are wrong for this task: order and digits of random numbers are free."""
    if isinstance(task.check, SameDistribution | Mixture):
        return RANDOM
    if isinstance(task.check, Exact) and not any(
        dtype in task.dtypes for dtype in ("float64", "float32", "float16", "bfloat16")
    ):
        return tuple(m for m in DETERMINISTIC if m is not lower_dtype)
    if task.name in OWN_ANSWER:
        return tuple(m for m in DETERMINISTIC if m is not identity)
    if one_number(task):
        return tuple(m for m in DETERMINISTIC if m not in (constant, permuted))
    return DETERMINISTIC
