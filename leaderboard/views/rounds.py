"""What refinement did: an index of iterating methods, and a page of each."""

from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from benchmark.web import page, viewer
from leaderboard import kept
from leaderboard.charts import rounds as charts
from leaderboard.charts.base import Figure, Table, csv_text
from leaderboard.conditional import conditional, generation
from leaderboard.filters import unknown
from leaderboard.refinement import FATES
from leaderboard.rows import GpuRow
from leaderboard.selectors import methods, rounds
from leaderboard.selectors.methods import Card
from leaderboard.selectors.rounds import Refined
from leaderboard.views.moved import follows_merges

FIGURES: dict[str, Callable[[Refined], Figure]] = {
    "correct": charts.correct_figure,
    "speed": charts.speed_figure,
}
TABLES: dict[str, Callable[[Refined], Table]] = {
    "rounds": charts.rounds_table,
    "splits": charts.splits_table,
    "tasks": charts.fates_table,
    "transitions": charts.transitions_table,
}
# The order of the lists: what refinement is for, what it costs, and the rest.
LISTED = ("rescued", "new", "lost", "persistent", "failing")


@require_safe
@conditional
def index(request: HttpRequest) -> HttpResponse:
    now = generation(request)
    every = kept.gpus(now)
    gpus = rounds.iterating(every, now)
    gpu = _asked(request, gpus, every)
    context: dict[str, Any] = {"nav": "rounds", "gpu": gpu, "gpu_links": _links(gpus, gpu)}
    if gpu:
        found = rounds.index(now, gpu)
        if request.GET.get("format") == "csv":
            return _csv(charts.index_table(found), "rounds")
        context["index"] = found
    return page(request, "leaderboard/rounds.html", context)


@require_safe
@conditional
@follows_merges
def method(request: HttpRequest, slug: str) -> HttpResponse:
    card, gpus, gpu, found = _refined(request, slug)
    context: dict[str, Any] = {
        "nav": "rounds",
        "card": card,
        "gpu": gpu,
        "gpu_links": _links(gpus, gpu),
        "found": found,
    }
    if found:
        context |= {
            "fates": [(fate, FATES[fate], found.whole.of(fate)) for fate in LISTED],
            "rounds_table": charts.rounds_table(found),
        }
    return page(request, "leaderboard/rounds_method.html", context)


@require_safe
@conditional
@follows_merges
def chart(request: HttpRequest, slug: str, name: str, format: str) -> HttpResponse:
    """A figure as JSON, or a table as CSV, of a method's rounds on the GPU in the URL."""
    known = TABLES if format == "csv" else FIGURES
    if name not in known:
        raise unknown("chart", name, known)
    card, _, _, found = _refined(request, slug)
    if found is None:
        raise Http404(f"{card.method.name} has no second round to draw.")
    if format == "csv":
        return _csv(TABLES[name](found), f"{slug}-{name}")
    return JsonResponse(FIGURES[name](found))


def _refined(
    request: HttpRequest, slug: str
) -> tuple[Card, tuple[GpuRow, ...], GpuRow | None, Refined | None]:
    """The method, the GPUs that know it, the one asked for, and its rounds there."""
    card = _card(request, slug)
    now = generation(request)
    every = kept.gpus(now)
    gpus = rounds.devices(card.method.id, every)
    gpu = _asked(request, gpus, every)
    return card, gpus, gpu, rounds.refined(now, card.method.id, gpu) if gpu else None


def _card(request: HttpRequest, slug: str) -> Card:
    card = methods.card(slug, viewer(request))
    if card is None:
        raise unknown("method", slug, methods.method_slugs())
    return card


def _asked(
    request: HttpRequest, gpus: tuple[GpuRow, ...], every: tuple[GpuRow, ...]
) -> GpuRow | None:
    """The GPU in the URL, by default the first with several rounds; None where there is none."""
    slug = request.GET.get("gpu", "")
    if slug and slug not in {gpu.slug for gpu in every}:
        raise unknown("GPU", slug, [gpu.slug for gpu in every])
    if slug:
        return next(gpu for gpu in every if gpu.slug == slug)
    return gpus[0] if gpus else None


def _links(gpus: tuple[GpuRow, ...], shown: GpuRow | None) -> list[tuple[GpuRow, str, bool]]:
    return [(gpu, f"gpu={gpu.slug}", gpu == shown) for gpu in gpus]


def _csv(table: Table, name: str) -> HttpResponse:
    response = HttpResponse(csv_text(table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
