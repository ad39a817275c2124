"""The files of a zip archive, streamed in memory under caps. Nothing is extracted to disk."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from runner.intake import limits
from runner.intake.model import Refusal, Refused, shown
from runner.intake.predictions import Text

ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".7z", ".rar", ".zst")
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
)
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY = b"PK\x01\x02"  # what each entry of an archive's directory begins with
_ENCRYPTED = 0x1
_MIN_BOMB = limits.MIB  # below this size a high ratio is only a small file of zeros


def members(name: str, data: bytes) -> Iterator[Text | Refusal]:
    """Each file of the archive `name`, or why it is not taken."""
    count = data.count(_ENTRY)  # before the directory is read: 300,000 entries take seconds
    if count > limits.MAX_ENTRIES:
        most = f"pack at most {limits.MAX_ENTRIES:,}, or send one predictions.jsonl"
        yield Refusal(name, f"{count:,} entries in the archive", most)
        return
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from _each(name, archive)
    except _BROKEN as error:
        yield Refusal(name, f"not a readable zip archive: {shown(error)}", "pack it again as .zip")


_OUTPUT = ("perf_results", "perf_logs", "test_failures")  # of upstream's harness, beside results


def is_noise(path: str) -> bool:
    """Files that come along unasked: hidden ones, caches, package markers, upstream's logs."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    hidden = any(part.startswith(".") and part not in ("..", ".") for part in parts)
    if any(folder in parts[:-1] for folder in _OUTPUT):
        return True
    return hidden or "__pycache__" in parts or "__MACOSX" in parts or parts[-1:] == ("__init__.py",)


def _each(name: str, archive: zipfile.ZipFile) -> Iterator[Text | Refusal]:
    left = limits.MAX_UNPACKED_BYTES
    for entry in archive.infolist():
        place = f"{name}: {shown(entry.filename)}"
        if entry.filename.endswith("/"):
            continue
        try:
            _check(entry)
            if is_noise(entry.filename):
                continue
            # Taken off before it is unpacked: an entry that turns out damaged has cost as much.
            room, left = left, max(0, left - entry.file_size)
            content = _content(archive, entry, room)
        except Refused as refused:
            yield refused.at(place)
            continue
        yield Text(entry.filename, content, place)


def _check(entry: zipfile.ZipInfo) -> None:
    """Refuse what has no business in an upload by what the directory of the archive says."""
    path = entry.filename.replace("\\", "/")
    if not path:
        raise Refused("an entry without a name", "pack the files again")
    # Each folder is looked up among the tasks.
    if len(path) > limits.MAX_PATH or path.count("/") > limits.MAX_FOLDERS:
        raise Refused("a path that is too long", "pack the files in few folders")
    if path.startswith("/") or ".." in path.split("/") or path[1:2] == ":":
        raise Refused("a path that leads out of the archive", "pack files under relative names")
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise Refused("a link or another special file", "pack the file itself")
    if entry.flag_bits & _ENCRYPTED:
        raise Refused("encrypted", "pack it without a password")
    if path.lower().endswith(ARCHIVES):
        raise Refused("an archive inside the archive", "pack the files themselves")
    if entry.compress_type not in _METHODS:
        raise Refused("compressed by a method other than deflate", "pack it again as plain .zip")
    if entry.file_size > _MIN_BOMB and entry.file_size > limits.MAX_RATIO * entry.compress_size:
        raise Refused(
            f"unpacks to more than {limits.MAX_RATIO} times its size", "send the file itself"
        )


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, left: int) -> bytes:
    """The bytes of an entry; what its header claims about its size is not believed."""
    cap = min(left, limits.MAX_UPLOAD_BYTES)
    try:
        with archive.open(entry) as file:
            content = file.read(cap + 1)
    except _BROKEN as error:
        raise Refused(f"damaged: {shown(error)}", "pack the archive again") from error
    if len(content) > cap:
        raise Refused(
            "the archive unpacks to too much", f"send at most {limits.MAX_UNPACKED_BYTES:,} bytes"
        )
    return content
