"""Wrong answers that every task must reject on at least one of its cases, made out of PyTorch's
right ones. A kind says to which tasks it applies, and, case by case, whether it has anything wrong
to say: where it has not, on every case, it is not counted.
"""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from benchmark.suite.checks import (
    Close,
    Exact,
    RoundedBetween,
    SameDistribution,
    expectations,
    floating,
)
from benchmark.suite.cost import shapes
from benchmark.suite.parameters import EpsLeftOut, Ignoring, WrongAxis
from benchmark.suite.scenes import Answer, Scene
from benchmark.suite.spec import Task, Trial
from benchmark.suite.trees import copied, map_tree, tensors

LOWER = {
    torch.float64: torch.float32,
    torch.complex128: torch.complex64,
    torch.complex64: torch.complex32,
    torch.float32: torch.float16,
    torch.float16: torch.float8_e4m3fn,
    torch.bfloat16: torch.float8_e4m3fn,
}
SIGNS_ALONE = ("signbit", "signbit_bitwise_and")  # tasks that no rounding of inputs changes
# Tasks whose answer, where it has the form of an input, is that input (within rounding).
OWN_ANSWER = ("adaptive_avg_pool2d", "fused_svd_reconstruct", "masked_select")
# Parameters that don't change the answer, as their contracts say: ignoring them isn't wrong.
WITHOUT_EFFECT: dict[str, tuple[str, ...]] = {
    "bitwise_and_binomial": ("input", "other"),
    "determinant_lu": ("pivot",),
    "determinant_via_qr": ("mode",),
    "fused_bmm_dropout_gelu": ("inplace",),
    "fused_bmm_rmsnorm_gelu_dropout": ("normalized_shape",),
    "fused_bmm_rmsnorm_gelu_dropout_sub": ("normalized_shape",),
    "fused_dropout_relu_batch_norm_conv2d": ("bias", "inplace"),
    "fused_dropout_sigmoid_linear": ("inplace",),
    "fused_elu_linear": ("inplace",),
    "fused_embedding_add_tanh": ("padding_idx", "scale_grad_by_freq", "sparse"),
    "fused_gather_masked_fill": ("sparse_grad",),
    "fused_hardsigmoid_batch_norm": ("inplace",),
    "fused_instance_norm_selu_conv2d": (
        "affine",
        "momentum",
        "num_features",
        "track_running_stats",
    ),
    "fused_layer_norm_relu_linear": ("elementwise_affine", "normalized_shape"),
    "fused_leaky_relu_conv2d": ("inplace",),
    "fused_mul_add_logsoftmax_dropout_bmm": ("inplace",),
    "fused_mv_logsoftmax_dropout": ("dim", "inplace"),
    "fused_relu_batch_norm_conv2d": ("inplace",),
    "fused_relu_conv2d": ("inplace",),
    "fused_relu_max_pool2d_conv2d": ("inplace",),
    "fused_repeat_interleave_log_softmax": ("output_size",),
    "fused_sum_std": ("keepdim",),
    "gelu_int8": ("approximate",),
    "invert_matrix_lu": ("pivot",),
    "ldl_factor": ("hermitian",),
    "low_rank_svd_approximation": ("full_matrices",),
    "pseudoinverse_svd": ("full_matrices",),
    "solve_symmetric_ldl": ("hermitian",),
}
AXES = ("dim", "dim_norm")
ELSEWHERE = ("device",)  # where the answer is, not what it is


# -- The kinds. Each makes an answer to a scene, or None where it would say nothing wrong. --


def zeros(scene: Scene) -> Answer | None:
    return scene.changed(torch.zeros_like)


def constant(scene: Scene) -> Answer | None:
    return scene.changed(torch.ones_like)


def mean(scene: Scene) -> Answer | None:
    """Every tensor full of its own mean."""

    def levelled(tensor: torch.Tensor) -> torch.Tensor:
        wide = tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)
        return torch.full_like(wide, wide.nan_to_num(0, 0, 0).mean().item())

    return scene.changed(levelled) if _largest_output(scene) > 1 else None


def input_passed_through(scene: Scene) -> Answer | None:
    """The first argument of the output's form, copied; nothing is written."""
    given, found = tensors(scene.arguments), []

    def passed(tensor: torch.Tensor) -> torch.Tensor:
        same = [g for g in given if (g.shape, g.dtype) == (tensor.shape, tensor.dtype)]
        found.extend(same[:1])
        return same[0].clone() if same else torch.zeros_like(tensor)

    outputs = scene.changed(passed).outputs
    writes = scene.task.may_mutate(scene.case)
    return Answer(outputs, scene.arguments) if found or writes else None


def prefix_only(scene: Scene) -> Answer | None:
    """The second half of every tensor is never written."""
    return _without_last(scene, 2)


def last_tile_missing(scene: Scene) -> Answer | None:
    """The last eighth of every tensor is never written."""
    return _without_last(scene, 8)


def _without_last(scene: Scene, share: int) -> Answer | None:
    def cut(tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.reshape(-1).clone()
        flat[-max(1, flat.numel() // share) :] = 0
        return flat

    return scene.changed(cut) if _largest_output(scene) > 1 else None


def permuted(scene: Scene) -> Answer | None:
    if _largest_output(scene) < 2:
        return None
    return scene.changed(lambda tensor: tensor.reshape(-1).roll(1))


def row_broadcast(scene: Scene) -> Answer | None:
    """Every row is the first one."""
    if not any(_rows(tensor) > 1 for tensor in tensors(scene.right.outputs)):
        return None

    def repeated(tensor: torch.Tensor) -> torch.Tensor:
        if _rows(tensor) < 2:
            return tensor
        flat = tensor.reshape(-1, tensor.shape[-1])
        return flat[:1].expand_as(flat)

    return scene.changed(repeated)


def wrong_strides(scene: Scene) -> Answer | None:
    """Every matrix that is not square is written in the order of its columns."""

    def mixed(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.mT.reshape(tensor.shape) if _oblong(tensor) else tensor

    return scene.changed(mixed) if any(map(_oblong, tensors(scene.right.outputs))) else None


def tf32_inputs(scene: Scene) -> Answer | None:
    """float32 arguments with ten bits of mantissa: what a tensor core makes of them by default."""

    def rounded(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32:
            bits = leaf.contiguous().view(torch.int32)
            return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)
        return leaf

    if scene.case.dtype != "float32" or not any(map(floating, tensors(scene.arguments))):
        return None
    return scene.called(map_tree(copied(scene.arguments), rounded))


def one_nan(scene: Scene) -> Answer | None:
    """A NaN in the middle of every tensor; integers are off by one throughout."""

    def poison(tensor: torch.Tensor) -> torch.Tensor:
        if not floating(tensor):
            return tensor.logical_not() if tensor.dtype == torch.bool else tensor + 1
        flat = tensor.reshape(-1).clone()
        flat[flat.numel() // 2] = float("nan")
        return flat

    return scene.changed(poison)


def sign_of_one_value(scene: Scene) -> Answer | None:
    """The other sign for one infinity of every tensor, or for its largest number."""

    def flipped(tensor: torch.Tensor) -> torch.Tensor:
        flat = tensor.reshape(-1).clone()
        index = _largest(flat)
        flat[index] = ~flat[index] if flat.dtype == torch.bool else -flat[index]
        return flat

    return scene.changed(flipped)


def off_by_four_tolerances(scene: Scene) -> Answer | None:
    """One element of the first floating output is off by four tolerances, or by the next numbers
    where exactness is asked.
    """
    check = scene.task.check
    if not isinstance(check, Close):
        step = 2 if isinstance(check, Exact) else 256
        return scene.changed(lambda tensor: _slightly_off(tensor, step))
    if isinstance(check, RoundedBetween):
        check = check.of(getattr(torch, scene.case.dtype))
    trial = Trial(scene.task, scene.case, scene.arguments, [], None)
    expected = expectations(trial, check.magnitude)
    leaf = next(leaf for leaf in expected.values() if floating(leaf.native))
    own = max((chunk[0] for chunk in check.errors(leaf, leaf.native)), default=0.0)
    unit = check.unit(leaf.truth, leaf.magnitude, leaf.native.dtype).reshape(-1)
    finite = torch.isfinite(leaf.truth.reshape(-1)) & torch.isfinite(unit)
    if not bool(finite.any()):
        return None
    index = int(finite.int().argmax())
    wrong = leaf.truth.reshape(-1)[index]
    allowed = check.limit(own, leaf.native.dtype) * unit[index]
    wrong = wrong + 4 * allowed * (1 if wrong.abs() < 1 else -1)

    def off(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.shape != leaf.native.shape or tensor.dtype != leaf.native.dtype:
            return tensor
        flat = tensor.reshape(-1).clone()
        flat[index] = wrong.to(flat.dtype)
        return flat

    return scene.changed(off)


def _slightly_off(tensor: torch.Tensor, step: int) -> torch.Tensor:
    flat = tensor.reshape(-1).clone()
    if flat.dtype == torch.bool:
        flat[0] = ~flat[0]
    elif not floating(flat):
        flat[0] += 1
    else:
        index = _largest(flat.nan_to_num(0, 0, 0))
        flat[index] = flat[index] * (1 + step * torch.finfo(flat.dtype).eps)
    return flat


def stale(scene: Scene) -> Answer | None:
    """The answer to the previous call."""
    return scene.called(scene.previous)


def same_in_every_draw(scene: Scene) -> Answer | None:
    return Answer([scene.right.outputs[0]] * scene.task.draws, scene.right.mutated)


def other_dtype(scene: Scene) -> Answer | None:
    """Every output in another dtype."""

    def cast(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return leaf.to(LOWER.get(leaf.dtype, torch.float32))

    return Answer(map_tree(scene.right.outputs, cast), scene.right.mutated)


def other_shape(scene: Scene) -> Answer | None:
    """Every output with one dimension more."""

    def wrapped(leaf: Any) -> Any:
        return leaf[None] if isinstance(leaf, torch.Tensor) else leaf

    return Answer(map_tree(scene.right.outputs, wrapped), scene.right.mutated)


@dataclass(frozen=True)
class LowerInside:
    """Arguments and outputs of this dtype rounded to the next lower one, arithmetic in the task's
    own. A kind of its own for each dtype: that float16 is kept says nothing about float32.
    """

    dtype: torch.dtype

    def __call__(self, scene: Scene) -> Answer | None:
        outputs = tensors(scene.right.outputs)
        told = outputs if any(map(floating, outputs)) else tensors(scene.arguments)
        if not any(tensor.dtype == self.dtype for tensor in told):
            return None
        answer = scene.called(map_tree(copied(scene.arguments), self._narrowed))
        return Answer(map_tree(answer.outputs, self._narrowed), answer.mutated)

    def _narrowed(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor) and leaf.dtype == self.dtype:
            return leaf.to(LOWER[self.dtype]).to(self.dtype)
        return leaf


# -- Which kinds are wrong for which tasks --


@dataclass(frozen=True)
class Mutant:
    """A way to be wrong, by its name."""

    name: str
    answer: Callable[[Scene], Answer | None]


def anything(task: Task) -> bool:
    return True


def determined(task: Task) -> bool:
    """Values have their places: they are not random numbers, of which only the law is asked."""
    return not isinstance(task.check, SameDistribution)


def random(task: Task) -> bool:
    return task.draws > 1


def several_numbers(task: Task) -> bool:
    """Not every answer is a single number."""
    return not one_number(task)


def several_determined(task: Task) -> bool:
    return determined(task) and several_numbers(task)


def reads_digits(task: Task) -> bool:
    return determined(task) and task.name not in SIGNS_ALONE


def differs_from_input(task: Task) -> bool:
    return determined(task) and task.name not in OWN_ANSWER


KINDS: tuple[tuple[Callable[[Scene], Answer | None], Callable[[Task], bool]], ...] = (
    (zeros, anything),
    (constant, anything),
    (mean, several_numbers),
    (input_passed_through, differs_from_input),
    (prefix_only, several_numbers),
    (last_tile_missing, several_numbers),
    (permuted, several_determined),
    (row_broadcast, several_numbers),
    (wrong_strides, several_determined),
    (tf32_inputs, reads_digits),
    (one_nan, anything),
    (off_by_four_tolerances, determined),
    (sign_of_one_value, determined),
    (stale, determined),
    (same_in_every_draw, random),
    (other_dtype, anything),
    (other_shape, anything),
)


def mutants_of(task: Task) -> tuple[Mutant, ...]:
    """The ways to be wrong that apply to this task."""
    kinds = [Mutant(kind.__name__, kind) for kind, applies in KINDS if applies(task)]
    return (*kinds, *_of_dtypes(task), *_of_parameters(task))


def _of_dtypes(task: Task) -> Iterator[Mutant]:
    for dtype in LOWER if reads_digits(task) else ():
        word = str(dtype).removeprefix("torch.")
        yield Mutant(f"less than {word} inside", LowerInside(dtype))


def _of_parameters(task: Task) -> Iterator[Mutant]:
    without_effect = {*ELSEWHERE, *WITHOUT_EFFECT.get(task.name, ())}
    for name, parameter in inspect.signature(task.function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL or name in without_effect:
            continue
        yield Mutant(f"ignoring {name}", Ignoring(name))
        if "eps" in name.split("_"):
            yield Mutant(f"{name} left out", EpsLeftOut(name))
        if name in AXES:
            yield Mutant(f"wrong {name}", WrongAxis(name))


def one_number(task: Task) -> bool:
    """Whether every answer is a single number: its mean is itself, and so is its permutation."""
    if any(task.may_mutate(case) for case in task.cases):
        return False
    outputs = [shapes(task, case)[1] for case in task.small_cases]
    return all(tensor.numel() == 1 for tensor in tensors(outputs))


def _largest_output(scene: Scene) -> int:
    return max((tensor.numel() for tensor in tensors(scene.right.outputs)), default=0)


def _rows(tensor: torch.Tensor) -> int:
    return tensor.numel() // tensor.shape[-1] if tensor.dim() > 1 and tensor.numel() else 0


def _oblong(tensor: torch.Tensor) -> bool:
    return tensor.dim() > 1 and tensor.shape[-1] != tensor.shape[-2] and min(tensor.shape[-2:]) > 1


def _largest(flat: torch.Tensor) -> int:
    """The place of the largest magnitude; NaN counts as 0."""
    wide = flat if flat.is_complex() else flat.double()
    return int(wide.abs().nan_to_num(0, posinf=float("inf")).argmax())
