"""PyTorch's reference computes with the digits that dtypes say, and leaves PyTorch as it was."""

import dataclasses

import torch

from benchmark import suite

PRODUCTS = torch.backends.cuda.matmul
SHORTCUTS = (
    (PRODUCTS, "allow_tf32"),
    (PRODUCTS, "allow_fp16_reduced_precision_reduction"),
    (PRODUCTS, "allow_bf16_reduced_precision_reduction"),
    (torch.backends.cudnn, "allow_tf32"),
)


def allowed(*_args, **_kwargs) -> list:
    return [getattr(owner, name) for owner, name in SHORTCUTS]


def test_no_shortcut_is_allowed_while_the_reference_runs():
    task = dataclasses.replace(suite.get("relu"), function=allowed)
    before = allowed()
    arguments = task.arguments(task.cases[0], 1, "cpu")
    assert task.reference(arguments) == [False] * len(SHORTCUTS)
    assert allowed() == before
