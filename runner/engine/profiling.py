"""The supervisor's reading of device activity: whose kernels took the time of the timed cases, and
on which streams.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from benchmark import vocabulary as words
from runner.engine.proof import LEAST_TIME_SHARE
from runner.engine.trial import Trial, Verdict

CALLS = 3
FREE_ACTIVITY = ("memcpy", "memset", "fillfunctor", "direct_copy_kernel", "catarraybatchedcopy")


@dataclass(frozen=True)
class Activity:
    """What ran on the device under one name, over all profiled calls."""

    name: str
    own: bool
    on_our_stream: bool
    count: int
    microseconds: float

    @property
    def free(self) -> bool:
        """Copies and fills are nobody's work."""
        return not self.own and any(word in self.name.lower() for word in FREE_ACTIVITY)


def read_activity(rows: object) -> list[Activity]:
    """Rows out of a candidate's message; what has another form than ours is left out."""
    return list(_activities(rows if isinstance(rows, list) else []))


def _activities(rows: list) -> Iterable[Activity]:
    for row in rows:
        if not isinstance(row, list) or len(row) != 5:
            continue
        name, own, ours, count, microseconds = row
        numbers = type(count) is int and isinstance(microseconds, float | int)
        if isinstance(name, str) and numbers and 0 <= microseconds < 1e12:
            yield Activity(name, own is True, ours is True, count, float(microseconds))


def own_share(activity: list[Activity]) -> float | None:
    """The candidate's kernels' part of the device time without copies and fills; None when nothing
    was seen.
    """
    counted = [one for one in activity if not one.free]
    total = sum(one.microseconds for one in counted)
    return sum(one.microseconds for one in counted if one.own) / total if total else None


def prove_by_time(trial: Trial) -> None:
    """On every timed case the candidate's kernels take most of the device time; raises Verdict
    otherwise.
    """
    cases = trial.contract.judgeable("timed")
    for index, case in enumerate(cases):
        trial.progress("proof", index, len(cases))
        activity, _ = profile(trial, case, CALLS)
        share = own_share(activity)
        if share is None:
            trial.report.add("no-profile", "the profiler saw no device activity", "proof")
            share = share_by_suppression(trial, case)
        trial.result(case).own_share = share
        if any(not one.on_our_stream for one in activity) or _names_streams(trial):
            trial.joined.add(case["case"])
            trial.report.add(
                "streams", "uses streams of its own: timed until all streams are done", "proof"
            )
        _require(trial, case, share, activity)


def _names_streams(trial: Trial) -> bool:
    return any(f.code in ("source-own-stream", "source-cuda-graph") for f in trial.report.findings)


def profile(trial: Trial, case: dict, calls: int) -> tuple[list[Activity], float]:
    """Device activity of a few calls on fresh arguments; and the ms for which the device was busy
    in the shortest of them, as the first may still compile. With others on the board a call takes
    longer: then its parts mean something, and its length does not.
    """
    seeds = [trial.new_seed() for _ in range(calls)]
    message = {"op": "profile", "task": trial.contract.name, "case": case["case"]}
    reply = trial.ask({**message, "seeds": seeds})
    return read_activity(reply.get("activity")), read_busy(reply.get("busy"))


def read_busy(values: object) -> float:
    """Milliseconds of the shortest call out of a candidate's message; 0 for anything else."""
    usable = isinstance(values, list) and all(
        isinstance(value, float | int) and 0 <= value < 1e12 for value in values
    )
    return min(values, default=0.0) / 1e3 if usable else 0.0  # type: ignore[call-overload]


def require_own(trial: Trial, case: dict, activity: list[Activity]) -> None:
    """The same of a call among the timed ones; raises Verdict when others' kernels do its work."""
    share = own_share(activity)
    if share is not None:
        _require(trial, case, share, activity)


def _require(trial: Trial, case: dict, share: float, activity: list[Activity]) -> None:
    if share >= LEAST_TIME_SHARE or trial.contract.delegates:
        return
    others = [one for one in activity if not one.own and not one.free]
    named = ", ".join(one.name[:60] for one in others[:3]) or "other kernels"
    detail = (
        f"own kernels took {share:.0%} of the device time, {named} the rest (case {case['case']})"
    )
    trial.result(case).fail(words.FORBIDDEN, detail)
    raise Verdict(words.FORBIDDEN, detail)


def share_by_suppression(trial: Trial, case: dict) -> float:
    """Without a profiler: the part of the call's time that goes away when its kernels are switched
    off.
    """
    from runner.engine.timing import candidate_block

    with_kernels = candidate_block(trial, case, samples=5, spin=200.0).median
    without = candidate_block(trial, case, samples=5, spin=200.0, suppress=True).median
    return max(0.0, 1.0 - without / with_kernels)


def describe_kernels(trial: Trial) -> None:
    """Fill the report's kernels with what the compiler and the driver say about them."""
    reply = trial.ask({"op": "kernels"})
    calls: dict[str, int] = {}
    for one in trial.observed:
        for name, count in one.launches.items():
            calls[name] = calls.get(name, 0) + count
    rows = reply.get("kernels")
    seen = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    trial.report.kernels = [_kernel(row, calls) for row in seen]
    peak = reply.get("peak")
    trial.report.peak_memory_bytes = peak if type(peak) is int else None


def _kernel(row: dict, calls: dict[str, int]) -> dict:
    name = str(row.get("name"))[:200]
    numbers = ("registers", "spills", "shared_bytes")
    found = {key: row.get(key) if type(row.get(key)) is int else None for key in numbers}
    digest = row.get("hash")
    return {
        "name": name,
        "hash": digest[:64] if isinstance(digest, str) else None,
        **found,
        "calls": calls.get(name),
        "device_ms": None,
    }
