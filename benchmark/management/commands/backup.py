"""Write the database into a file."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark import backups


class Command(BaseCommand):
    help = "Write a backup of the database into a folder, while the site works; prints its path."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path)
        parser.add_argument("--keep", type=int, default=14, help="Older ones are removed.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["keep"] < 1:
            raise CommandError("--keep must be 1 or more")
        try:
            self.stdout.write(str(backups.write(options["folder"], options["keep"])))
        except backups.BackupFailed as error:
            raise CommandError(str(error)) from error
