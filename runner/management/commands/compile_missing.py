"""Ask for the static builds of what is on the site already."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from runner import building


class Command(BaseCommand):
    help = (
        "Compile every candidate without static builds for every architecture; needs a "
        "`kbx worker --builds` somewhere."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--again", action="store_true", help="also those with builds: after a new Triton"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{building.request_all(again=options['again'])} sources asked for")
