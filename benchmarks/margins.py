"""How near to its tolerance does honest work come?

    python benchmarks/margins.py --seeds 20 --record
    python benchmarks/margins.py --seeds 200 --task fused_sigmoid_batch_norm

Calls the plain solution of each task (samples/plain) on every small case that Triton's interpreter
can judge, with fresh seeds, and compares as the judge does. The share of a comparison is the worst
element's error over what is allowed there: above 1 an honest answer is refused. A round takes one
seed through all tasks, about two minutes; `--minutes` begins no further round after that time. With
`--log FILE` each round is appended there, and what is there already of the same suite counts too.
`--record` writes what was found into `docs/measurements/honest-margin.*`.

The solutions run in this process, without walls: they are our own, and trusted.
"""

import argparse
import json
import math
import os
import platform
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # before anything imports triton

import records
import torch
from servers import processor

from benchmark import suite
from benchmark.suite import Case, Comparison, Task
from benchmark.suite.proving import judged, solution

PLAIN = Path(__file__).resolve().parents[1] / "samples" / "plain"
NEAR = 0.5  # shares above are named: twice such an error would be refused
QUANTILES = (0.5, 0.95, 0.999)
STATISTICAL, EXACT = "of the critical value", "elements off"  # units of comparisons


@dataclass(frozen=True)
class Margin:
    """One comparison. `share` is infinite where the answer is refused without an error measured,
    0 where it must be exact and is.
    """

    task: str
    case: str
    seed: int
    kind: str
    share: float
    passed: bool
    detail: str


def margin(task: Task, case: Case, seed: int, found: Comparison) -> Margin:
    """Its kind: `statistical` (the share is of a critical value), `exact`, or `rounded`."""
    exact = found.tolerance == 0 or found.unit == EXACT
    kind = "statistical" if found.unit == STATISTICAL else "exact" if exact else "rounded"
    if found.error is not None and found.tolerance:
        share = found.error / found.tolerance
    else:
        share = 0.0 if found.passed else math.inf
    return Margin(task.name, case.name, seed, kind, share, found.passed, found.detail)


@cache
def plain(task: Task) -> Any:
    return solution(PLAIN / task.category / f"{task.name}.py", task)


def judgeable(task: Task) -> list[Case]:
    return [case for case in task.small_cases if task.judgeable_on("cpu", case)]


def margins(task: Task, seed: int) -> list[Margin]:
    """All cases of a task with one seed, of the inputs and of PyTorch's random numbers."""
    torch.manual_seed(seed)
    found = judged(task, plain(task), judgeable(task), "cpu", seed)
    return [margin(task, one.case, seed, one.comparison) for one in found]


def rounds(tasks: Sequence[Task], first: int, count: int, minutes: float) -> Iterator[list[Margin]]:
    """A round for each seed from `first` on, until `count` or the time is over."""
    began = time.monotonic()
    for seed in range(first, first + count):
        if time.monotonic() - began > 60 * minutes:
            return
        found = [one for task in tasks for one in margins(task, seed)]
        worst = max(found, key=lambda one: one.share if one.kind == "rounded" else 0.0)
        print(
            f"seed {seed}: {len(found)} comparisons, {refused(found)} refused, nearest "
            f"{worst.share:.3f} ({worst.task}, {worst.case}); {time.monotonic() - began:.0f} s",
            flush=True,
        )
        yield found


def logged(path: Path, suite_digest: str) -> list[Margin]:
    """What earlier rounds found, of the suite with this digest."""
    lines = path.read_text().splitlines() if path.exists() else []
    kept = (json.loads(line) for line in lines)
    return [Margin(**one["margin"]) for one in kept if one["suite_digest"] == suite_digest]


def log(path: Path, suite_digest: str, found: Sequence[Margin]) -> None:
    """Append a round at once, so that several processes may share the file."""
    lines = [{"suite_digest": suite_digest, "margin": asdict(one)} for one in found]
    with path.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def refused(found: Sequence[Margin]) -> int:
    return sum(not one.passed for one in found)


def quantile(shares: Sequence[float], level: float) -> float:
    """The smallest share that so many of all do not exceed."""
    return sorted(shares)[max(0, math.ceil(level * len(shares)) - 1)]


def distribution(found: Sequence[Margin]) -> dict[str, Any]:
    """Number, number refused, quantiles and the largest share."""
    shares = [one.share for one in found]
    levels = {f"{level:.1%}": _figure(quantile(shares, level)) for level in QUANTILES if shares}
    largest = {"largest": _figure(max(shares))} if shares else {}
    return {"comparisons": len(found), "refused": refused(found), **levels, **largest}


def _figure(share: float) -> float | None:
    """For JSON, which has no infinity."""
    return round(share, 4) if math.isfinite(share) else None


def worst_by(found: Sequence[Margin], *names: str) -> dict[tuple[str, ...], Margin]:
    """The largest share of each value of these fields."""
    worst: dict[tuple[str, ...], Margin] = {}
    for one in found:
        key = tuple(getattr(one, name) for name in names)
        if key not in worst or one.share > worst[key].share:
            worst[key] = one
    return worst


def summary(found: list[Margin]) -> dict[str, Any]:
    """The bare figures: by kind, by task, the cases nearest to their tolerance, and refusals."""
    kinds = ("rounded", "exact", "statistical")
    by_kind = {kind: [one for one in found if one.kind == kind] for kind in kinds}
    counted = [(key[0], one) for key, one in worst_by(found, "task").items()]
    near = worst_by([one for one in by_kind["rounded"] if one.share > NEAR], "task", "case")
    return {
        "kinds": {kind: distribution(ones) for kind, ones in by_kind.items()},
        "tasks": {
            name: {
                **distribution([one for one in found if one.task == name]),
                "case": one.case,
                "kind": one.kind,
            }
            for name, one in counted
        },
        "near": [_row(one) for one in sorted(near.values(), key=lambda one: -one.share)],
        "refusals": [_row(one) for one in found if not one.passed],
    }


def _row(one: Margin) -> dict[str, Any]:
    return {**asdict(one), "share": _figure(one.share)}


def environment() -> dict[str, Any]:
    names = ("torch", "triton", "numpy")
    found = {name: version(name) for name in names}
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **found,
    }


def page(bare: dict[str, Any]) -> str:
    """The record to read."""
    where = bare["environment"]
    lines = [
        "# How near honest work comes to its tolerance",
        "",
        f"Date: {bare['date']}. Hardware: {where['processor']}, {where['cores']} cores, shared; "
        f"Triton's interpreter. Python {where['python']}, torch {where['torch']}, triton "
        f"{where['triton']}, NumPy {where['numpy']}. Suite digest {bare['suite_digest'][:16]}.",
        "",
        "```",
        bare["command"],
        "```",
        "",
        f"The plain solution of each task on every small case, {len(bare['seeds'])} seeds "
        f"({', '.join(map(str, bare['seeds']))}). The share is the worst element's error over what "
        "is allowed; that follows PyTorch's own error, here of its CPU kernels.",
        "",
        *_kinds(bare["kinds"]),
        "",
        "Statistical: random numbers and dropout, where the share is of a critical value that an "
        "honest answer exceeds once in a billion times.",
        "",
        *_near(bare["near"]),
        *_refusals(bare["refusals"]),
        "| task | kind | largest share | case | comparisons | refused |",
        "|---|---|---:|---|---:|---:|",
    ]
    columns = ("kind", "largest", "case", "comparisons", "refused")
    for name, one in bare["tasks"].items():
        lines.append(f"| {name} | " + " | ".join(str(one[column]) for column in columns) + " |")
    return "\n".join([*lines, ""])


def _kinds(kinds: dict[str, dict[str, Any]]) -> list[str]:
    columns = [*(f"{level:.1%}" for level in QUANTILES), "largest"]
    return [
        "| kind | comparisons | refused | " + " | ".join(columns) + " |",
        "|---|---:|---:|" + "---:|" * len(columns),
        *(
            f"| {kind} | {one['comparisons']} | {one['refused']} | "
            + " | ".join(str(one.get(column, "")) for column in columns)
            + " |"
            for kind, one in kinds.items()
        ),
    ]


def _near(near: list[dict[str, Any]]) -> list[str]:
    if not near:
        return [f"No share is above {NEAR}, statistical ones aside.", ""]
    rows = [f"| {one['task']} | {one['case']} | {one['share']} | {one['seed']} |" for one in near]
    return ["| above half | case | largest share | seed |", "|---|---|---:|---:|", *rows, ""]


def _refusals(found: list[dict[str, Any]]) -> list[str]:
    lines = [f"- refused: {one['task']}, {one['case']}: {one['detail']}" for one in found]
    return [*lines, ""] if lines else []


def command(names: Sequence[str], seeds: int) -> str:
    """What does as much in one go, also where a log was added to bit by bit."""
    tasks = "".join(f" --task {name}" for name in names)
    return f"python benchmarks/margins.py --seeds {seeds}{tasks} --record"


def chosen_tasks(names: Sequence[str]) -> list[Task]:
    tasks = [suite.get(name) for name in names] if names else suite.all_tasks()
    return [task for task in tasks if judgeable(task)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, help="drawn if not given")
    parser.add_argument("--task", action="append", default=[])
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--record", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    first = secrets.randbelow(1 << 31) if chosen.first_seed is None else chosen.first_seed
    tasks = chosen_tasks(chosen.task)
    if not tasks:
        parser.error("Triton's interpreter judges none of these tasks")
    digest = suite.suite_digest()
    found = logged(chosen.log, digest) if chosen.log else []
    for one in rounds(tasks, first, chosen.seeds, chosen.minutes):
        found += one
        if chosen.log:
            log(chosen.log, digest, one)
    seeds = sorted({one.seed for one in found})
    bare = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "command": command(chosen.task, len(seeds)),
        "environment": environment(),
        "suite_digest": digest,
        "seeds": seeds,
        **summary(found),
    }
    print(json.dumps({"kinds": bare["kinds"], "near": bare["near"]}, indent=1))
    if chosen.record:
        records.write("honest-margin", bare, page(bare))


if __name__ == "__main__":
    main()
