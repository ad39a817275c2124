"""Make the derived tables say what the runs say; or only ask whether they do."""

from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmark import aggregates
from benchmark.aggregates import Drift
from benchmark.models import Method


class Command(BaseCommand):
    help = (
        "Compare the tables that pages read with the runs, method by method, and mend what has "
        "drifted. Safe to run again, and while results land."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="change nothing; exit status 1 when something has drifted",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        total, count = Drift(), Method.objects.count()
        found = compared() if options["check"] else aggregates.rebuild()
        for at, (method, drift) in enumerate(found, start=1):
            total += drift
            if drift or options["verbosity"] > 1:
                self.stdout.write(f"{at}/{count} {method.slug}: {drift}")
            elif self.stderr.isatty():
                self.stderr.write(f"\r{at}/{count} methods", ending="")
        if self.stderr.isatty():
            self.stderr.write("")
        if options["check"] and total:
            raise CommandError(f"drifted: {total}; mend with manage.py rebuild_aggregates")
        self.stdout.write(f"{count} methods: {total}{', mended' if total else ''}")


def compared() -> Iterator[tuple[Method, Drift]]:
    for method in Method.objects.order_by("id").iterator():
        yield method, aggregates.compare(method)
