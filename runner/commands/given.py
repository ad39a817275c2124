"""What the commands that take candidates share: reading them, showing how far they are, and writing
a report that grows.
"""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Self

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from runner.intake import Found, Intake, KnownTasks, Refusal, TaskName, read_paths

errors = Console(stderr=True)
LEAST_PAUSE = 2.0  # seconds between two writings of a report


def writable(path: Path | None) -> Path | None:
    """The path of the report, tried before an hour of judging and not after it."""
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            return path
    except OSError as error:
        raise click.BadParameter(f"can't write {path}: {error.strerror}") from error


def read_candidates(paths: tuple[Path, ...], task: str | None, tasks: list[dict]) -> Intake:
    known = known_tasks(tasks)
    if task is None:
        return read_paths(paths, known)
    slug = known.aliases.get(task, task)
    if slug not in known.names:
        raise click.BadParameter(
            f"the suite has no task {task!r}; see `kbx tasks`", param_hint="--task"
        )
    named = [path for path in paths if path.is_file() and path.suffix == ".py"]
    others = [path for path in paths if path not in named]
    found = read_paths(others, known) if others else Intake()
    chosen = tuple(one for one in found.candidates if one.task == slug)
    sources, refusals = _sources(named, slug)
    return Intake((*sources, *chosen), (*refusals, *found.refusals))


def _sources(paths: Iterable[Path], task: str) -> tuple[list[Found], list[Refusal]]:
    """Python files whose task the command line names; several are rounds 0, 1, 2..."""
    found: list[Found] = []
    refusals: list[Refusal] = []
    for path in paths:
        try:
            text = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            refusals.append(Refusal(str(path), str(error), "give a readable file of UTF-8 text"))
        else:
            found.append(Found(task, len(found), text, str(path)))
    return found, refusals


def known_tasks(tasks: list[dict]) -> KnownTasks:
    names = {
        one["name"]: TaskName(one["name"], one["category"], tuple(one["aliases"])) for one in tasks
    }
    aliases = {alias: one["name"] for one in tasks for alias in one["aliases"]}
    return KnownTasks(names, aliases, {one["name"]: one["description"] for one in tasks})


class Bar:
    """How far it is: a bar on a terminal, otherwise a line for each candidate. `verb`: "judged"."""

    def __init__(self, total: int, verb: str = "judged") -> None:
        self._total, self._done, self._verb = total, 0, verb
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TimeElapsedColumn(), console=errors, disable=not errors.is_terminal,
        )  # fmt: skip
        self._row = self._bar.add_task("starting", total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def advance(self, task: str, end: str) -> None:
        """One more is done, and how it ended."""
        self._done += 1
        self._bar.update(self._row, advance=1, description=f"{self._verb} {task}")
        if not errors.is_terminal:
            errors.print(
                f"{self._done}/{self._total} {task}: {end}", highlight=False, soft_wrap=True
            )


def treat(
    candidates: Iterable[Found],
    threads: int,
    treat_one: Callable[[Found], Any],
    arrived: Callable[[Any], str],
    stop: Callable[[], None],
    verb: str = "judged",
) -> None:
    """Treat candidates side by side. `arrived` takes each result as it comes and says how that
    candidate ended; `stop` ends what is under way, after an interruption or an error.
    """
    pool = ThreadPoolExecutor(threads)
    waiting = {pool.submit(treat_one, found): found for found in candidates}
    try:
        with Bar(len(waiting), verb) as bar:
            for done in as_completed(waiting):
                bar.advance(waiting[done].task, arrived(done.result()))
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        stop()
        raise
    finally:
        pool.shutdown()


class GrowingReport:
    """A report that is written while it grows, at most a twentieth of the time: its text holds
    everything, so that writing it after each of many candidates would take longer than judging.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._next = 0.0

    def write(self, report: dict[str, Any]) -> None:
        """Write it if it is time."""
        if time.monotonic() >= self._next:
            self.finish(report)

    def finish(self, report: dict[str, Any]) -> None:
        """Write it now."""
        started = time.monotonic()
        write_report(self._path, report)
        ended = time.monotonic()
        self._next = ended + max(LEAST_PAUSE, 20 * (ended - started))

    def save(self, report: dict[str, Any]) -> None:
        """Write it now, when something else went wrong: another failure must not hide that one."""
        with contextlib.suppress(OSError):
            self.finish(report)


def write_report(path: Path | None, report: dict[str, Any]) -> None:
    """Replace the file at once, so that a reader never sees half of it."""
    if path is None:
        return
    text = json.dumps(report, indent=1, allow_nan=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)
