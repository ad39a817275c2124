"""Bring a publication's figures to the site, as the published lane."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from benchmark.models import Board
from leaderboard.findings import published
from leaderboard.models import Publication


class Command(BaseCommand):
    help = (
        "Import a publication's tables from JSON (leaderboard/data/README.md says how it looks). "
        "Shown at /findings/published/, never ranked. Importing a slug again replaces it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        try:
            found = published.read(path)
            document = published.load(path.read_bytes())
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        except published.Malformed as error:
            raise CommandError(f"{path}: {error}") from error
        with transaction.atomic():
            Publication.objects.update_or_create(slug=found.slug, defaults={"document": document})
            Board.bump()
        self.stdout.write(
            f"{found.slug}: {len(found.tables)} tables, {len(found.counts)} categories of "
            f"{len(found.methods)} methods, at /findings/published/"
        )
