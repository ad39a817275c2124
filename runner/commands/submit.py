"""`kbx submit`: send a method's predictions to a site."""

from pathlib import Path

import click

from benchmark import vocabulary
from runner.site_client import answer, packed, site_option, summary, talking_to


@click.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--method", required=True, help="who or what wrote the kernels")
@click.option("--kind", type=click.Choice(list(vocabulary.METHOD_KINDS)), default="model")
@click.option("--label", default="first", show_default=True, help="names this set of candidates")
@site_option()
def command(path: Path, method: str, kind: str, label: str, site: str) -> None:
    """Send PATH (.py, .jsonl, .zip or a folder) to a site. KBX_TOKEN holds your token, if any."""
    name, data = packed(path)
    fields = {"method": method, "label": label, "kind": kind}
    with talking_to(site) as http:
        sent = answer(http.post("submissions/", data=fields, files={"file": (name, data)}))
    for refusal in sent["refusals"]:
        click.echo(
            f"{refusal['place']}: {refusal['reason']} {refusal['remedy']}".rstrip(), err=True
        )
    click.echo(f"{sent['uuid']}: {sent['candidates']} candidates, {summary(sent)}")
    click.echo(f"{site}{sent['url']}")
