"""Backs a site up, loses everything, restores it, and prints what was there each time: run by
test_backups with a folder for the backups.
"""

import hashlib
import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import django

django.setup()

from django.apps import apps  # noqa: E402  needs the settings
from django.core.management import CommandError, call_command  # noqa: E402  as above
from django.test import Client  # noqa: E402  as above

from tests.leaderboard import factories as make  # noqa: E402  as above


def fill() -> None:
    gpu = make.gpu()
    tasks = [make.task(slug) for slug in ("relu", "gelu", "silu")]
    for at, slug in enumerate(("alpha", "beta", "gamma")):
        submission = make.submission(make.method(slug), notes=[{"text": "µs and more"}])
        for task in tasks:
            run = make.run(submission, task, gpu, speedup=1.25 + at, environment={"torch": "2.13"})
            make.measurement(run, speedup=1.25 + at)


def facts() -> dict[str, Any]:
    """Rows of each table, and a digest of the whole ranking as the API says it."""
    from leaderboard import kept

    kept.forget()  # as a web process that was started anew
    answer = Client(headers={"host": "localhost"}).get("/api/v1/leaderboard/")
    return {
        "rows": {model._meta.label: model._default_manager.count() for model in apps.get_models()},
        "ranking": hashlib.sha256(answer.content).hexdigest(),
    }


def refusal(*arguments: str) -> str:
    try:
        call_command(*arguments)
    except CommandError as error:
        return str(error)
    return ""


def main(folder: Path) -> None:
    call_command("migrate", verbosity=0)
    fill()
    before = facts()
    paths = []
    for _ in range(3):
        out = StringIO()
        call_command("backup", str(folder), keep=2, stdout=out)
        paths.append(Path(out.getvalue().strip()))
    kept = sorted(path.name for path in folder.iterdir())
    path = paths[-1]
    damaged = folder / f"damaged{path.suffix}"
    damaged.write_bytes(b"not a database" * 100)
    refused = [
        refusal("restore", str(path)),
        refusal("restore", str(folder / f"absent{path.suffix}"), "--replace"),
        refusal("restore", str(damaged), "--replace"),
        refusal("restore", str(Path(__file__)), "--replace"),
    ]
    still = facts()
    call_command("flush", interactive=False, verbosity=0)
    lost = facts()
    call_command("restore", str(path), replace=True, stdout=StringIO())
    print(  # noqa: T201  to whoever runs it
        json.dumps(
            {
                "before": before,
                "still": still,
                "lost": lost,
                "after": facts(),
                "kept": kept == sorted(path.name for path in paths[1:]),
                "mode": oct(path.stat().st_mode & 0o777),
                "refused": refused,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
