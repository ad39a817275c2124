"""In a process of its own: from Triton's IR to machine code for a target, and what the code needs.

No candidate's Python runs here; its IR is data. A compiler that crashes on it ends this process and
no other.
"""

import mmap
import os
import re
import socket
import subprocess
import tempfile
import time
from typing import Any

import triton
from triton import knobs
from triton.backends.compiler import Language
from triton.compiler.compiler import make_backend

from runner.engine import protocol
from runner.engine.child import describe
from runner.engine.tracing import target_of

MAX_REQUEST = 24 << 20
WORD = 4  # bytes of a register
_ir = triton._C.libtriton.ir
USAGE = re.compile(r"Function (\S+):\s*REG:(\d+) STACK:(\d+)")
AMD_FIGURES = {
    "registers": re.compile(r"^\s*\.vgpr_count:\s*(\d+)", re.MULTILINE),
    "spills": re.compile(r"^\s*\.vgpr_spill_count:\s*(\d+)", re.MULTILINE),
    "static_shared": re.compile(r"^\s*\.group_segment_fixed_size:\s*(\d+)", re.MULTILINE),
}


class Builder:
    """Serves one kind of request: build this IR for this target."""

    def __init__(self, sock: socket.socket, answers: int, size: int, _device: str) -> None:
        self.sock = sock
        mmap.mmap(answers, size).close()  # a candidate's process has one; here nobody needs it
        os.close(answers)

    def serve(self) -> None:
        """Answer until the other end closes. Ends the process."""
        while True:
            try:
                message, _ = protocol.receive(self.sock, MAX_REQUEST)
                protocol.send(self.sock, self._answer(message))
            except protocol.Closed:
                os._exit(0)

    @staticmethod
    def _answer(message: dict) -> dict:
        started = time.perf_counter()
        try:
            found = build(message["ir"], message["target"], message["options"])
        except BaseException as error:  # noqa: BLE001 - the compilers raise whatever they like
            found = {"ok": False, "error": describe(error)}
        return {**found, "seconds": time.perf_counter() - started}


def build(text: str, target: dict, options: dict) -> dict:
    """Compile one kernel; raises what Triton, LLVM's bindings or ptxas raise."""
    backend = make_backend(target_of(target))
    parsed = backend.parse_options(dict(options))
    metadata: dict[str, Any] = {"target": backend.target, **parsed.__dict__}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, parsed, Language.TRITON)
    context = _ir.context()
    _ir.load_dialects(context)
    backend.load_dialects(context)
    made: Any = read_module(text, context)
    results = {}
    for name, stage in stages.items():
        made = results[name] = stage(made, metadata)
    figures = nvidia_figures(made) if backend.binary_ext == "cubin" else amd_figures(results)
    return {
        "ok": True,
        "registers": figures["registers"],
        "spills": figures["spills"],
        "shared_bytes": max(int(metadata["shared"]), figures["static_shared"]),
        "tensor_memory": int(metadata.get("tmem_size") or 0),
        "threads": int(metadata["num_warps"]) * int(metadata["warp_size"]),
        "code_bytes": len(made),
    }


def read_module(text: str, context: Any) -> Any:
    """The IR as a module in that context."""
    with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        module = _ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


def nvidia_figures(cubin: bytes) -> dict:
    """Registers and spills per thread, by the vendor's own tool from Triton's wheel.

    As spills count what Triton counts on a board: words of a thread's local memory. Beside spilled
    registers these are the tables of libdevice's trigonometry, some ten words.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "--dump-resource-usage", file.name]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return read_usage(said)


def read_usage(said: str) -> dict:
    """The figures out of what cuobjdump says; ValueError when it says something else."""
    found = USAGE.findall(said)
    if not found:
        raise ValueError(f"cuobjdump names no function: {said[:500]}")
    return {
        "registers": max(int(registers) for _, registers, _ in found),
        "spills": max(int(stack) for _, _, stack in found) // WORD,
        "static_shared": 0,
    }


def amd_figures(results: dict) -> dict:
    """Vector registers, spills and static LDS out of the assembly's metadata."""
    found = {}
    for name, pattern in AMD_FIGURES.items():
        values = pattern.findall(results["amdgcn"])
        if not values:
            raise ValueError(f"the assembly's metadata says nothing of {name}")
        found[name] = max(map(int, values))
    return found
