"""Bring the suite's tasks, and the GPUs the site knows, into the database."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction
from django.utils import timezone

from benchmark import contracts, vocabulary
from benchmark.gpus import GB, KNOWN_GPUS, TERA, KnownGpu
from benchmark.models import Board, Gpu, Task, TaskVersion

if TYPE_CHECKING:
    from benchmark import suite


@dataclass(frozen=True)
class Changes:
    """How many tasks were made, changed and retired."""

    made: int
    changed: int
    retired: int
    drafts: int = 0

    def __str__(self) -> str:
        drafts = f" ({self.drafts} as drafts: publish them in the admin)" if self.drafts else ""
        return f"{self.made} new{drafts}, {self.changed} changed, {self.retired} retired"


class Command(BaseCommand):
    help = (
        "Write the suite's tasks and the known GPUs into the database. Safe to run again. A site "
        "without tasks gets all of them published; later, a new task is a draft until a moderator "
        "publishes it. What a moderator retired stays retired."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--publish", action="store_true", help="Publish new tasks at once.")

    def handle(self, *args: Any, **options: Any) -> None:
        # Imports torch: only this process does, the ones that serve pages never.
        from benchmark import suite

        tasks = suite.all_tasks()
        with transaction.atomic():
            plain = plain_sources(Path(settings.BASE_DIR) / "samples/plain")
            as_drafts = Task.objects.exists() and not options["publish"]
            changes = write_tasks(tasks, plain, as_drafts)
            write_gpus()
            Board.bump()
        self.stdout.write(f"{len(tasks)} tasks: {changes}; {len(KNOWN_GPUS)} GPUs")


def plain_sources(folder: Path) -> dict[str, str]:
    """Our own plain Triton solutions by task: files named like it, in folders by category."""
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}


def write_tasks(tasks: "tuple[suite.Task, ...]", plain: dict[str, str], as_drafts: bool) -> Changes:
    """Make, refresh and retire rows so that they say what the suite says. `as_drafts`: new ones."""
    held = {row.slug: row for row in Task.objects.all()}
    made = changed = 0
    for task in tasks:
        facts = {**contract(task), "plain_source": plain.get(task.name, "")}
        row = held.pop(task.name, None)
        if row is None:
            row = Task.objects.create(slug=task.name, is_draft=as_drafts, **facts)
            made += 1
        elif any(getattr(row, name) != value for name, value in facts.items()):
            Task.objects.filter(pk=row.pk).update(**facts)
            changed += 1
        _keep_version(row, facts)
    back = [task.name for task in tasks]
    # It had left the suite and is there again, unless a moderator took it out.
    Task.objects.filter(slug__in=back, stays_retired=False).update(retired_at=None)
    left = [row.pk for row in held.values() if row.retired_at is None]
    retired = Task.objects.filter(pk__in=left).update(retired_at=timezone.now())
    return Changes(made, changed, retired, made if as_drafts else 0)


def _keep_version(row: Task, facts: dict[str, Any]) -> None:
    """The digest's place in the history; what a known one says besides is brought up to date."""
    kept = {name: facts[name] for name in contracts.FACTS}
    version, is_new = TaskVersion.objects.get_or_create(
        task=row,
        digest=facts["digest"],
        defaults={"reference_source": facts["reference_source"], "contract": kept},
    )
    if not is_new and version.contract != kept:
        version.contract = kept
        version.save(update_fields=["contract"])


def contract(task: "suite.Task") -> dict[str, Any]:
    """What pages show of a task, as plain JSON-able values."""
    return {
        "category": vocabulary.CATEGORY_BY_NAME[task.category].slug,
        "difficulty": task.difficulty,
        "dtypes": list(task.dtypes),
        "signature": task.signature,
        "description": task.description,
        "tolerance": task.tolerance,
        "differences": list(task.differences),
        "delegates": list(task.delegates),
        "aliases": list(task.aliases),
        "cases": [case_facts(case) for case in task.cases],
        "reference_source": task.reference_source,
        "digest": task.digest,
        "interpretable": any(task.judgeable_on("cpu", case) for case in task.small_cases),
    }


def case_facts(case: "suite.Case") -> dict[str, str]:
    return {
        "name": case.name,
        "kind": case.kind,
        "dtype": case.dtype,
        "family": case.family,
        "shape": case.describe(),
    }


def write_gpus() -> None:
    """Make the known GPUs; refresh their facts, and leave alone what admins decide (is_judging)."""
    for gpu in KNOWN_GPUS:
        Gpu.objects.update_or_create(slug=gpu.slug, defaults=gpu_facts(gpu))


def gpu_facts(gpu: KnownGpu) -> dict[str, Any]:
    return {
        "name": gpu.name,
        "vendor": gpu.vendor,
        "architecture": gpu.architecture,
        "memory_bytes": gpu.memory_bytes,
        "peak_bandwidth": gpu.bandwidth * GB if gpu.bandwidth else None,
        "peak_flops": {dtype: peak * TERA for dtype, peak in gpu.peaks.items()},
        "peak_source": gpu.source,
        "can_time": gpu.can_time,
    }
