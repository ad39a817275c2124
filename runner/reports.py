"""What a judge's report must look like, and what must be true of it, before it becomes a run."""

from typing import Any

from benchmark import vocabulary
from runner.schema import (
    Flag,
    Hex,
    Json,
    List,
    Malformed,
    Number,
    Optional,
    Prose,
    Record,
    Slug,
    Table,
    Text,
    Whole,
    Word,
)

TASK_NAME = Text(80)
VERDICT = Word(tuple(vocabulary.VERDICTS))
STAGE = Word(vocabulary.STAGES)
RATIO = Optional(Number(0, 1e9, above=True))
MILLISECONDS = Optional(Number(0, 1e9, above=True))
ERROR = Optional(Number(0, 1.7e308))  # an honest wrong answer can be off by anything finite
COUNT = Optional(Number(0, 1e21))
INTERVALS = ("speedup", "candidate_ms", "reference_ms")

CASE = Record(
    {
        "case": Text(120),
        "kind": Word(vocabulary.CASE_KINDS),
        "shape": Prose(300),
        "dtype": Text(16),
        "family": Optional(Text(40), ""),
        "state": Word(vocabulary.CASE_STATES),
        "verdict": Optional(VERDICT, ""),
        "detail": Optional(Prose(4000), ""),
        "error": ERROR,
        "reference_error": ERROR,
        "tolerance": ERROR,
        "unit": Optional(Text(80), ""),
        "candidate_ms": MILLISECONDS,
        "candidate_ms_low": MILLISECONDS,
        "candidate_ms_high": MILLISECONDS,
        "reference_ms": MILLISECONDS,
        "reference_ms_low": MILLISECONDS,
        "reference_ms_high": MILLISECONDS,
        "speedup": RATIO,
        "speedup_low": RATIO,
        "speedup_high": RATIO,
        "flops": COUNT,
        "bytes": COUNT,
        "own_share": Optional(Number(0, 1)),
        "samples": Optional(Whole(0, 2**31 - 1)),
    }
)
KERNEL = Record(
    {
        "name": Prose(200),
        "hash": Optional(Text(128), ""),
        "registers": Optional(Whole(0, 100_000)),
        "spills": Optional(Whole(0, 10**9)),
        "shared_bytes": Optional(Whole(0, 10**9)),
        "calls": Optional(Whole(0, 10**9)),
        "device_ms": Optional(Number(0, 1e9)),
    }
)
FINDING = Record(
    {
        "code": Text(60),
        "message": Prose(2000),
        "stage": Optional(STAGE, ""),
        "suspect": Optional(Flag()),
    }
)
REPORT = Record(
    {
        "task": TASK_NAME,
        "round": Whole(0, 32767),
        "source_sha256": Hex(64),
        "task_digest": Hex(64),
        "judge_version": Text(40),
        "device": Text(40),
        "verdict": VERDICT,
        "stage": STAGE,
        "detail": Optional(Prose(8000), ""),
        "speedup": RATIO,
        "speedup_low": RATIO,
        "speedup_high": RATIO,
        "suspect": Optional(Flag(), False),
        "cases": List(CASE, 400),
        "kernels": List(KERNEL, 400),
        "findings": List(FINDING, 200),
        "seconds": Json(nodes=60, depth=2),
        "peak_memory_bytes": Optional(Whole(0, 2**62)),
        "log_tail": Optional(Prose(16_384), ""),
        "environment": Json(nodes=2000),
    }
)
BOARD = Record(
    {
        "gpu": Slug(40),
        "serial": Text(64),
        "host": Text(120),
        "name": Optional(Prose(80), ""),
        "architecture": Optional(Text(40), ""),
        "memory": Optional(Whole(0, 2**62)),
        "jobs": Optional(Whole(1, vocabulary.MOST_JOBS), 1),
        "judge_version": Optional(Text(40), ""),
        "suite_digest": Optional(Text(64), ""),
        "tasks": Optional(Table(Text(80), Hex(64), 1000), {}),
    }
)


def read_report(value: Any) -> dict[str, Any]:
    """The report, clean, complete and consistent in itself; `Malformed` says where it is not."""
    report = REPORT.read(value, "report")
    _refuse_repeated_cases(report["cases"])
    for holder, place in _holders(report):
        for name in INTERVALS:
            _refuse_value_outside_interval(holder, name, place)
    for at, case in enumerate(report["cases"]):
        _refuse_half_a_timing(case, f"report.cases[{at}]")
    _refuse_speed_of_the_wrong(report)
    _refuse_pass_without_proof(report)
    return report


def _holders(report: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    cases = [(case, f"report.cases[{at}]") for at, case in enumerate(report["cases"])]
    return [(report, "report"), *cases]


def _refuse_repeated_cases(cases: list[dict[str, Any]]) -> None:
    names = [case["case"] for case in cases]
    if len(set(names)) != len(names):
        raise Malformed("report.cases", "each case once")


def _refuse_value_outside_interval(holder: dict[str, Any], name: str, place: str) -> None:
    low, value, high = (holder.get(f"{name}{end}") for end in ("_low", "", "_high"))
    if low is None and value is None and high is None:
        return
    if low is None or value is None or high is None:
        if holder.get("case") is not None and value is not None and low is None and high is None:
            return  # one case may come without an interval of its own
        raise Malformed(f"{place}.{name}", "a value together with its interval")
    if not low <= value <= high:
        raise Malformed(f"{place}.{name}", f"a value inside its interval [{low:g}, {high:g}]")


def _refuse_half_a_timing(case: dict[str, Any], place: str) -> None:
    times = [case[name] for name in ("candidate_ms", "reference_ms", "speedup")]
    if any(time is None for time in times) and any(time is not None for time in times):
        raise Malformed(place, "candidate_ms, reference_ms and speedup together, or none of them")


def _refuse_speed_of_the_wrong(report: dict[str, Any]) -> None:
    may_be_timed = (vocabulary.PASSED, vocabulary.UNSTABLE, vocabulary.IMPOSSIBLE)
    if report["speedup"] is not None and report["verdict"] not in may_be_timed:
        raise Malformed("report.speedup", f"null for the verdict {report['verdict']}")


def _refuse_pass_without_proof(report: dict[str, Any]) -> None:
    if report["verdict"] != vocabulary.PASSED:
        return
    states = {case["state"] for case in report["cases"]}
    if "failed" in states or "passed" not in states:
        raise Malformed("report.verdict", "passed only with a passed case and no failed one")
