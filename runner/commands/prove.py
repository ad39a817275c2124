"""`kbx prove`: the suite's own proof."""

import json
import os
import re
import secrets
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmark import suite
from runner.commands.tasks import category_named
from runner.proving import PLAIN, Row, prove_all


@click.command()
@click.option("--category", callback=category_named, help="Only this category, by name or slug.")
@click.option("--task", "names", multiple=True, help="Only this task; may be given several times.")
@click.option("--device", default="cpu", show_default=True, help="cpu or cuda:N.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; one a core, or one on a GPU.")
@click.option(
    "--seed", type=click.IntRange(0), help="Of the inputs; another one each time if not given."
)
@click.option(
    "--samples",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=PLAIN,
    help="Folder of the plain solutions, <Category>/<task>.py; samples/plain if not given.",
)
@click.option("--json", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write JSON.")
def command(
    category: str | None,
    names: tuple[str, ...],
    device: str,
    jobs: int | None,
    seed: int | None,
    samples: Path,
    file: Path | None,
) -> None:
    """Prove each task: reference and plain solution pass, every wrong answer is rejected.

    Exit status 1 when a wrong answer survives or a right one is refused. On cpu the small cases,
    plain solutions by Triton's interpreter; on cuda all cases.
    """
    tasks = _chosen(category, names)
    _check_device(device)
    _check_place(file)
    seed = secrets.randbelow(1 << 31) if seed is None else seed
    jobs = jobs or (1 if device.startswith("cuda") else os.cpu_count() or 1)
    console = Console()
    rows = prove_all(tasks, device, seed, jobs, samples)
    progress = Console(stderr=True)
    shown = track(
        rows, "proving", total=len(tasks), console=progress, disable=not progress.is_terminal
    )
    order = {one.name: place for place, one in enumerate(tasks)}
    found: list[Row] = []
    for row in shown:
        found = sorted([*found, row], key=lambda row: order[row.task])
        if file:  # it grows: an hour's work is not lost with its last minute
            file.write_text(json.dumps(report(found, device, seed), indent=2) + "\n")
    _show(console, found, f"seed {seed}, {device}")
    sys.exit(0 if all(row.proven for row in found) else 1)


def report(rows: list[Row], device: str, seed: int) -> dict[str, object]:
    """What `--json` writes. `accepted` leaves out what the device can't judge: `not_judgeable`."""
    return {
        "tasks": len(rows),
        "accepted": sum(row.accepted is True for row in rows),
        "not_judgeable": sum(row.accepted is None for row in rows),
        "mutants_planted": sum(len(row.planted) for row in rows),
        "mutants_killed": sum(row.killed for row in rows),
        "device": device,
        "seed": seed,
        "suite_digest": suite.suite_digest(),
        "rows": [row.to_json() for row in rows],
    }


def _chosen(category: str | None, names: tuple[str, ...]) -> list[suite.Task]:
    tasks = [task for task in suite.all_tasks() if category in (None, task.category)]
    return [_named(name, tasks) for name in names] or tasks


def _named(name: str, tasks: list[suite.Task]) -> suite.Task:
    try:
        wanted = suite.get(name)
    except suite.UnknownTask as unknown:
        raise click.BadParameter(str(unknown), param_hint="--task") from None
    if wanted not in tasks:
        raise click.BadParameter(
            f"{wanted.name} is in {wanted.category}; leave --category out", param_hint="--task"
        )
    return wanted


def _check_device(device: str) -> None:
    if device == "cpu":
        return
    if not re.fullmatch(r"cuda(:\d+)?", device):
        raise click.BadParameter(f"{device!r} is neither cpu nor cuda:N", param_hint="--device")
    import torch

    if int(device.partition(":")[2] or 0) >= torch.cuda.device_count():
        raise click.BadParameter(
            f"no {device} here: torch sees {torch.cuda.device_count()} CUDA devices; use cpu",
            param_hint="--device",
        )


def _check_place(file: Path | None) -> None:
    """Before hours of work, not after: the report can be written."""
    if file and not file.absolute().parent.is_dir():
        raise click.BadParameter(
            f"no folder {file.absolute().parent}; make it first", param_hint="--json"
        )


def _show(console: Console, rows: list[Row], how: str) -> None:
    table = Table(title=f"{len(rows)} tasks, {how}", title_justify="left")
    table.add_column("task")
    table.add_column("plain solution")
    table.add_column("killed", justify="right")
    table.add_column("survivors", overflow="fold")
    for row in rows:
        table.add_row(row.task, _accepted(row), _killed([row]), ", ".join(row.survivors))
    console.print(table)
    for row in rows:
        for fault in row.faults:
            console.print(f"{row.task}: {fault}", markup=False, soft_wrap=True)
    accepted = sum(row.accepted is True for row in rows)
    judgeable = sum(row.accepted is not None for row in rows)
    console.print(
        f"{len(rows)} tasks; plain solutions accepted: {accepted} of the {judgeable} that can be "
        f"judged here; mutants killed: {_killed(rows)}",
        soft_wrap=True,
    )


def _accepted(row: Row) -> str:
    if row.accepted is None:
        return "not judgeable here"
    return f"accepted on {row.cases} cases" if row.accepted else "REFUSED"


def _killed(rows: list[Row]) -> str:
    return f"{sum(row.killed for row in rows)} / {sum(len(row.planted) for row in rows)}"
