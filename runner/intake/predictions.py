"""One prediction, from a line of JSON or a Python file, to a candidate."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from runner.intake import claims, limits, names
from runner.intake.cleaning import clean
from runner.intake.model import Claim, Found, KnownTasks, Refusal, Refused, once, shown

FALLBACK_ENTRY = "kernel_function"  # the published format's second name for every entry point
_PROMPTS = ("instruction", "prompt", "query")
_EXAMPLE = '{"file": "Math/abs.py", "predict": "import torch..."}'


@dataclass(frozen=True)
class Text:
    """A file's bytes, the path that names it within the upload, and how messages call it."""

    path: str
    data: bytes
    place: str


def from_jsonl(text: Text, known: KnownTasks) -> Iterator[Found | Claim | Refusal]:
    """A candidate, a claimed result or a refusal for each line that is not blank."""
    start = 0
    for number, line in enumerate(io.BytesIO(text.data), 1):
        place = f"{text.place} line {number}"
        if number > limits.MAX_LINES:
            yield Refusal(place, f"more than {limits.MAX_LINES:,} lines", "send several files")
            return
        if line.strip(b" \t\r\n\xef\xbb\xbf"):
            try:
                yield _from_line(line, start, text.path, place, known)
            except Refused as refused:
                yield refused.at(place)
        start += len(line)


def from_json(text: Text, known: KnownTasks) -> Iterator[Claim | Refusal]:
    """The claimed results in a metrics.json; any other JSON file is refused by what it is."""
    try:
        if text.path.replace("\\", "/").rpartition("/")[2].lower() == claims.SUMMARY:
            raise Refused("a summary, without results of single tasks", "send metrics.json")
        if len(text.data) > limits.MAX_JSON_BYTES:
            size = f"{len(text.data):,} bytes"
            raise Refused(size, f"send at most {limits.MAX_JSON_BYTES:,} bytes of JSON")
        yield from claims.of_metrics(_decoded(text.data, 0), text.path, text.place, known)
    except Refused as refused:
        yield refused.at(text.place)


def from_python(text: Text, known: KnownTasks) -> Iterator[Found | Refusal]:
    """The candidate in a .py file, or why it is none."""
    try:
        yield _from_file(text, known)
    except Refused as refused:
        yield refused.at(text.place)


def _from_line(line: bytes, start: int, path: str, place: str, known: KnownTasks) -> Found | Claim:
    record = _record(line, start)
    if claims.is_result(record):
        return claims.of_line(record, path, _round_of(record, path), place, known)
    predict = _text(record, "predict")
    if predict is None:
        raise Refused("no field `predict`", f"write one object a line, like {_EXAMPLE}")
    task = _task_of(record, known)
    number = _round_of(record, path)
    if task is None:
        return _named_by_function(predict, number, place, known)
    return _candidate(task, predict, number, place, known)


def _from_file(text: Text, known: KnownTasks) -> Found:
    if len(text.data) > limits.MAX_PYTHON_BYTES:
        raise Refused(
            f"{len(text.data):,} bytes", f"send at most {limits.MAX_PYTHON_BYTES:,} bytes a file"
        )
    source, number = _decoded(text.data, 0), _checked_round(names.round_of_path(text.path) or 0)
    task = names.of_path(text.path, known)
    if task:
        return _candidate(task, source, number, text.place, known)
    try:
        return _named_by_function(source, number, text.place, known)
    except Refused as refused:
        if refused.reason != _NAMELESS:
            raise
        names.asked(names.stem(text.path), known)  # raises, with near misses of the file's name
        raise


_NAMELESS = "it names no task"


def _named_by_function(text: str, number: int, place: str, known: KnownTasks) -> Found:
    task = names.of_functions(clean(text, ()).defined, known)
    if task is None:
        raise Refused(
            _NAMELESS, f"add the field `file`, or name the .py file like its task: {_EXAMPLE}"
        )
    return _candidate(task, text, number, place, known)


def _candidate(task: names.Named, text: str, number: int, place: str, known: KnownTasks) -> Found:
    cleaned = clean(text, _entries(task.task, known))
    return Found(task.task, number, cleaned.source, place, (*task.notes, *cleaned.notes))


def _entries(slug: str, known: KnownTasks) -> set[str]:
    """Every name that the entry point of a task may have."""
    other = {alias for alias, target in known.aliases.items() if target == slug}
    return {slug, slug.removeprefix("fused_"), FALLBACK_ENTRY, *known.names[slug].entries, *other}


def _record(line: bytes, start: int) -> Mapping[str, object]:
    if len(line) > limits.MAX_LINE_BYTES:
        raise Refused(f"{len(line):,} bytes in one line", f"send at most {limits.MAX_LINE_BYTES:,}")
    try:
        record = json.loads(_decoded(line, start), object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise Refused(
            f"not JSON: {error.msg} at column {error.colno}",
            f"write one JSON object a line, like {_EXAMPLE}",
        ) from error
    except (RecursionError, ValueError, MemoryError) as error:
        raise Refused(
            "JSON that is nested too deeply or holds too long a number", "send plain fields"
        ) from error
    if not isinstance(record, dict):
        raise Refused(
            f"a JSON {_kind(record)}, not an object", f"write one object a line, like {_EXAMPLE}"
        )
    return record


def _decoded(data: bytes, start: int) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(
            f"not UTF-8 at byte {start + error.start}", "save the file as UTF-8"
        ) from error


def _task_of(record: Mapping[str, object], known: KnownTasks) -> names.Named | None:
    """By `file` (or `task`) where there is one, else by the prompt; None when neither says."""
    for key in ("file", "task"):
        name = _text(record, key)
        if name is not None:
            return names.asked(names.stem(name), known)
    for key in _PROMPTS:
        prompt = _text(record, key)
        if prompt is not None:
            return names.of_prompt(prompt, known)
    return None


def _text(record: Mapping[str, object], key: str) -> str | None:
    value = record.get(key)
    if value is None or isinstance(value, str):
        return value
    raise Refused(f"`{key}` is a {_kind(value)}, not text", f"write it in quotes, like {_EXAMPLE}")


def _round_of(record: Mapping[str, object], path: str) -> int:
    value = record.get("round")
    if value is None:
        return _checked_round(names.round_of_path(path) or 0)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        return _checked_round(int(value))
    if isinstance(value, int) and not isinstance(value, bool):
        return _checked_round(value)
    raise Refused(
        f"`round` is {shown(repr(value)[:40])}, not a whole number", "count rounds 0, 1, 2, ..."
    )


def _checked_round(value: int) -> int:
    if not 0 <= value <= limits.MAX_ROUND:
        raise Refused("`round` is out of range", f"count rounds from 0 to {limits.MAX_ROUND}")
    return value


def _kind(value: object) -> str:
    kinds = {
        dict: "object",
        list: "list",
        str: "text",
        bool: "truth value",
        int: "number",
        float: "number",
    }
    return kinds.get(type(value), "null")
