"""How much a candidate may use."""

import resource
from dataclasses import dataclass

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True)
class Limits:
    """Upper bounds for one candidate and everything it starts. Sizes in bytes.

    `memory` is enforced by the cgroup where there is one. `address_space` asks for RLIMIT_AS too:
    right on the CPU, wrong under CUDA, which reserves far more addresses than it uses. `tmp` caps
    everything written to /tmp and /dev/shm together.
    """

    memory: int = 16 * GIB
    processes: int = 512  # threads count: torch, CUDA and a compiler each start some per core
    cpu_seconds: int = 600
    file: int = 1 * GIB
    tmp: int = 1 * GIB
    open_files: int = 4096
    address_space: bool = False


def set_rlimits(limits: Limits) -> None:
    """Lower the calling process's own limits for good; never above what it was allowed before."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, limits.file)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    _lower(resource.RLIMIT_NPROC, limits.processes)
    _lower(resource.RLIMIT_CPU, limits.cpu_seconds)
    if limits.address_space:
        _lower(resource.RLIMIT_AS, limits.memory)


def _lower(kind: int, wanted: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(kind, (value, value))
