"""Submit files of this machine: what the upload form does, without a browser."""

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmark import vocabulary
from benchmark.models import Gpu
from runner import submitting
from runner.intake import Intake, read_paths


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
        intake = without_folder(read_paths([path], submitting.known_tasks()), path.parent)
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


def without_folder(intake: Intake, folder: Path) -> Intake:
    """The same, placed from the upload's own name on: pages show places, and where a folder lies on
    this host is nobody's business.
    """
    prefix = f"{folder}/"
    return replace(
        intake,
        candidates=tuple(
            replace(found, place=found.place.removeprefix(prefix)) for found in intake.candidates
        ),
        refusals=tuple(
            replace(refusal, place=refusal.place.removeprefix(prefix))
            for refusal in intake.refusals
        ),
    )


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
