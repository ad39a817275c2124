"""`kbx status`: how far a submission is."""

import time
from typing import Any
from uuid import UUID

import click
import httpx

from runner.site_client import answer, client, is_finished, summary

POLL_SECONDS = 2


@click.command()
@click.argument("uuid", type=UUID)
@click.option("--site", required=True, metavar="URL", help="http://127.0.0.1:8000")
@click.option("--watch", is_flag=True, help="go on until every candidate is judged")
def command(uuid: UUID, site: str, watch: bool) -> None:
    """Show how far the submission UUID is: jobs by state, runs by verdict."""
    try:
        with client(site) as http:
            submission = show(http, uuid, "")
            while watch and not is_finished(submission):
                time.sleep(POLL_SECONDS)
                submission = show(http, uuid, summary(submission))
    except httpx.HTTPError as error:
        raise click.ClickException(f"{site} can't be reached: {error}") from error


def show(http: httpx.Client, uuid: UUID, before: str) -> dict[str, Any]:
    """Ask, and print the line when it changed."""
    submission = answer(http.get(f"submissions/{uuid}/"))
    line = summary(submission)
    if line != before:
        click.echo(line)
    return submission
