"""Results that another harness wrote down: upstream's `metrics.json` and `results_*.jsonl`.

They are claims: they never become verdicts of ours. A record says how far a candidate came there;
records of several files about the same task and round are put together.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from runner.intake import limits, names
from runner.intake.cleaning import clean
from runner.intake.model import DUPLICATE, Claim, KnownTasks, Refusal, Refused, once, shown

METRICS, SUMMARY = "metrics.json", "summary.json"
STAGES = ("call", "check", "time")
_FILE = re.compile(r"results_(call|exe|eff)\b", re.IGNORECASE)
_STAGE_OF_FILE = {"call": "call", "exe": "check", "eff": "time"}
_NUMBERS = ("runtime_ms", "gbs", "tflops")
_LONGEST_DETAIL = 500
_LONGEST_DTYPE = 16
_MOST_MISSED = 8
_REMEDY = "send the metrics.json that upstream's harness wrote, or its results_*.jsonl"


def is_result(record: Mapping[str, object]) -> bool:
    """Whether a line is one of results_*.jsonl and no prediction."""
    return "predict" not in record and isinstance(record.get("ok"), bool)


def of_line(
    record: Mapping[str, object], path: str, round: int, place: str, known: KnownTasks
) -> Claim:
    """What a line of results_call, results_exe or results_eff claims."""
    named = names.asked(names.stem(_name(record.get("file"))), known)
    stage = _stage(record, path)
    ok = record["ok"] is True
    return Claim(
        named.task,
        round,
        stage,
        # Timed is only what passed the check; without a time it is correct all the same.
        ok or stage == "time",
        place,
        sha256=_sha256(record, named.task, known),
        speedup=_speedup(record) if ok and stage == "time" else None,
        is_suspect=record.get("is_suspect") is True,
        facts=_facts(record),
        detail=_detail(record),
    )


def of_metrics(text: str, path: str, place: str, known: KnownTasks) -> Iterator[Claim | Refusal]:
    """A claim for each record of a metrics.json, or why it is none, by its line."""
    records = _document(text)
    round_ = names.round_of_path(path) or 0
    for (key, record), line in zip(records.items(), _lines_of(records, text), strict=True):
        where = f"{place} line {line}"
        try:
            yield _of_record(key, record, round_, where, known)
        except Refused as refused:
            yield refused.at(where)


def merged(claims: Iterable[Claim]) -> tuple[tuple[Claim, ...], tuple[Refusal, ...]]:
    """One claim a task and round: the first stage that failed, else the last one that went well."""
    found: dict[tuple[str, int], Claim] = {}
    refusals = []
    for claim in claims:
        place = (claim.task, claim.round)
        earlier = found.get(place)
        if earlier is not None and earlier.stage == claim.stage and _says(earlier) != _says(claim):
            reason = f"another result for {claim.task}, round {claim.round}, is at {earlier.place}"
            refusals.append(Refusal(claim.place, reason, "leave one of them out", DUPLICATE))
        else:
            found[place] = claim if earlier is None else _together(earlier, claim)
    told = {place: claim for place, claim in found.items() if _is_verdict(claim)}
    for place, claim in found.items():
        if place not in told:
            reason = "it claims only that the candidate can be called"
            refusals.append(Refusal(claim.place, reason, "send results_exe.jsonl along with it"))
    return tuple(told.values()), tuple(refusals)


def _together(one: Claim, other: Claim) -> Claim:
    first, last = sorted((one, other), key=lambda claim: STAGES.index(claim.stage))
    decisive = last if first.ok else first
    return replace(
        decisive,
        sha256=one.sha256 or other.sha256,
        is_suspect=one.is_suspect or other.is_suspect,
        facts={**first.facts, **last.facts},
    )


def _says(claim: Claim) -> tuple[bool, float | None]:
    return claim.ok, claim.speedup


def _is_verdict(claim: Claim) -> bool:
    return claim.stage != "call" or not claim.ok


def _document(text: str) -> Mapping[str, Mapping[str, object]]:
    try:
        document = json.loads(text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise Refused(f"not JSON: {error.msg} at {at}", _REMEDY) from error
    except (RecursionError, ValueError, MemoryError) as error:
        raise Refused("JSON that is nested too deeply or holds too long a number", _REMEDY) from (
            error
        )
    if not isinstance(document, dict) or not all(_is_record(value) for value in document.values()):
        raise Refused(
            "JSON, but no metrics.json: predictions are lines of a .jsonl",
            f"{_REMEDY}; send predictions as .jsonl",
        )
    if len(document) > limits.MAX_CANDIDATES:
        raise Refused(f"{len(document):,} records", f"send at most {limits.MAX_CANDIDATES:,}")
    return document


def _is_record(value: object) -> bool:
    return isinstance(value, dict) and "call_ok" in value


def _of_record(
    key: str, record: Mapping[str, object], round_: int, place: str, known: KnownTasks
) -> Claim:
    named = names.asked(names.stem(key), known)
    call, check, timed = (_truth(record, name) for name in ("call_ok", "exe_ok", "perf_ok"))
    stage = "call" if not call else "check" if not check or not timed else "time"
    return Claim(
        named.task,
        round_,
        stage,
        call and check,
        place,
        sha256=_sha256(record, named.task, known),
        speedup=_speedup(record) if stage == "time" else None,
        is_suspect=record.get("is_suspect") is True,
        facts=_facts(record),
        detail=_detail(record),
    )


def _truth(record: Mapping[str, object], name: str) -> bool:
    value = record.get(name)
    if isinstance(value, bool):
        return value
    if name == "perf_ok" and value in (None, "N/A"):
        return False
    raise Refused(f"`{name}` is {shown(repr(value)[:40])}, not true or false", _REMEDY)


def _stage(record: Mapping[str, object], path: str) -> str:
    """By the file's name, else by the fields that only one stage writes."""
    match = _FILE.search(names.stem(path))
    if match:
        return _STAGE_OF_FILE[match[1].lower()]
    if "speedup" in record or "runtime_ms" in record:
        return "time"
    return "call" if "code_quality" in record else "check"


def _name(value: object) -> str:
    if isinstance(value, str) and value:
        return value
    raise Refused("a result without `file`", _REMEDY)


def _speedup(record: Mapping[str, object]) -> float | None:
    value = record.get("speedup")
    if value in (None, "N/A", ""):
        return None
    number = _number(value)
    if number is None or number <= 0:
        raise Refused(f"`speedup` is {shown(repr(value)[:40])}, no positive number", _REMEDY)
    return number


def _number(value: object) -> float | None:
    """A finite number, or None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _facts(record: Mapping[str, object]) -> dict[str, str | float | bool]:
    facts: dict[str, str | float | bool] = {
        name: number for name in _NUMBERS if (number := _number(record.get(name))) is not None
    }
    dtype = record.get("dtype")
    if isinstance(dtype, str) and dtype not in ("", "N/A"):
        facts["dtype"] = shown(dtype)[:_LONGEST_DTYPE]
    return facts


def _detail(record: Mapping[str, object]) -> str:
    """The last line of what the harness printed: an assertion's or an exception's message."""
    said = record.get("stderr") or record.get("error")
    if not isinstance(said, str):
        return ""
    lines = [line.strip() for line in said[-4 * _LONGEST_DETAIL :].splitlines() if line.strip()]
    return shown(lines[-1])[:_LONGEST_DETAIL] if lines else ""


def _sha256(record: Mapping[str, object], task: str, known: KnownTasks) -> str:
    """Of the source as intake would clean it. Upstream appends its tests below a line of `#`, with
    blank lines before it: the source is taken to end in one line end, as files do.
    """
    code = record.get("code")
    if not isinstance(code, str) or not code.strip():
        return ""
    try:
        source = clean(code, {task, *known.names[task].entries}).source
    except Refused:
        return ""
    return hashlib.sha256(f"{source.rstrip()}\n".encode()).hexdigest()


def _lines_of(keys: Iterable[str], text: str) -> Iterator[int]:
    """The line on which the record of each name begins, from 1. Looked for once through the text,
    since the names stand in its order; one that is written with other escapes has the line before,
    and after a few of those nothing is looked for: each costs a walk through the text.
    """
    line, position, missed = 1, 0, 0
    for key in keys:
        if missed < _MOST_MISSED:
            found = _position(key, text, position)
            missed += found < 0
            if found >= 0:
                line, position = line + text.count("\n", position, found), found
        yield line


def _position(key: str, text: str, start: int) -> int:
    """Where the name stands from `start` on, in either spelling that JSON writers use; else -1."""
    spellings = (json.dumps(key), json.dumps(key, ensure_ascii=False))
    places = (text.find(spelled, start) for spelled in spellings)
    return next((place for place in places if place >= 0), -1)
