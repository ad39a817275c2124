"""Talks to a site's API over HTTP, for `kbx submit` and `kbx status`. No Django."""

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx

TIMEOUT_SECONDS = 60
TAKEN = {".py", ".jsonl", ".ndjson", ".zip"}
FINISHED = ("done", "declined", "lost", "cancelled")


def client(site: str) -> httpx.Client:
    """A client of the site's API; KBX_TOKEN is sent where it is set."""
    token = os.environ.get("KBX_TOKEN")
    headers = {"Authorization": f"Token {token}"} if token else {}
    base = f"{site.rstrip('/')}/api/v1/"
    return httpx.Client(base_url=base, headers=headers, timeout=TIMEOUT_SECONDS)


def packed(path: Path) -> tuple[str, bytes]:
    """Name and bytes to upload: a file as it is, a folder as a zip of what the site takes."""
    if path.is_file():
        return path.name, path.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in _wanted(path):
            archive.write(file, file.relative_to(path))
    return f"{path.resolve().name}.zip", buffer.getvalue()


def _wanted(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and file.suffix in TAKEN - {".zip"}:
            yield file


def answer(response: httpx.Response) -> dict[str, Any]:
    """The JSON of a good answer; a `ClickException` with the site's own words otherwise."""
    try:
        body = response.json()
    except ValueError:
        body = {"detail": response.text[:300]}
    if response.is_success and isinstance(body, dict):
        return body
    raise click.ClickException(f"{response.url} answered {response.status_code}: {_words(body)}")


def _words(body: Any) -> str:
    if isinstance(body, dict) and "reason" in body:
        return f"{_text(body['reason'])}: {_text(body.get('remedy', ''))}"
    if isinstance(body, dict):
        return "; ".join(f"{name}: {_text(value)}" for name, value in body.items())
    return str(body)


def _text(value: Any) -> str:
    return " ".join(str(item) for item in value) if isinstance(value, list) else str(value)


def is_finished(submission: dict[str, Any]) -> bool:
    jobs = submission["jobs"]
    return sum(jobs.values()) == sum(jobs.get(state, 0) for state in FINISHED)


def summary(submission: dict[str, Any]) -> str:
    """One line: `12/48 judged (9 passed, 3 wrong-values), 1 running, 35 queued`."""
    jobs = submission["jobs"]
    verdicts = ", ".join(f"{n} {word}" for word, n in sorted(submission["verdicts"].items()))
    line = f"{jobs['done']}/{sum(jobs.values())} judged" + (f" ({verdicts})" if verdicts else "")
    rest = [f"{n} {state}" for state, n in jobs.items() if n and state != "done"]
    return ", ".join([line, *rest])
