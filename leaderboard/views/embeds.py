"""A chart or the ranking alone, for other people's pages: the only pages that may be framed."""

from typing import Any

from csp.decorators import csp_replace
from django.http import HttpRequest, HttpResponse
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from benchmark.web import page
from leaderboard import kept
from leaderboard.charts.registry import CHARTS
from leaderboard.conditional import conditional, generation
from leaderboard.filters import read_choice, unknown
from leaderboard.views.pages import ChartBox

STANDINGS = "standings"


@require_safe
@xframe_options_exempt
@csp_replace({"frame-ancestors": ["*"], "form-action": ["'none'"]})
@conditional
def embed(request: HttpRequest, name: str) -> HttpResponse:
    """Nothing here can be pressed but links, which open elsewhere: a frame around it gains nothing.

    The headers are set outside of what is kept, so that a kept answer has them too.
    """
    if name != STANDINGS and name not in CHARTS:
        raise unknown("chart", name, (STANDINGS, *CHARTS))
    now = generation(request)
    choice = read_choice(request.GET, kept.gpus(now))
    if choice is None:  # in a frame of somebody's page, where a 404 would look broken
        return page(request, "leaderboard/embed.html", {"choice": None, "name": name})
    data, board = kept.board(now, choice)
    context: dict[str, Any] = {"choice": choice, "board": board, "name": name}
    if name != STANDINGS:
        drawn = CHARTS[name]
        context["chart"] = ChartBox(name, drawn.title, choice.query, drawn.table(data, board))
    return page(request, "leaderboard/embed.html", context)
