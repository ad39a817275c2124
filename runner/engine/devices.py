"""Which devices this host can judge on. Standard library only: no CUDA context, no torch."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess

from benchmark.vocabulary import CPU_INTERPRETER
from runner.engine.model import MIB, DeviceSpec

INTERPRETER = DeviceSpec("cpu", 0, CPU_INTERPRETER, "Triton interpreter on the CPU")
QUERY = ("index", "name", "uuid", "memory.total", "compute_cap")
NOT_IN_SLUG = re.compile(
    r"nvidia|geforce|tesla|graphics|device|\b\d+ ?g(i?)b\b|\bhbm\w*", re.IGNORECASE
)


def discover_devices() -> list[DeviceSpec]:
    """The boards that nvidia-smi lists and this process may use, then the interpreter where torch
    is installed.
    """
    boards = [board for line in _nvidia_smi().splitlines() if (board := _board(line))]
    visible = _visible_indices()
    boards = [board for board in boards if visible is None or board.index in visible]
    can_judge = all(importlib.util.find_spec(name) for name in ("torch", "triton"))
    return [*boards, INTERPRETER] if can_judge else []


def boards_here() -> int:
    """How many boards this host has, those included that this process may not use."""
    return sum(1 for line in _nvidia_smi().splitlines() if _board(line))


def find_devices(wanted: str) -> list[DeviceSpec]:
    """The devices that `cpu`, `cuda`, `cuda:N` or `all` (every board) means; ValueError with what
    there is.
    """
    devices = discover_devices()
    if wanted == "all":
        found = [device for device in devices if device.kind == "cuda"]
    elif wanted == "cpu":
        found = [device for device in devices if device.kind == "cpu"]
    else:
        kind, _, index = wanted.partition(":")
        found = [
            device
            for device in devices
            if device.kind == kind == "cuda" and str(device.index) == (index or "0")
        ]
    if not found:
        there = (
            ", ".join(f"cuda:{d.index}" if d.kind == "cuda" else "cpu" for d in devices) or "none"
        )
        raise ValueError(f"no device {wanted!r} on this host; there are: {there}")
    return found


def gpu_slug(name: str) -> str:
    """The product as a slug: "NVIDIA H200" -> "h200", "NVIDIA GeForce RTX 4090" -> "rtx-4090"."""
    words = re.findall(r"[a-z0-9]+", NOT_IN_SLUG.sub(" ", name).lower())
    return "-".join(words) or "gpu"


def _nvidia_smi() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, f"--query-gpu={','.join(QUERY)}", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout


def _board(line: str) -> DeviceSpec | None:
    fields = [field.strip() for field in line.split(",")]
    if len(fields) != len(QUERY) or not fields[0].isdigit():
        return None
    index, name, uuid, memory, capability = fields
    return DeviceSpec(
        kind="cuda",
        index=int(index),
        gpu=gpu_slug(name),
        name=name,
        uuid_hash=hashlib.sha256(uuid.encode()).hexdigest()[:16],
        memory=int(memory) * MIB if memory.isdigit() else 0,
        architecture="sm_" + capability.replace(".", ""),
    )


def _visible_indices() -> set[int] | None:
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return None
    return {int(word) for word in listed.split(",") if word.strip().isdigit()}
