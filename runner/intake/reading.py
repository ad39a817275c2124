"""The two ways in: an upload's bytes, and paths on the command line."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from runner.intake import archives, claims, folders, limits, names
from runner.intake.model import DUPLICATE, Claim, Found, Intake, KnownTasks, Refusal, shown
from runner.intake.predictions import Text, from_json, from_jsonl, from_python

_Piece = Found | Claim | Refusal
_Reader = Callable[[Text, KnownTasks], Iterator[_Piece]]
_READERS: dict[str, _Reader] = {
    ".py": from_python,
    ".jsonl": from_jsonl,
    ".ndjson": from_jsonl,
    ".json": from_json,
}
_TAKEN = "send .py, .jsonl, or a .zip of them"


def read_upload(filename: str, data: bytes, known: KnownTasks, round: int | None = None) -> Intake:
    """The candidates in one uploaded file. Never raises for what the file holds; reads nothing but
    `data`. `round` is that of everything in it that doesn't say its own.
    """
    name = filename.replace("\\", "/").rpartition("/")[2]
    return _collected(_pieces(_of_round(round, Text(name, data, shown(name))), known))


def read_paths(
    paths: Iterable[str | os.PathLike[str]], known: KnownTasks, round: int | None = None
) -> Intake:
    """The candidates in files and folders of this machine. Never raises for what they hold."""
    listed = (file for path in paths for file in folders.files(Path(path)))
    found = (file if isinstance(file, Refusal) else _of_round(round, file) for file in listed)
    return _collected(
        piece
        for file in found
        for piece in ([file] if isinstance(file, Refusal) else _pieces(file, known))
    )


def _pieces(text: Text, known: KnownTasks) -> Iterator[_Piece]:
    if len(text.data) > limits.MAX_UPLOAD_BYTES:
        size = f"{len(text.data):,} bytes"
        yield Refusal(text.place, size, f"send at most {limits.MAX_UPLOAD_BYTES:,} bytes an upload")
    elif _suffix(text.path) != ".zip":
        yield from _of_file(text, known)
    else:
        for member in archives.members(text.place, text.data):
            if isinstance(member, Refusal):
                yield member
            else:
                yield from _of_file(_in_round_of(text.path, member), known)


def _of_round(round: int | None, text: Text) -> Text:
    """The file as if it lay in a folder of that round: what names a round further in goes first."""
    return text if round is None else replace(text, path=f"round_{round}/{text.path}")


def _in_round_of(archive: str, member: Text) -> Text:
    """A file of `round_1.zip` is of round 1 where nothing in the archive says otherwise."""
    name = archive.rpartition(".")[0]
    if names.round_of_path(name) is None:
        return member
    return replace(member, path=f"{name}/{member.path}")


def _of_file(text: Text, known: KnownTasks) -> Iterator[_Piece]:
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


def _collected(pieces: Iterable[_Piece]) -> Intake:
    """Sort the pieces: one candidate a task and round, no more of anything than the limits."""
    first: dict[tuple[str, int], Found] = {}
    refusals: list[Refusal] = []
    told: list[Claim] = []
    for number, piece in enumerate(pieces):
        if number - len(refusals) >= limits.MAX_CANDIDATES or len(refusals) >= limits.MAX_REFUSALS:
            refusals.append(_stop(piece.place))
            break
        if isinstance(piece, Refusal):
            refusals.append(piece)
        elif isinstance(piece, Claim):
            told.append(piece)
        else:
            refusals += _added(first, piece)
    claimed, contradictions = claims.merged(told)
    refusals += contradictions
    if not first and not refusals and not claimed:
        refusals.append(Refusal("the upload", "nothing in it", _TAKEN))
    return Intake(tuple(first.values()), tuple(refusals), claimed)


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
    remedy = "give it another round, or leave one of them out"
    return [Refusal(piece.place, reason, remedy, DUPLICATE)]
