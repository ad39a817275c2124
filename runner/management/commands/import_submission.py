"""Submit files of this machine: what the upload form does, without a browser."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmark import vocabulary
from benchmark.models import Gpu
from runner import submitting
from runner.intake import read_paths


class Command(BaseCommand):
    help = "Submit a .py file, a folder, a JSONL or a zip of candidates. Safe to run again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--method", required=True, help="who or what wrote the kernels")
        parser.add_argument("--kind", default="model", choices=list(vocabulary.METHOD_KINDS))
        parser.add_argument("--label", default="first")
        parser.add_argument(
            "--judge-on",
            action="append",
            metavar="GPU",
            help="slug of a GPU; may be given more than once (default: every judging GPU)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        if not path.exists():
            raise CommandError(f"{path}: no such file or folder")
        intake = read_paths([path], submitting.known_tasks())
        for refusal in intake.refusals:
            self.stderr.write(f"{refusal.place}: {refusal.reason}; {refusal.remedy}")
        try:
            method = submitting.method_named(options["method"], options["kind"])
            submission = submitting.accept(
                method, options["label"], intake, gpus=boards(options["judge_on"])
            )
        except submitting.SubmissionRefused as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{submission.uuid} {len(intake.candidates)} candidates")


def boards(slugs: list[str] | None) -> list[Gpu] | None:
    """The GPUs of these slugs, None for the site's choice; `CommandError` for an unknown one."""
    if slugs is None:
        return None
    found = Gpu.objects.in_bulk(slugs, field_name="slug")
    for slug in slugs:
        if slug not in found:
            known = ", ".join(Gpu.objects.values_list("slug", flat=True))
            raise CommandError(f"no GPU is called {slug!r}; known are {known}")
    return list(found.values())
