"""Submit files of this machine: what the upload form does, without a browser."""

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from benchmark import vocabulary
from benchmark.models import Gpu, Method
from runner import drafting, submitting
from runner.commands import planned
from runner.intake import Intake, limits, read_paths


class Command(BaseCommand):
    help = (
        "Submit a .py file, a folder, a JSONL, a zip of candidates or a metrics.json. Safe to run "
        "again."
    )

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

        parser.add_argument(
            "--visibility", default=vocabulary.PUBLIC, choices=list(vocabulary.VISIBILITIES)
        )
        parser.add_argument(
            "--sources", default=vocabulary.SHOWN, choices=list(vocabulary.SOURCE_VISIBILITIES)
        )
        parser.add_argument(
            "--round", type=int, help="of everything in it that doesn't say its own round"
        )
        parser.add_argument(
            "--claimed-on", metavar="GPU", help="where another harness's results were found"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="show what would happen, and write nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["path"]
        if not path.exists():
            raise CommandError(f"{path}: no such file or folder")
        number = options["round"]
        if number is not None and not 0 <= number <= limits.MAX_ROUND:
            raise CommandError(f"--round is from 0 to {limits.MAX_ROUND}")
        known = submitting.known_tasks()
        intake = without_folder(read_paths([path], known, number), path.parent)
        try:
            self._submit(intake, options)
        except submitting.SubmissionRefused as error:
            raise CommandError(str(error)) from error

    def _submit(self, intake: Intake, options: dict[str, Any]) -> None:
        method = submitting.method_named(options["method"], options["kind"])
        label, gpus = submitting.clean_label(options["label"]), boards(options["judge_on"])
        self._show(intake, method, label, gpus, options)
        if options["dry_run"]:
            self.stdout.write("nothing was submitted")
            return
        claimed_on = boards([options["claimed_on"]]) if options["claimed_on"] else None
        submission = submitting.accept(
            method,
            label,
            intake,
            visibility=options["visibility"],
            source_visibility=options["sources"],
            gpus=gpus,
            claimed_on=claimed_on[0] if claimed_on else None,
        )
        self.stdout.write(f"{submission.uuid} {len(intake.candidates)} candidates")

    def _show(
        self,
        intake: Intake,
        method: Method,
        label: str,
        gpus: list[Gpu] | None,
        options: dict[str, Any],
    ) -> None:
        outlook = drafting.forecast(intake, method, label, None, gpus)
        for line in planned.lines(outlook.to_json(), options["claimed_on"]):
            self.stderr.write(line)


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
        claims=tuple(
            replace(claim, place=claim.place.removeprefix(prefix)) for claim in intake.claims
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
