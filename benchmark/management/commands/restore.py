"""Make the database what a backup is."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark import backups


class Command(BaseCommand):
    help = (
        "Make the database what a backup is. Stop the site first, and start it after: web "
        "processes keep pages. A backup of an older release needs `migrate` next."
    )
    requires_system_checks: list[str] = []  # of an empty database, some would fail

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--replace", action="store_true", help="Lose what is in the database.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            backups.restore(options["file"], options["replace"])
        except backups.BackupFailed as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"restored {options['file'].name}")
