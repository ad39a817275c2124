"""What ran on the board during a call, as PyTorch's profiler saw it in the candidate's process."""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

MOST_ROWS = 100
MOST_KERNELS = 200
MOST_NAME = 160


class Activity(NamedTuple):
    """One kernel, copy or fill: its stream, its start in ns and how many microseconds it took."""

    name: str
    stream: int
    microseconds: float
    start_ns: int


def device_activity(profile: Any) -> list[Activity]:
    """Everything that ran on the device, by start."""
    found = [
        Activity(
            event.name(),
            int(event.device_resource_id()),
            event.duration_ns() / 1e3,
            int(event.start_ns()),
        )
        for event in profile.profiler.kineto_results.events()
        if event.device_type() == torch.autograd.DeviceType.CUDA
    ]
    return sorted(found, key=lambda one: one.start_ns)


def busy_microseconds(call: Sequence[Activity]) -> float:
    """How long anything ran during a call, on whatever stream, counted once where streams overlap.
    The first activity is our marker.
    """
    busy, until = 0.0, 0.0
    for one in call[1:]:
        start = one.start_ns / 1e3
        end = start + one.microseconds
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    return busy


def summarize(calls: Sequence[Sequence[Activity]], own_names: set[str]) -> list[list]:
    """Activity by name: [name, ours, on our stream, launches, microseconds]. The first of each call
    is our marker, and its stream is the one that we time.
    """
    rows: dict[tuple[str, bool], list] = {}
    for call in calls:
        for one in call[1:]:
            short, ours = one.name[:MOST_NAME], one.stream == call[0].stream
            row = rows.setdefault((short, ours), [short, one.name in own_names, ours, 0, 0.0])
            row[3] += 1
            row[4] += one.microseconds
    return sorted(rows.values(), key=lambda row: -row[4])[:MOST_ROWS]


def compiled_kernels(functions: Any) -> list[dict]:
    """Facts about every compiled variant of the candidate's Triton functions, as Triton and its
    driver report them.
    """
    variants = [
        kernel
        for function in list(functions.values())
        for cache in list(getattr(function, "device_caches", {}).values())
        for kernel in list(cache[0].values())
    ]
    return [_facts(kernel) for kernel in variants[:MOST_KERNELS]]


def _facts(kernel: Any) -> dict:
    binary = getattr(kernel, "asm", {}).get("cubin")
    return {
        "name": str(getattr(kernel, "name", "?")),
        "hash": hashlib.sha256(binary).hexdigest()[:16] if binary else None,
        "registers": getattr(kernel, "n_regs", None),
        "spills": getattr(kernel, "n_spills", None),
        "shared_bytes": getattr(getattr(kernel, "metadata", None), "shared", None),
    }
