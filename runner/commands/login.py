"""`kbx login`: keep an API key of a site, for `kbx submit` and `kbx status`."""

import sys

import click

from runner import site_keys
from runner.site_client import answer, client_with, site_option, talking


@click.command()
@site_option()
@click.option("--stdin", is_flag=True, help="read the key from standard input, for scripts")
@click.option("--forget", is_flag=True, help="remove the key that is kept for the site")
def command(site: str, stdin: bool, forget: bool) -> None:
    """Ask for an API key of the site, try it, and keep it in a file that only you can read.

    Keys are made on the site's page /me/. KBX_TOKEN, where it is set, goes before a kept key.
    """
    if forget:
        _forget(site)
        return
    if site_keys.is_in_the_clear(site):
        click.echo(f"{site} is not encrypted: who listens on the way can read the key", err=True)
    if stdin:
        key = sys.stdin.readline().strip()
    else:
        click.echo(f"Make a key at {site}/me/#keys")
        key = str(click.prompt("API key", hide_input=True)).strip()
    if not key or not key.isprintable() or not key.isascii():
        raise click.ClickException(f"that is no API key: copy it from {site}/me/")
    with talking(site, client_with(site, key)) as http:
        me = answer(http.get("me/"))
    path = site_keys.keep(site, key)
    ends = (me.get("key") or {}).get("expires_at", "")[:10]
    click.echo(f"signed in as {me['username']}" + (f" until {ends}" if ends else ""))
    click.echo(f"kept in {path}")
    for row in me["quota"]:
        click.echo(f"{row['name']}: {row['left']} of {row['per_day']} judgements left today")


def _forget(site: str) -> None:
    if not site_keys.forget(site):
        raise click.ClickException(f"no key of {site} is kept here")
    click.echo(f"forgotten; revoke the key at {site}/me/ if nobody else uses it")
