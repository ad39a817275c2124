"""Pages for visitors: each view reads a choice, selects rows and renders them."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect

from benchmark import vocabulary
from benchmark.architectures import ARCHITECTURES
from benchmark.web import page, viewer, wants_fragment
from leaderboard import kept, summaries
from leaderboard.charts.base import Table, csv_text
from leaderboard.charts.registry import CHARTS
from leaderboard.conditional import (
    conditional,
    for_one,
    generation,
    has_session,
    kept_for,
    personal,
)
from leaderboard.filters import read_choice, unknown
from leaderboard.rows import Board as Ranking
from leaderboard.rows import GpuRow, Standing
from leaderboard.selectors import board as boards
from leaderboard.selectors import methods, runs, static, tasks
from leaderboard.statistics.bootstrap import DRAWS
from leaderboard.views import history
from leaderboard.views.moved import follows_merges

HOME_ROWS = 10
HOME_RUNS = 8


@dataclass(frozen=True, slots=True)
class ChartBox:
    """A chart on a page: where its figure is, and the same numbers as a table."""

    name: str
    title: str
    query: str
    table: Table


@require_safe
@conditional
def home(request: HttpRequest) -> HttpResponse:
    context = _board_context(request)
    if context["board"]:
        top = context["board"].standings[:HOME_ROWS]
        context |= {
            "top": top,
            "heatmap": summaries.heatmap(context["data"], [s.method for s in top]),
            "latest": boards.latest_runs(HOME_RUNS),
        }
    return page(request, "leaderboard/home.html", context)


@require_safe
@conditional
def board(request: HttpRequest) -> HttpResponse:
    context = _board_context(request)
    if _is_the_papers(context):
        return _to_the_paper(request)
    context |= _filter_options() | {"draws": DRAWS, "nav": "board"}
    if request.GET.get("format") == "csv" and context["board"]:
        return _csv(_board_table(context["board"]), "leaderboard")
    if context["board"]:
        context["charts"] = _charts(context, "speedups", "ecdf", "pareto", "verdicts")
    return page(request, "leaderboard/board.html", context, fragment="leaderboard/_board.html")


@require_safe
@conditional
def categories(request: HttpRequest) -> HttpResponse:
    context = _board_context(request) | {"nav": "categories"}
    if context["board"]:
        ranked = [standing.method for standing in context["board"].standings]
        context["heatmap"] = summaries.heatmap(context["data"], ranked)
    return page(request, "leaderboard/categories.html", context)


@require_safe
@conditional
def category(request: HttpRequest, slug: str) -> HttpResponse:
    if slug not in vocabulary.CATEGORY_BY_SLUG:
        raise unknown("category", slug, vocabulary.CATEGORY_BY_SLUG)
    context = _board_context(request, category=slug)
    context |= {"category": vocabulary.CATEGORY_BY_SLUG[slug], "nav": "categories"}
    if context["board"]:
        context["tasks"] = summaries.task_summaries(context["data"])
        context["charts"] = _charts(context, "speedups")
    return page(request, "leaderboard/category.html", context)


@require_safe
@conditional
def task_list(request: HttpRequest) -> HttpResponse:
    context = _board_context(request) | _filter_options() | {"nav": "tasks"}
    if context["board"]:
        context["tasks"] = summaries.task_summaries(context["data"])
    return page(request, "leaderboard/tasks.html", context)


@require_safe
@conditional
def task(request: HttpRequest, slug: str) -> HttpResponse:
    contract = tasks.contract(slug)
    if contract is None:
        raise unknown("task", slug, tasks.task_slugs())
    gpus = kept.gpus(generation(request))
    context = {
        "nav": "tasks",
        "task": contract,
        "gpus": gpus,
        "matrix": tasks.matrix(contract.id, gpus),
        "best": tasks.best_runs(contract.id, contract.not_on_ids),
    }
    return page(request, "leaderboard/task.html", context)


@require_safe
@conditional
@follows_merges
def method(request: HttpRequest, slug: str) -> HttpResponse:
    card = methods.card(slug, viewer(request))
    if card is None:
        raise unknown("method", slug, methods.method_slugs())
    gpus = kept.gpus(generation(request))
    on_gpus, rounds = methods.on_gpus(card.method, gpus)
    context = {
        "nav": "board",
        "card": card,
        "on_gpus": on_gpus,
        "rounds": rounds,
        "histories": history.boxes(card, gpus),
        "badge_gpu": badge_gpu(on_gpus),
        "site": request.build_absolute_uri("/"),
        "categories": vocabulary.CATEGORIES,
        "verdicts": _failed_verdicts(on_gpus),
        "meanings": vocabulary.VERDICTS,
    }
    return page(request, "leaderboard/method.html", context)


@require_safe
def run(request: HttpRequest, uuid: UUID) -> HttpResponseBase:
    """Who may see it, and how much of it, is asked each time; the rest is kept."""
    seen_by = runs.access(uuid, viewer(request))
    if seen_by is None:
        raise Http404(f"There is no run {uuid} here, or it is not public.")
    if has_session(request):  # the page names its visitor
        return for_one(_run(request, uuid, seen_by))
    return kept_for(request, seen_by, lambda: _run(request, uuid, seen_by))


def _run(request: HttpRequest, uuid: UUID, seen_by: runs.Access) -> HttpResponse:
    found = runs.run_page(uuid, seen_by)
    if found.withdrawn_at:
        response = page(request, "leaderboard/withdrawn.html", {"run": found})
        response.status_code = 410
        return response
    context = {
        "run": found,
        "portability": static.portability(found.source_sha256),
        "architectures": ARCHITECTURES,
    }
    return page(request, "leaderboard/run.html", context)


@require_safe
@personal
def source(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """The candidate's text as text: never sniffed as anything else, never shown inline."""
    found = runs.run_source(uuid, viewer(request))
    if found is None:
        raise Http404(f"There is no run {uuid} here, or it is not public.")
    name, text = found
    response = HttpResponse(text, content_type="text/plain; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.py"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_safe
@conditional
def metrics(request: HttpRequest) -> HttpResponse:
    context = {
        "nav": "metrics",
        "verdicts": vocabulary.VERDICTS,
        "stages": vocabulary.STAGES,
        "draws": DRAWS,
        "band": round(100 * vocabulary.NEUTRAL_BAND),
        "origins": vocabulary.ORIGINS,
    }
    return page(request, "leaderboard/metrics.html", context)


@require_safe
@conditional
def chart(request: HttpRequest, name: str, format: str) -> HttpResponse:
    """A chart's figure as JSON, or its table twin as CSV, for the choice in the URL."""
    if name not in CHARTS:
        raise unknown("chart", name, CHARTS)
    choice = read_choice(request.GET, kept.gpus(generation(request)))
    if choice is None:
        raise Http404("There is nothing to draw yet: no GPU has judged anything.")
    data, ranked = kept.board(generation(request), choice)
    if format == "csv":
        return _csv(CHARTS[name].table(data, ranked), name)
    return JsonResponse(CHARTS[name].figure(data, ranked))


def _board_context(request: HttpRequest, category: str = "") -> dict[str, Any]:
    """The choice with its board; all None while nothing has been judged and no GPU serves."""
    gpus = kept.gpus(generation(request))
    choice = read_choice(request.GET, gpus)
    context: dict[str, Any] = {
        "gpus": gpus,
        "choice": None,
        "data": None,
        "board": None,
        "published_total": vocabulary.PUBLISHED_TASK_COUNT,
        "categories": vocabulary.CATEGORIES,
    }
    if choice is None:
        return context
    if category:
        choice = choice.within(category)
    data, ranked = kept.board(generation(request), choice)
    return context | {
        "choice": choice,
        "data": data,
        "board": ranked,
        "gpu_links": [(gpu, choice.on(gpu).query, gpu.slug == choice.gpu.slug) for gpu in gpus],
    }


def _is_the_papers(context: dict[str, Any]) -> bool:
    """What the paper published are counts, which rank nobody: they have a page of their own."""
    choice, ranked = context["choice"], context["board"]
    return bool(choice and choice.lane == vocabulary.PUBLISHED and not ranked.standings)


def _to_the_paper(request: HttpRequest) -> HttpResponse:
    address = reverse("leaderboard:published")
    return HttpResponseClientRedirect(address) if wants_fragment(request) else redirect(address)


def _filter_options() -> dict[str, Any]:
    return {
        "dtypes": vocabulary.DTYPES,
        "difficulties": vocabulary.DIFFICULTIES,
        "rounds": range(6),
        "lanes": vocabulary.ORIGINS,
    }


def _charts(context: dict[str, Any], *names: str) -> list[ChartBox]:
    """Boxes for the charts that say something here: none about speed where nothing is timed."""
    data, board = context["data"], context["board"]
    about_speed = {"speedups", "ecdf", "pareto"}
    return [
        ChartBox(name, CHARTS[name].title, data.choice.query, CHARTS[name].table(data, board))
        for name in names
        if data.choice.gpu.can_time or name not in about_speed
    ]


def badge_gpu(on_gpus: tuple[methods.OnGpu, ...]) -> GpuRow | None:
    """The one that its badge names unless told otherwise: a badge of the first that times."""
    shown = [found.gpu for found in on_gpus]
    return next((gpu for gpu in shown if gpu.can_time), shown[0] if shown else None)


def _failed_verdicts(on_gpus: tuple[methods.OnGpu, ...]) -> list[str]:
    return [
        verdict for verdict in vocabulary.VERDICTS if any(g.failures.get(verdict) for g in on_gpus)
    ]


def _csv(table: Table, name: str) -> HttpResponse:
    response = HttpResponse(csv_text(table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


BOARD_COLUMNS = (
    *("rank", "rank_low", "rank_high", "tie_group", "method", "kind", "gpu"),
    *("tasks", "judged", "loaded", "called", "correct", "faster", "timed"),
    *("speedup", "speedup_low", "speedup_high", "baseline"),
)


def _board_table(board: Ranking) -> Table:
    return Table(BOARD_COLUMNS, tuple(_board_row(board, s) for s in board.standings))


def _board_row(board: Ranking, s: Standing) -> tuple[Any, ...]:
    f, speedup = s.funnel, s.speedup
    return (
        *(s.rank, s.rank_low, s.rank_high, s.group, s.method.name, s.method.kind, board.gpu.slug),
        *(f.tasks, f.judged, f.loaded, f.called, f.correct, f.faster, s.timed),
        *((speedup.value, speedup.low, speedup.high) if speedup else (None, None, None)),
        vocabulary.BASELINE,
    )
