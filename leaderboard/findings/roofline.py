"""Achieved share of the roofline: the least time that the board needs, over the time taken.

The least time of a case is the longer of its bytes over the memory's bandwidth and its FLOPs over
the peak of its dtype; bytes and FLOPs are the task's cost model (each input read once, each output
written once). That is the same as the larger of achieved over peak bandwidth and achieved over peak
FLOP/s. A share above 1 says that the data stayed in the L2 cache, which the model doesn't know.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from uuid import UUID

MEMORY, COMPUTE = "memory", "compute"


@dataclass(frozen=True, slots=True)
class Roof:
    """`bandwidth` in bytes/s; `peaks` in FLOP/s by dtype. A dtype without a peak has no compute
    roof: only its bytes bound it.
    """

    bandwidth: float
    peaks: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CaseTimes:
    """One timed case. Times in milliseconds, `bytes` and `flops` by the cost model."""

    dtype: str
    bytes: float
    flops: float
    candidate_ms: float
    reference_ms: float


@dataclass(frozen=True, slots=True)
class Kernel:
    """A correct kernel: shares are geometric means over its timed cases. `intensity` in FLOP per
    byte; `bound` names the roof of the case that takes longest.
    """

    method: str
    task: str
    category: str
    run: UUID
    cases: int
    intensity: float
    bound: str
    share: float
    reference_share: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Shares of `kernels` correct kernels; `reference` is the median of PyTorch's own."""

    name: str
    kernels: int
    quarter: float
    median: float
    three_quarters: float
    best: float
    mean: float
    reference: float


def least_seconds(case: CaseTimes, roof: Roof) -> tuple[float, str]:
    """(seconds, the roof that decides)."""
    memory = case.bytes / roof.bandwidth
    peak = roof.peaks.get(case.dtype)
    compute = case.flops / peak if peak else 0.0
    return (compute, COMPUTE) if compute > memory else (memory, MEMORY)


def kernel(of: tuple[str, str, str, UUID], cases: Sequence[CaseTimes], roof: Roof) -> Kernel | None:
    """`of`: method, task, category, run. None without a case that moves or computes anything."""
    bounded = [(case, *least_seconds(case, roof)) for case in cases if case.bytes or case.flops]
    bounded = [entry for entry in bounded if entry[1] > 0]
    if not bounded:
        return None
    moved = sum(case.bytes for case, _, _ in bounded)
    return Kernel(
        *of,
        cases=len(bounded),
        intensity=sum(case.flops for case, _, _ in bounded) / moved if moved else math.inf,
        bound=max(bounded, key=lambda entry: entry[1])[2],
        share=_mean(1e3 * least / case.candidate_ms for case, least, _ in bounded),
        reference_share=_mean(1e3 * least / case.reference_ms for case, least, _ in bounded),
    )


def best_by_task(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Of each task the kernel that comes closest to the roof, by task."""
    best: dict[str, Kernel] = {}
    for one in kernels:
        if one.task not in best or one.share > best[one.task].share:
            best[one.task] = one
    return tuple(best[task] for task in sorted(best))


def summary(name: str, kernels: Iterable[Kernel]) -> Summary | None:
    kernels = tuple(kernels)
    if not kernels:
        return None
    shares = sorted(one.share for one in kernels)
    low, middle, high = (
        quantiles(shares, n=4, method="inclusive") if len(shares) > 1 else shares * 3
    )
    return Summary(
        name=name,
        kernels=len(shares),
        quarter=low,
        median=middle,
        three_quarters=high,
        best=shares[-1],
        mean=math.fsum(shares) / len(shares),
        reference=median(one.reference_share for one in kernels),
    )


def _mean(ratios: Iterable[float]) -> float:
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(math.fsum(logs) / len(logs))
