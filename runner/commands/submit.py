"""`kbx submit`: send a method's predictions to a site."""

import sys
from pathlib import Path
from typing import Any

import click

from benchmark import vocabulary
from runner.commands import planned
from runner.intake import limits
from runner.site_client import answer, packed, site_option, summary, talking_to


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--method", required=True, help="who or what wrote the kernels")
@click.option("--kind", type=click.Choice(list(vocabulary.METHOD_KINDS)), default="model")
@click.option("--label", default="first", show_default=True, help="names this set of candidates")
@click.option(
    "--visibility",
    type=click.Choice(list(vocabulary.VISIBILITIES)),
    default=vocabulary.PUBLIC,
    show_default=True,
    help="who sees the results; can be changed later",
)
@click.option(
    "--sources",
    "source_visibility",
    type=click.Choice(list(vocabulary.SOURCE_VISIBILITIES)),
    default=vocabulary.SHOWN,
    show_default=True,
    help="whether those who see the results may read the sources",
)
@click.option(
    "--round",
    "round_",
    type=click.IntRange(0, limits.MAX_ROUND),
    help="of everything in it that doesn't say its own round",
)
@click.option("--claimed-on", metavar="GPU", help="where another harness's results were found")
@click.option("--dry-run", is_flag=True, help="show what would happen, and submit nothing")
@click.option("--yes", is_flag=True, help="don't ask")
@site_option()
def command(
    path: Path, site: str, dry_run: bool, yes: bool, claimed_on: str | None, **fields: Any
) -> None:
    """Send PATH (.py, .jsonl, .zip, metrics.json or a folder) to a site.

    The site says first what it found and what would be judged on which GPUs; on a terminal you are
    asked then. KBX_TOKEN holds your key, if any.
    """
    name, data = packed(path)
    sent = {key.rstrip("_"): value for key, value in fields.items() if value is not None}
    with talking_to(site) as http:
        draft = answer(http.post("drafts/", data=sent, files={"file": (name, data)}))
        for line in planned.lines(draft, claimed_on):
            click.echo(line, err=True)
        if dry_run:
            click.echo(f"nothing was submitted; it waits for a day at {site}{draft['url']}")
            return
        _stop_at(draft, claimed_on)
        if not yes and sys.stdin.isatty():
            click.confirm("submit it?", abort=True)
        confirmation = {"claimed_on": claimed_on} if claimed_on else {}
        done = answer(http.post(f"drafts/{draft['uuid']}/confirm/", data=confirmation))
    click.echo(f"{done['uuid']}: {done['candidates']} candidates, {summary(done)}")
    click.echo(f"{site}{done['url']}")


def _stop_at(draft: dict[str, Any], claimed_on: str | None) -> None:
    """What can't be confirmed ends here, with the site's words."""
    problem = draft["problem"]
    if problem:
        raise click.ClickException(f"{problem['reason']}: {problem['remedy']}")
    if draft["needs_claimed_on"] and not claimed_on:
        raise click.UsageError("claimed results need a GPU: add --claimed-on GPU")
