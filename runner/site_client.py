"""Talks to a site's API over HTTP, for `kbx submit`, `kbx status` and `kbx login`. No Django."""

import io
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click
import httpx

from runner import site_keys

F = TypeVar("F", bound=Callable[..., Any])
TIMEOUT_SECONDS = 60
TAKEN = {".py", ".jsonl", ".ndjson", ".json", ".zip"}
FINISHED = ("done", "declined", "lost", "cancelled")
# What to do about an answer, where the site itself (or what stands before it) doesn't say.
REMEDIES = {
    401: "make an API key at /me/ of the site and keep it with: kbx login --site URL",
    403: "the API key may not do this: make one that may at /me/ of the site",
    404: "check --site (its address, without a path) and the uuid",
    413: "the upload is too large for this site: send it in parts",
    429: "wait as long as it says, or send everything in one file",
}
SITE_FAILED = "the site failed, nothing is wrong with what you sent: try again later"


def site_option() -> Callable[[F], F]:
    """`--site URL` of the commands that talk to a site."""
    return click.option(
        "--site", required=True, metavar="URL", callback=_read_site, help="http://127.0.0.1:8000"
    )


def _read_site(context: click.Context, option: click.Parameter, value: str) -> str:
    try:
        url = httpx.URL(value.strip().rstrip("/"))
    except httpx.InvalidURL as error:
        raise click.BadParameter(f"{value!r}: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise click.BadParameter(f"{value!r} is no address: it starts with http:// or https://")
    return str(url).rstrip("/")


@contextmanager
def talking_to(site: str) -> Iterator[httpx.Client]:
    """A client of the site's API; what goes wrong on the way is a `ClickException` in words."""
    with talking(site, client(site)) as http:
        yield http


@contextmanager
def talking(site: str, http: httpx.Client) -> Iterator[httpx.Client]:
    """The same, with another client."""
    try:
        with http:
            yield http
    except httpx.TimeoutException as error:
        raise click.ClickException(f"{site} did not answer within {TIMEOUT_SECONDS} s") from error
    except httpx.HTTPError as error:
        raise click.ClickException(f"{site} can't be reached: {error}") from error


def client(site: str) -> httpx.Client:
    """A client of the site's API, with KBX_TOKEN or else the key that `kbx login` kept, if any."""
    return client_with(site, os.environ.get("KBX_TOKEN") or site_keys.kept(site))


def client_with(site: str, key: str | None) -> httpx.Client:
    """A client of the API with this key. Redirects aren't followed: no other site gets it."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    # A connection a request: between two polls the site closes an idle one, perhaps just as the
    # next request goes out. Connecting is tried again, since sites restart.
    transport = httpx.HTTPTransport(retries=2, limits=httpx.Limits(max_keepalive_connections=0))
    return httpx.Client(
        transport=transport, base_url=f"{site}/api/v1/", headers=headers, timeout=TIMEOUT_SECONDS
    )


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
        body = None
    if response.is_success and isinstance(body, dict):
        return body
    said = f"{response.url} answered {response.status_code} {response.reason_phrase}"
    raise click.ClickException(": ".join(filter(None, (said, _words(body), _remedy(response)))))


def _words(body: Any) -> str:
    """What the API says, or nothing where something else answered."""
    if not isinstance(body, dict):
        return ""
    if "reason" in body:
        return f"{_text(body['reason'])}: {_text(body.get('remedy', ''))}"
    if set(body) == {"detail"}:
        return _text(body["detail"]).rstrip(".")
    return "; ".join(f"{name}: {_text(value)}" for name, value in body.items())


def _remedy(response: httpx.Response) -> str:
    if response.has_redirect_location:
        there = response.url.join(response.headers["location"])
        return f"the site is elsewhere: --site {there.scheme}://{there.netloc.decode()}"
    if response.is_server_error:
        return SITE_FAILED
    if response.is_success:
        return "this is no KernelBench-X site: check --site"
    return REMEDIES.get(response.status_code, "")


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
