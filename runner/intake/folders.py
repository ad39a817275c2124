"""The files of folders on this machine, for the command line."""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from runner.intake import limits
from runner.intake.archives import is_noise
from runner.intake.model import Refusal, Refused, shown
from runner.intake.predictions import Text


def files(path: Path) -> Iterator[Text | Refusal]:
    """The file, or each file under the folder in the order of names, or why it is not taken."""
    if path.is_dir():
        yield from _walked(path)
    else:
        yield _file(path, path.absolute().parent)


def _walked(folder: Path) -> Iterator[Text | Refusal]:
    found = (file for file in _sorted(folder) if not is_noise(os.path.relpath(file, folder)))
    for number, file in enumerate(islice(found, limits.MAX_ENTRIES + 1)):
        if number == limits.MAX_ENTRIES:
            yield Refusal(
                shown(folder),
                f"more than {limits.MAX_ENTRIES:,} files",
                "name the folder of one method",
            )
            return
        yield _file(file, folder)


def _file(file: Path, folder: Path) -> Text | Refusal:
    """A file, known by its path from the folder's own name on: folders further out name no task and
    no round.
    """
    path = os.path.relpath(file.absolute(), folder.absolute().parent)
    try:
        return Text(path, _bytes_of(file), shown(file))
    except Refused as refused:
        return refused.at(shown(file))


def _sorted(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(parent, name) for name in sorted(names))


def _bytes_of(path: Path) -> bytes:
    try:
        kind = path.lstat()
        if not stat.S_ISREG(kind.st_mode):
            raise Refused("a link or another special file", "name the file itself")
        if kind.st_size > limits.MAX_UPLOAD_BYTES:
            raise Refused(
                f"{kind.st_size:,} bytes", f"send at most {limits.MAX_UPLOAD_BYTES:,} bytes"
            )
        with path.open("rb") as file:
            return file.read(limits.MAX_UPLOAD_BYTES + 1)
    except OSError as error:
        raise Refused(
            error.strerror or "can't be read", "check the path and its permissions"
        ) from error
