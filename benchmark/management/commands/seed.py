"""Fill a database with synthetic results, to try the site at size."""

import time
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmark import seeding
from benchmark.models import Task


def count(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) <= 1000:
        raise ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


class Command(BaseCommand):
    help = (
        "Write made-up results of synthetic methods on synthetic GPUs. Refuses a database with "
        "real submissions; with --force they stand beside them, on GPUs of their own."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        default = seeding.Size()
        parser.add_argument("--methods", type=count, default=default.methods, metavar="N")
        parser.add_argument("--gpus", type=count, default=default.gpus, metavar="N")
        parser.add_argument("--rounds", type=count, default=default.rounds, metavar="N")
        parser.add_argument(
            "--cases", type=count, metavar="N", help="of each task, the last ones; default: all"
        )
        parser.add_argument(
            "--force", action="store_true", help="even beside real submissions; see --remove"
        )
        parser.add_argument("--remove", action="store_true", help="take it all out again")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["remove"]:
            removed = [self.tell(f"removed {name}") for name in seeding.remove()]
            self.stdout.write(f"{len(removed)} synthetic methods removed")
            return
        names = ("methods", "gpus", "rounds", "cases")
        self.seed(seeding.Size(**{name: options[name] for name in names}), options["force"])

    def seed(self, size: seeding.Size, force: bool) -> None:
        tasks = Task.objects.current().count()
        refuse_unfit(tasks, force)
        self.tell(f"{size.runs(tasks):,} runs to write")
        start, runs, measurements = time.monotonic(), 0, 0
        for at, part in enumerate(seeding.seed(size), start=1):
            runs, measurements = runs + part.runs, measurements + part.measurements
            seconds = time.monotonic() - start
            self.tell(
                f"{at}/{size.methods} {part.method}: {runs:,} runs, "
                f"{measurements:,} measurements, {seconds:.0f} s"
            )
        self.stdout.write(f"seeded {runs:,} runs with {measurements:,} measurements, all made up")

    def tell(self, line: str) -> str:
        self.stdout.write(line)
        self.stdout.flush()
        return line


def refuse_unfit(tasks: int, force: bool) -> None:
    """`CommandError` where there are no tasks, real submissions, or synthetic ones already."""
    if not tasks:
        raise CommandError("there are no tasks: run manage.py sync_tasks first")
    if seeding.synthetic_methods():
        raise CommandError("the database is seeded already: run manage.py seed --remove first")
    real = seeding.real_submissions()
    if real and not force:
        raise CommandError(
            f"the database holds {real} real submissions: use another one (DATABASE_URL), or "
            "--force to put synthetic methods beside them, on synthetic GPUs"
        )
