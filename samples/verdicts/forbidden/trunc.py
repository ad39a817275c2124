"""Planted: no kernel at all, PyTorch does it."""

import torch


def trunc(input, out=None):
    return torch.trunc(input, out=out)
