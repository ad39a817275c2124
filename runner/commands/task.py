"""`kbx task NAME`: the contract of one task."""

import json

import click
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table

from benchmark import suite


@click.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Write JSON.")
def command(name: str, as_json: bool) -> None:
    """Show a contract: signature, meaning, cases, tolerance, differences from the published."""
    try:
        task = suite.get(name)
    except suite.UnknownTask as unknown:
        raise click.BadParameter(str(unknown), param_hint="NAME") from None
    if as_json:
        click.echo(json.dumps(contract(task), indent=2))
    else:
        _show(task)


def contract(task: suite.Task) -> dict[str, object]:
    """Everything a kernel's author must know, JSON-able."""
    return {
        "name": task.name,
        "aliases": list(task.aliases),
        "category": task.category,
        "difficulty": task.difficulty,
        "signature": task.signature,
        "description": task.description,
        "dtypes": list(task.dtypes),
        "tolerance": task.tolerance,
        "delegates": list(task.delegates),
        "differences": list(task.differences),
        "draws": task.draws,
        "reference": task.reference_source,
        "digest": task.digest,
        "cases": [_case(task, case) for case in task.cases],
    }


def _case(task: suite.Task, case: suite.Case) -> dict[str, object]:
    return {
        "name": case.name,
        "kind": case.kind,
        "dtype": case.dtype,
        "sizes": dict(case.sizes),
        "family": case.family,
        "layout": case.layout,
        "options": dict(case.options),
        "in_place": task.may_mutate(case),
        "flops": task.flops(case),
        "bytes": task.bytes(case),
    }


def _show(task: suite.Task) -> None:
    console = Console()
    console.print(f"[bold]{task.name}[/bold]  {task.category}, difficulty {task.difficulty} of 5")
    console.print(task.signature, markup=False)
    console.print(f"\n{task.description}\n", markup=False)
    console.print(Syntax(task.reference_source.rstrip(), "python", background_color="default"))
    console.print(f"\nTolerance: {task.tolerance}", markup=False)
    for delegated in task.delegates:
        console.print(f"A library may do: {delegated}", markup=False)
    for difference in task.differences:
        console.print(f"Differs from the published contract: {difference}", markup=False)
    console.print(_cases(task))
    console.print(f"digest {task.digest}", markup=False)


def _cases(task: suite.Task) -> Table:
    table = Table(title="cases", title_justify="left")
    for heading in ("case", "inputs", "MB moved", "GFLOP"):
        table.add_column(heading, justify="right" if heading[0] in "MG" else "left")
    for case in task.cases:
        moved, work = task.bytes(case) / 1e6, task.flops(case) / 1e9
        table.add_row(case.name, case.describe(), f"{moved:,.3g}", f"{work:,.3g}")
    return table
