"""`kbx status`: how far a submission is."""

import time
from typing import Any
from uuid import UUID

import click
import httpx

from runner.site_client import answer, is_finished, site_option, summary, talking_to

POLL_SECONDS = 2


@click.command()
@click.argument("uuid", type=UUID)
@site_option()
@click.option("--watch", is_flag=True, help="go on until every candidate is judged")
def command(uuid: UUID, site: str, watch: bool) -> None:
    """Show how far the submission UUID is: jobs by state, runs by verdict."""
    with talking_to(site) as http:
        submission = show(http, uuid, "")
        while watch and not is_finished(submission):
            time.sleep(POLL_SECONDS)
            submission = show(http, uuid, summary(submission))


def show(http: httpx.Client, uuid: UUID, before: str) -> dict[str, Any]:
    """Ask, and print the line when it changed."""
    submission = answer(http.get(f"submissions/{uuid}/"))
    line = summary(submission)
    if line != before:
        click.echo(line)
    return submission
