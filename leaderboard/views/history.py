"""A method's history: for its page, and as figure and table by address."""

from dataclasses import dataclass

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from benchmark.web import viewer
from leaderboard import kept
from leaderboard.charts import history as charts
from leaderboard.charts.base import Table, csv_text
from leaderboard.conditional import conditional, generation
from leaderboard.filters import read_choice, unknown
from leaderboard.rows import GpuRow
from leaderboard.selectors import history, methods
from leaderboard.selectors.history import History
from leaderboard.selectors.methods import Card
from leaderboard.views.moved import follows_merges


@dataclass(frozen=True, slots=True)
class Box:
    """A history with the table twin of its picture."""

    history: History
    table: Table

    @property
    def title(self) -> str:
        return f"Submissions over time on {self.history.gpu.name}"


def boxes(card: Card, gpus: tuple[GpuRow, ...]) -> tuple[Box, ...]:
    """One for each GPU with a history: none for a method with a single submission."""
    if len(card.submissions) < 2:
        return ()
    return tuple(Box(found, charts.table(found)) for found in history.histories(card.method, gpus))


@require_safe
@conditional
@follows_merges
def chart(request: HttpRequest, slug: str, format: str) -> HttpResponse:
    """The picture as JSON or its table as CSV, on the GPU in the URL."""
    card = methods.card(slug, viewer(request))
    if card is None:
        raise unknown("method", slug, methods.method_slugs())
    gpus = kept.gpus(generation(request))
    choice = read_choice(request.GET, gpus)
    found = {box.history.gpu: box for box in boxes(card, gpus)}
    if choice is None or choice.gpu not in found:
        raise Http404(f"{card.method.name} has no history there: two submissions make one.")
    box = found[choice.gpu]
    if format == "json":
        return JsonResponse(charts.figure(box.history))
    response = HttpResponse(csv_text(box.table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="history-{slug}.csv"'
    return response
