"""Files that were made, kept under the board's generation: made once, then only sent."""

import hashlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from django.conf import settings

from benchmark.models import CountingRun
from leaderboard.conditional import release
from leaderboard.exports.datasets import VERSION, Dataset
from leaderboard.exports.selection import Selection
from leaderboard.exports.writers import FORMATS

KEPT = 96  # files: eight selections in every table and format
KEPT_BYTES = 2 * 2**30
SMALL = 5000  # results on the whole site up to which its data page makes files unasked


@dataclass(frozen=True, slots=True)
class Made:
    """A file on this machine, and what is said of it."""

    name: str
    rows: int
    sha256: str
    size: int

    @property
    def path(self) -> Path:
        return folder() / self.name


def folder() -> Path:
    return Path(settings.STATE_DIR) / "exports"


def made(dataset: Dataset, format: str, selection: Selection) -> Made | None:
    """The file if it is there already."""
    return _made(_name(dataset, format, selection))


def _made(name: str) -> Made | None:
    about = folder() / f"{name}.json"
    try:
        found = Made(**json.loads(about.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.path.is_file() else None


def make(dataset: Dataset, format: str, selection: Selection) -> Made:
    """The file, written first where it isn't there. Readers never see half of one."""
    name = _name(dataset, format, selection)
    found = _made(name)
    if found is not None:
        return found
    folder().mkdir(parents=True, exist_ok=True)
    part = Path(_temporary())
    try:
        rows = FORMATS[format](dataset, dataset.rows(selection), part)
        found = Made(name, rows, _sha256(part), part.stat().st_size)
        os.replace(part, found.path)
    finally:
        part.unlink(missing_ok=True)
    note = Path(_temporary())
    note.write_text(json.dumps(asdict(found)), encoding="utf-8")
    os.replace(note, folder() / f"{name}.json")
    _clear()
    return found


def is_small() -> bool:
    return len(CountingRun.objects.values_list("pk")[: SMALL + 1]) <= SMALL


def _name(dataset: Dataset, format: str, selection: Selection) -> str:
    """Another generation, database, release or selection is another file."""
    stamp = selection.stamp or os.urandom(8).hex()
    facts = (VERSION, release(), stamp, selection.query)
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:20]
    return f"{dataset.name}-{key}.{format}"


def _temporary() -> str:
    handle, path = tempfile.mkstemp(dir=folder(), suffix=".part")
    os.close(handle)
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _clear() -> None:
    """The oldest files go when there are too many, or too large ones. One being sent stays open."""
    size = 0
    files = [path for path in folder().iterdir() if path.suffix not in (".json", ".part")]
    by_age = sorted(((_modified(path), path) for path in files), reverse=True)
    for position, (_, path) in enumerate(by_age):
        size += path.stat().st_size if path.exists() else 0
        if position and (position >= KEPT or size > KEPT_BYTES):
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.json").unlink(missing_ok=True)


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process was quicker to remove it
        return 0.0
