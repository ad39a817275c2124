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
from typing import NamedTuple
from uuid import UUID

from leaderboard.statistics.arrays import Array, numpy

MEMORY, COMPUTE = "memory", "compute"
Of = tuple[str, str, str, UUID]  # method, task, category, run


@dataclass(frozen=True, slots=True)
class Roof:
    """`bandwidth` in bytes/s; `peaks` in FLOP/s by dtype. A dtype without a peak has no compute
    roof: only its bytes bound it. `source`: whose figures these are.
    """

    bandwidth: float | None
    peaks: Mapping[str, float] = field(default_factory=dict)
    source: str = ""


class CaseTimes(NamedTuple):
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
    memory = case.bytes / roof.bandwidth if roof.bandwidth else 0.0
    peak = roof.peaks.get(case.dtype)
    compute = case.flops / peak if peak else 0.0
    return (compute, COMPUTE) if compute > memory else (memory, MEMORY)


def kernels(
    of: Sequence[Of], cases: Sequence[Sequence[CaseTimes]], roofs: Sequence[Roof]
) -> tuple[Kernel, ...]:
    """Those with a case that moves or computes anything: the cases and the roof of each."""
    np = numpy()
    flat = [
        (at, *least_seconds(case, roof), case)
        for at, (own, roof) in enumerate(zip(cases, roofs, strict=True))
        for case in own
    ]
    bounded = [entry for entry in flat if entry[1] > 0]
    if not bounded:
        return ()
    owner = np.array([at for at, *_ in bounded])
    least = np.array([seconds for _, seconds, *_ in bounded])
    facts = np.array([(c.bytes, c.flops, c.candidate_ms, c.reference_ms) for *_, c in bounded])

    def sums(values: Array) -> list[float]:
        found: list[float] = np.bincount(owner, weights=values, minlength=len(of)).tolist()
        return found

    counts = sums(np.ones(len(owner)))
    moved, flops = sums(facts[:, 0]), sums(facts[:, 1])
    shares, references = (sums(np.log(1e3 * least / facts[:, at])) for at in (2, 3))
    # Of each kernel's cases the one that takes longest, the first of equals: it is written last.
    order = np.lexsort((-np.arange(len(owner)), least))
    longest = dict(zip(owner[order].tolist(), order.tolist(), strict=True))
    return tuple(
        Kernel(
            *of[at],
            cases=int(counts[at]),
            intensity=flops[at] / moved[at] if moved[at] else math.inf,
            bound=bounded[longest[at]][2],
            share=math.exp(shares[at] / counts[at]),
            reference_share=math.exp(references[at] / counts[at]),
        )
        for at in range(len(of))
        if counts[at]
    )


def best_by_task(kernels: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Of each task the kernel that comes closest to the roof, by task."""
    best: dict[str, Kernel] = {}
    for one in kernels:
        if one.task not in best or one.share > best[one.task].share:
            best[one.task] = one
    return tuple(best[task] for task in sorted(best))


def summaries(found: Iterable[Kernel], by: str) -> tuple[Summary, ...]:
    """One of each method, or category, by name."""
    groups: dict[str, list[Kernel]] = {}
    for one in found:
        groups.setdefault(getattr(one, by), []).append(one)
    rows = (summary(name, groups[name]) for name in sorted(groups))
    return tuple(row for row in rows if row)


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
