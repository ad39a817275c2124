"""Results as files, and how to cite them. The URL is the state: the filters of the pages."""

import base64
from dataclasses import dataclass
from typing import Any

from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.urls import reverse
from django.views.decorators.http import require_safe

from benchmark import vocabulary
from benchmark.models import Board
from benchmark.throttles import ExportThrottle
from benchmark.web import page
from leaderboard import kept
from leaderboard.conditional import conditional
from leaderboard.exports import citation, files
from leaderboard.exports.citation import Cited
from leaderboard.exports.datasets import DATASETS, VERSION, Dataset
from leaderboard.exports.files import Made
from leaderboard.exports.selection import ALL, Selection, read_selection
from leaderboard.exports.writers import FORMATS, TYPES
from leaderboard.filters import unknown


@dataclass(frozen=True, slots=True)
class Offer:
    """A file that can be had; `made` is None until somebody asked for it."""

    format: str
    url: str
    made: Made | None


@require_safe
@conditional
def data(request: HttpRequest) -> HttpResponse:
    """What there is, each with rows and SHA-256; a small site makes its files for this page."""
    seen, gpus = Board.seen(), kept.gpus(Board.current())
    selection = read_selection(request.GET, gpus, seen)
    asked = request.GET
    context: dict[str, Any] = {
        "nav": "data",
        "site": request.build_absolute_uri("/"),
        "version": VERSION,
        "offers": offers(selection) if gpus else [],
        "query": selection.query,
        "asked": {name: asked.get(name, "") for name in ("gpu", "category", "dtype", "lane")}
        | {"difficulty": asked.get("difficulty", ""), "round": asked.get("round", "")},
        "gpus": gpus,
        "categories": vocabulary.CATEGORIES,
        "dtypes": vocabulary.DTYPES,
        "difficulties": [str(number) for number in vocabulary.DIFFICULTIES],
        "rounds": [ALL, *map(str, range(6))],
        "lanes": vocabulary.ORIGINS,
        "cited": cited(request, seen),
        "bibtex": citation.bibtex(cited(request, seen)),
    }
    return page(request, "leaderboard/data.html", context)


@require_safe
@conditional  # type: ignore[arg-type]  # a file is streamed, and nothing of it is kept
def download(request: HttpRequest, name: str, format: str) -> HttpResponseBase:
    """A table as a file. Its SHA-256 and row count are in the headers as well."""
    found = _asked(request, name, format)
    if isinstance(found, HttpResponse):
        return found
    file_name = f"kernelbench-x-{name}-v{VERSION}-g{Board.current()}.{format}"
    response = FileResponse(
        found.path.open("rb"), as_attachment=True, filename=file_name, content_type=TYPES[format]
    )
    digest = base64.b64encode(bytes.fromhex(found.sha256)).decode()
    response["Repr-Digest"] = f"sha-256=:{digest}:"  # RFC 9530
    response["X-Row-Count"] = str(found.rows)
    return response


@require_safe
@conditional
def checksum(request: HttpRequest, name: str, format: str) -> HttpResponse:
    """As `sha256sum --check` reads it."""
    found = _asked(request, name, format)
    if isinstance(found, HttpResponse):
        return found
    file_name = f"kernelbench-x-{name}-v{VERSION}-g{Board.current()}.{format}"
    return _text(f"{found.sha256}  {file_name}\n", "text/plain; charset=utf-8")


@require_safe
@conditional
def cite(request: HttpRequest, format: str) -> HttpResponse:
    text = citation.FORMATS[format](cited(request, Board.seen()))
    response = _text(text, citation.TYPES[format])
    response["Content-Disposition"] = f'inline; filename="kernelbench-x.{format}"'
    return response


def offers(selection: Selection) -> list[tuple[Dataset, list[Offer]]]:
    """Each table in each format, made where that takes no time worth speaking of."""
    get = files.make if selection.stamp and files.is_small() else files.made
    return [
        (
            dataset,
            [
                Offer(format, address(dataset, format, selection), get(dataset, format, selection))
                for format in FORMATS
            ],
        )
        for dataset in DATASETS.values()
    ]


def address(dataset: Dataset, format: str, selection: Selection) -> str:
    path = reverse("leaderboard:data-file", args=[dataset.name, format])
    return f"{path}?{selection.query}" if selection.query else path


def cited(request: HttpRequest, seen: Board) -> Cited:
    url = request.build_absolute_uri(reverse("leaderboard:data"))
    return Cited(seen.generation, seen.changed_at, url)


def _asked(request: HttpRequest, name: str, format: str) -> Made | HttpResponse:
    """The file; or what to answer instead, where too many were asked to be made."""
    if name not in DATASETS:
        raise unknown("table", name, DATASETS)
    seen = Board.seen()
    selection = read_selection(request.GET, kept.gpus(seen.generation), seen)
    if not selection.choices:
        raise Http404("There is nothing to give out yet: no GPU has judged anything.")
    found = files.made(DATASETS[name], format, selection)
    if found is not None:
        return found
    throttle = ExportThrottle()
    if not throttle.allow_request(request, None):  # type: ignore[arg-type]  # no view is looked at
        wait = int(throttle.wait() or 0) + 1
        response = _text(
            f"Too many different files were asked for from this address. Try again in {wait} s, or "
            "take one of all GPUs and filter it yourself.\n",
            "text/plain; charset=utf-8",
        )
        response.status_code, response["Retry-After"] = 429, str(wait)
        return response
    return files.make(DATASETS[name], format, selection)


def _text(text: str, content_type: str) -> HttpResponse:
    response = HttpResponse(text, content_type=content_type)
    response["X-Content-Type-Options"] = "nosniff"
    return response
