"""`kbx tasks`: the tasks of the suite."""

import json

import click
from rich.console import Console
from rich.table import Table

from benchmark import suite, vocabulary


def category_named(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> str | None:
    """The published name for a category's name or slug; unknown ones end with status 2."""
    if value is None:
        return None
    for category in vocabulary.CATEGORIES:
        if value.lower() in (category.slug, category.name.lower()):
            return category.name
    known = ", ".join(category.name for category in vocabulary.CATEGORIES)
    raise click.BadParameter(f"no category is named {value!r}; there are {known}")


@click.command()
@click.option("--category", callback=category_named, help="Only this category, by name or slug.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
@click.option("--digests", is_flag=True, help="Write what benchmark/suite/digests.json holds.")
def command(category: str | None, as_json: bool, digests: bool) -> None:
    """List the tasks: name, category, difficulty, dtypes, digest."""
    chosen = [task for task in suite.all_tasks() if category in (None, task.category)]
    if digests:
        click.echo(json.dumps({task.name: task.digest for task in chosen}, indent=0))
    elif as_json:
        click.echo(json.dumps([_row(task) for task in chosen], indent=2))
    else:
        Console().print(_table(chosen))


def _row(task: suite.Task) -> dict[str, object]:
    return {
        "name": task.name,
        "category": task.category,
        "difficulty": task.difficulty,
        "dtypes": list(task.dtypes),
        "cases": len(task.cases),
        "digest": task.digest,
    }


def _table(tasks: list[suite.Task]) -> Table:
    table = Table(title=f"{len(tasks)} tasks", title_justify="left")
    for heading in ("task", "category", "difficulty", "dtypes", "digest"):
        table.add_column(heading)
    for task in tasks:
        dtypes = ", ".join(task.dtypes)
        table.add_row(task.name, task.category, str(task.difficulty), dtypes, task.digest[:12])
    return table
