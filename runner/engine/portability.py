"""What a candidate's launches and the compilers' figures mean for an architecture. Pure.

Everything that comes from a candidate's process is a stranger's: read by type and range, and never
more than a wrong answer about its own candidate.
"""

import re
from dataclasses import dataclass
from typing import Any

from benchmark import vocabulary as words
from benchmark.architectures import Architecture

MAX_REASON = 2000
ADDRESS = re.compile(r"0x[0-9a-f]{8,}")
MAX_COUNT = 1 << 31
TENSOR_MEMORY_LIMIT = 512  # columns of a block on sm_100: PTX ISA, tcgen05.alloc
AMD_WARP = 64


@dataclass(frozen=True)
class KernelBuild:
    """One kernel of one launch on one architecture. Of an autotuned kernel it is the configuration
    that fits and spills least; `configurations` says how many there are, tried and fitting.
    """

    name: str
    configuration: str
    configurations: int
    tried: int
    fitting: int
    reason: str = ""
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
    threads: int | None = None
    seconds: float | None = None

    def to_json(self) -> dict:
        """The kernel as an element of a build's `kernels`."""
        return dict(vars(self))


@dataclass(frozen=True)
class Build:
    """A candidate on one architecture. `reason` is empty when it is built, and only then."""

    architecture: str
    state: str
    reason: str
    shared_limit: int
    kernels: tuple[KernelBuild, ...] = ()

    def most(self, figure: str) -> int | None:
        """The largest figure of its kernels; None when nothing was compiled."""
        found = [getattr(kernel, figure) for kernel in self.kernels]
        return max((value for value in found if value is not None), default=None)

    def to_json(self) -> dict:
        """As `--json` writes it and the site stores it."""
        return {
            "architecture": self.architecture,
            "state": self.state,
            "reason": self.reason,
            "kernel_count": sum(kernel.registers is not None for kernel in self.kernels),
            "registers": self.most("registers"),
            "spills": self.most("spills"),
            "shared_bytes": self.most("shared_bytes"),
            "shared_limit": self.shared_limit,
            "kernels": [kernel.to_json() for kernel in self.kernels],
        }


@dataclass(frozen=True)
class Trace:
    """What the candidate launched in one call, and why that may not be all."""

    case: str
    launches: tuple[dict, ...]
    alternatives: dict[str, int]
    stopped: str = ""


class Untraced(Exception):  # noqa: N818 - the third state: neither builds nor fails
    """What the candidate launches couldn't be found out here; `str()` says why."""


def verdict_of(one: Architecture, kernels: list[KernelBuild], stopped: str) -> Build:
    """Failed as soon as one kernel fails; built only when all are known."""
    made = tuple(kernels)
    failed = next((kernel for kernel in made if kernel.reason), None)
    if failed is not None:
        reason = f"{failed.name}: {failed.reason}"[:MAX_REASON]
        return Build(one.slug, words.BUILD_FAILED, reason, one.shared_limit, made)
    if stopped:
        return unknown(one, stopped, made)
    return Build(one.slug, words.BUILT, "", one.shared_limit, made)


def unknown(one: Architecture, reason: str, kernels: tuple[KernelBuild, ...] = ()) -> Build:
    """The third state."""
    return Build(one.slug, words.UNTRACED, reason[:MAX_REASON], one.shared_limit, kernels)


def groups(trace: Trace) -> list[list[tuple[int, dict]]]:
    """Launches with their numbers, an autotuner's alternatives together, in order of appearance."""
    found: dict[int, list[tuple[int, dict]]] = {}
    for index, launch in enumerate(trace.launches):
        found.setdefault(launch["group"], []).append((index, launch))
    return list(found.values())


def target_facts(one: Architecture) -> dict:
    """The architecture as Triton names it."""
    if one.vendor == "NVIDIA":
        return {"backend": "cuda", "arch": int(one.slug.removeprefix("sm_")), "warp": 32}
    return {"backend": "hip", "arch": one.slug, "warp": AMD_WARP}


def read_trace(reply: dict) -> Trace:
    """What a stranger's process says that it launched; Untraced when it makes no sense."""
    launches, alternatives = reply.get("launches"), reply.get("alternatives")
    if not isinstance(launches, list) or not isinstance(alternatives, dict):
        raise Untraced("the candidate's process sent no launches")
    read = tuple(
        {
            "name": text_of(one, "name"),
            "group": count_of(one, "group") or 0,
            "configuration": text_of(one, "configuration"),
        }
        for one in launches[:1000]
        if isinstance(one, dict)
    )
    counts = {key: count_of(alternatives, key) or 1 for key in list(alternatives)[:1000]}
    beyond = count_of(reply, "beyond")
    stopped = f"{beyond} more kernels were launched than we compile" if beyond else ""
    if reply.get("error"):
        stopped = f"the call failed after {len(read)} launches: {said_by(reply)}"
    return Trace(text_of(reply, "case"), read, counts, stopped)


def chosen_configuration(
    alternatives: list[tuple[dict, dict]], counts: dict[str, int], one: Architecture
) -> KernelBuild:
    """The alternative that fits and spills least, the first of equals; else why the first fails."""
    found = [kernel_build(launch, reply, one) for launch, reply in alternatives]
    fitting = [kernel for kernel in found if not kernel.reason]
    best = min(fitting, key=lambda kernel: kernel.spills or 0) if fitting else found[0]
    group = str(alternatives[0][0]["group"])
    facts = best.to_json() | {
        "configurations": max(counts.get(group, 1), len(found)),
        "tried": len(found),
        "fitting": len(fitting),
    }
    return KernelBuild(**facts)


def kernel_build(launch: dict, reply: dict, one: Architecture) -> KernelBuild:
    """A builder's answer, read against the architecture's limits."""
    name, configuration = launch["name"], launch["configuration"]
    if reply.get("ok") is not True:
        reason = text_of(reply, "reason") or "the compiler gave no reason"
        return KernelBuild(name, configuration, 1, 1, 0, reason=reason)
    figures = {
        figure: count_of(reply, figure)
        for figure in ("registers", "spills", "shared_bytes", "threads")
    }
    if None in figures.values():
        raise Untraced(f"the builder's answer about {name} makes no sense")
    seconds = reply.get("seconds")
    return KernelBuild(
        name,
        configuration,
        1,
        1,
        1,
        reason=too_much(figures, count_of(reply, "tensor_memory") or 0, one),
        seconds=round(seconds, 3) if isinstance(seconds, float) else None,
        **figures,
    )


def too_much(figures: dict[str, Any], tensor_memory: int, one: Architecture) -> str:
    """Which limit of the architecture a kernel breaks, in words; empty when it fits."""
    if figures["shared_bytes"] > one.shared_limit:
        return (
            f"needs {figures['shared_bytes']} bytes of shared memory; "
            f"a block on {one.slug} has {one.shared_limit}"
        )
    if figures["threads"] > one.threads_limit:
        return f"needs {figures['threads']} threads; a block on {one.slug} has {one.threads_limit}"
    if tensor_memory > TENSOR_MEMORY_LIMIT:
        return f"needs {tensor_memory} columns of tensor memory; a block has {TENSOR_MEMORY_LIMIT}"
    return ""


def said_by(reply: dict) -> str:
    """An exception of the candidate's process, in one readable piece."""
    error = reply.get("error")
    error = error if isinstance(error, dict) else {}
    return essence(f"{text_of(error, 'type')}: {text_of(error, 'message')}")


def failure_of(reply: dict, log: str) -> str:
    """Why a builder failed: what it raised, and what its compilers printed."""
    said = said_by(reply)
    printed = [line.strip() for line in log.splitlines() if "error" in line.lower()]
    new = [line for line in dict.fromkeys(printed) if line not in said]
    return essence(" | ".join([said, *new[:4]]))


def essence(text: str) -> str:
    """The text without the listing of a kernel, which authors have, and without addresses, which
    make equal texts differ.
    """
    text = ADDRESS.sub("0x...", text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 6:
        lines = [*lines[:1], "...", *lines[-4:]]
    return " ".join(lines)[:MAX_REASON]


def text_of(facts: dict, name: str) -> str:
    """A stranger's text, cut."""
    value = facts.get(name)
    return value[:MAX_REASON] if isinstance(value, str) else ""


def count_of(facts: dict, name: str) -> int | None:
    """A stranger's count; None when it is none."""
    value = facts.get(name)
    return value if type(value) is int and 0 <= value < MAX_COUNT else None
