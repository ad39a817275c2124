"""`kbx prompts`: what to ask a model for."""

from pathlib import Path

import click

from benchmark import suite
from benchmark.suite.prompts import jsonl


@click.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.option("--task", help="Only this task.")
def command(out: Path | None, task: str | None) -> None:
    """Write a generation prompt for each task, a JSON object a line.

    `prompt` is the whole text; `instruction`, `input` and `output` are the fields of TritonBench's
    files. Send answers back as lines with `instruction` (or `task`) and `predict`.
    """
    try:
        tasks = (suite.get(task),) if task else suite.all_tasks()
    except suite.UnknownTask as unknown:
        raise click.BadParameter(str(unknown), param_hint="--task") from None
    if out is None:
        click.echo(jsonl(tasks), nl=False)
        return
    try:
        with out.open("w", encoding="utf-8") as file:
            file.write(jsonl(tasks))
    except OSError as error:
        raise click.BadParameter(
            f"can't write {out}: {error.strerror}; name a file in a folder that exists",
            param_hint="--out",
        ) from None
