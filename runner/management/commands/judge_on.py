"""Choose the GPUs that new candidates are sent to."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from benchmark.models import Board, Gpu
from runner import dispatch


class Command(BaseCommand):
    help = "Send new candidates to these GPUs and to no others; a GPU that is not known is made."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--missing",
            action="store_true",
            help="also send what they have not judged yet: older, lost or stale candidates",
        )
        parser.add_argument(
            "gpus", nargs="+", metavar="GPU", help="slugs, as kbx worker --list has"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slugs: list[str] = options["gpus"]
        with transaction.atomic():
            for slug in slugs:
                Gpu.objects.get_or_create(slug=slug, defaults={"name": slug.upper()})
            Gpu.objects.update(is_judging=False)
            Gpu.objects.filter(slug__in=slugs).update(is_judging=True)
            Board.bump()
        if options["missing"]:
            asked = sum(map(dispatch.enqueue_missing, Gpu.objects.judging()))
            self.stdout.write(f"{asked} earlier candidates sent")
        self.stdout.write(f"judging on {', '.join(slugs)}")
