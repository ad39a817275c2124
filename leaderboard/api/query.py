"""Reads the query strings that pages have, and names the parameter that can't be used."""

from collections.abc import Iterable, Sequence

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.request import Request

from benchmark import vocabulary
from benchmark.api import Problem, split_hint
from benchmark.models import Board
from leaderboard import kept
from leaderboard.filters import Choice, read_choice, unknown
from leaderboard.rows import GpuRow

NAMES = ("gpu", "category", "dtype", "difficulty", "round", "lane")


def parameter(
    name: str, description: str, enum: Iterable[str] | None = None, many: bool = False
) -> OpenApiParameter:
    words = list(enum) if enum else None
    return OpenApiParameter(name, OpenApiTypes.STR, description=description, enum=words, many=many)


GPU = parameter("gpu", "Slug of a GPU; by default the one that pages show first.")
CHOICE = (
    GPU,
    parameter("category", "Only tasks of this category.", vocabulary.CATEGORY_BY_SLUG),
    parameter("dtype", "Only tasks that take this dtype.", vocabulary.DTYPES),
    parameter("difficulty", "Only tasks of it.", map(str, vocabulary.DIFFICULTIES)),
    parameter("round", "`final`, the last that a method offered for a task, or a number from 0."),
    parameter("lane", "Where results come from; `measured` by default.", vocabulary.ORIGINS),
)
METHODS = parameter("m", "Slug of a method: two, and up to five for fast_p.", many=True)
PAGES = (
    parameter("cursor", "As in `next` and `previous`; none for the first page."),
    OpenApiParameter("limit", OpenApiTypes.INT, description="Rows of a page, at most 200."),
)
GPUS = parameter("gpu", "Slugs of GPUs; all by default.", many=True)


def generation(request: Request) -> int:
    """The board's generation that this answer is about, asked once a request."""
    inner = request._request
    if not hasattr(inner, "generation"):
        inner.generation = Board.current()  # type: ignore[attr-defined]  # as pages keep it
    return int(inner.generation)  # type: ignore[attr-defined]  # as above


def gpus(request: Request) -> tuple[GpuRow, ...]:
    return kept.gpus(generation(request))


def choice(request: Request) -> Choice:
    """The choice of the query string; `Problem` for what isn't known, 404 on an empty site."""
    known = gpus(request)
    found = _named(request, known)
    if found is None:
        raise nothing_yet()
    return found


def gpu_among(request: Request, offered: Sequence[GpuRow]) -> GpuRow | None:
    """The GPU of the query string, else the first that is offered."""
    slug = request.query_params.get("gpu", "")
    if not slug:
        return offered[0] if offered else None
    by_slug = {gpu.slug: gpu for gpu in gpus(request)}
    if slug not in by_slug:
        raise unusable("gpu", unknown("GPU", slug, by_slug))
    return by_slug[slug]


def gpus_asked(request: Request) -> tuple[GpuRow, ...]:
    """Those of the query string in the pages' order; all where it names none."""
    known = gpus(request)
    by_slug = {gpu.slug: gpu for gpu in known}
    slugs = [slug for slug in request.query_params.getlist("gpu") if slug]
    for slug in slugs:
        if slug not in by_slug:
            raise unusable("gpu", unknown("GPU", slug, by_slug))
    return tuple(gpu for gpu in known if gpu.slug in slugs) or known


def one_of(request: Request, name: str, known: Iterable[str]) -> str:
    """The parameter's value, or "" where it is not given."""
    value, words = request.query_params.get(name, ""), list(known)
    if value and value not in words:
        raise unusable(name, unknown(name, value, words))
    return value


def nothing_yet() -> Problem:
    return Problem(
        "There is nothing here yet: no GPU has judged anything.",
        "come back once something is judged; /api/v1/queue/ says what waits",
        code="not-found",
        status_code=status.HTTP_404_NOT_FOUND,
    )


def unusable(name: str, missing: Http404) -> Problem:
    """A 404 as on the pages, with the parameter's name."""
    return Problem(
        *split_hint(str(missing)),
        field=name,
        code="not-found",
        status_code=status.HTTP_404_NOT_FOUND,
    )


def _named(request: Request, known: tuple[GpuRow, ...]) -> Choice | None:
    asked = request.query_params.dict()
    try:
        return read_choice(asked, known)
    except Http404:
        for name in NAMES:
            try:
                read_choice({name: asked.get(name, "")}, known)
            except Http404 as missing:
                raise unusable(name, missing) from missing
        raise
