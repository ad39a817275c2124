"""The two ways in: an upload's bytes, and paths on the command line."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from runner.intake import archives, folders, limits
from runner.intake.model import Found, Intake, KnownTasks, Refusal, shown
from runner.intake.predictions import Text, from_jsonl, from_python

_READERS = {".py": from_python, ".jsonl": from_jsonl, ".ndjson": from_jsonl}
_TAKEN = "send .py, .jsonl, or a .zip of them"


def read_upload(filename: str, data: bytes, known: KnownTasks) -> Intake:
    """The candidates in one uploaded file. Never raises for what the file holds; reads nothing but
    `data`.
    """
    name = filename.replace("\\", "/").rpartition("/")[2]
    return _collected(_pieces(Text(name, data, shown(name)), known))


def read_paths(paths: Iterable[str | os.PathLike[str]], known: KnownTasks) -> Intake:
    """The candidates in files and folders of this machine. Never raises for what they hold."""
    found = (file for path in paths for file in folders.files(Path(path)))
    return _collected(
        piece
        for file in found
        for piece in ([file] if isinstance(file, Refusal) else _pieces(file, known))
    )


def _pieces(text: Text, known: KnownTasks) -> Iterator[Found | Refusal]:
    if len(text.data) > limits.MAX_UPLOAD_BYTES:
        size = f"{len(text.data):,} bytes"
        yield Refusal(text.place, size, f"send at most {limits.MAX_UPLOAD_BYTES:,} bytes an upload")
    elif _suffix(text.path) != ".zip":
        yield from _of_file(text, known)
    else:
        for member in archives.members(text.place, text.data):
            yield from [member] if isinstance(member, Refusal) else _of_file(member, known)


def _of_file(text: Text, known: KnownTasks) -> Iterator[Found | Refusal]:
    reader = _READERS.get(_suffix(text.path))
    if reader:
        yield from reader(text, known)
    else:
        yield Refusal(
            text.place,
            f"not a kind of file that is read: {shown(_suffix(text.path)) or 'no ending'}",
            _TAKEN,
        )


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _collected(pieces: Iterable[Found | Refusal]) -> Intake:
    """Sort the pieces: one candidate a task and round, no more of anything than the limits."""
    first: dict[tuple[str, int], Found] = {}
    refusals: list[Refusal] = []
    for number, piece in enumerate(pieces):
        if number - len(refusals) >= limits.MAX_CANDIDATES or len(refusals) >= limits.MAX_REFUSALS:
            refusals.append(_stop(piece.place))
            break
        if isinstance(piece, Refusal):
            refusals.append(piece)
        else:
            refusals += _added(first, piece)
    if not first and not refusals:
        refusals.append(Refusal("the upload", "nothing in it", _TAKEN))
    return Intake(tuple(first.values()), tuple(refusals))


def _stop(place: str) -> Refusal:
    most = f"{limits.MAX_CANDIDATES:,} candidates or {limits.MAX_REFUSALS} refusals"
    return Refusal(place, f"after {most} the rest is not read", "mend the refusals, or split it up")


def _added(first: dict[tuple[str, int], Found], piece: Found) -> list[Refusal]:
    """Keep the first of a task and round. The same text again is a note, another text a refusal."""
    earlier = first.setdefault((piece.task, piece.round), piece)
    if earlier is piece:
        return []
    if earlier.source == piece.source:
        again = (*earlier.notes, f"the same text again at {piece.place}")
        first[piece.task, piece.round] = replace(earlier, notes=again)
        return []
    reason = (
        f"a second candidate for {piece.task}, round {piece.round}; the first is at {earlier.place}"
    )
    return [Refusal(piece.place, reason, "give it another round, or leave one of them out")]
