"""Load results that our judge measured elsewhere, without the sources."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from runner import recorded
from runner.recorded import Loaded, NotARecording


class Command(BaseCommand):
    help = (
        "Load recorded results: a file made by benchmarks/pack_recorded.py, or a folder of them. "
        "Safe to run again; a newer recording replaces the older one of the same name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        if not path.exists():
            raise CommandError(f"{path}: no such file or folder")
        for file in recorded.recordings(path):
            try:
                loaded = recorded.load(recorded.read(file))
            except (NotARecording, recorded.submitting.SubmissionRefused) as error:
                raise CommandError(str(error)) from error
            self.stdout.write(line(file, loaded))


def line(file: Path, loaded: Loaded) -> str:
    name = f"{file.name}: {loaded.submission.method.name}"
    if not loaded.is_new:
        return f"{name}, loaded before"
    words = [f"{loaded.runs} recorded runs"]
    if loaded.stale:
        words.append(f"{loaded.stale} of an earlier version of their task")
    if loaded.unknown:
        words.append(f"left out, no such task here: {', '.join(loaded.unknown)}")
    return f"{name}, {'; '.join(words)}"
