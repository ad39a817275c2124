"""Comparing methods: two in full, up to five in the picture of fast_p. The URL is the state."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from benchmark import vocabulary
from benchmark.web import page
from leaderboard import comparison, kept, sentences
from leaderboard.charts import compare as compared
from leaderboard.charts import ecdf
from leaderboard.charts.base import Figure, Table, Twin, csv_text
from leaderboard.comparison import Comparison, Curve
from leaderboard.conditional import conditional, generation
from leaderboard.filters import Choice, read_choice, unknown
from leaderboard.rows import Board, GpuRow, MethodRow
from leaderboard.selectors import compare as selectors
from leaderboard.selectors.board import BoardData
from leaderboard.selectors.compare import Asked
from leaderboard.statistics import bootstrap
from leaderboard.views.moved import follows_merges

MOVERS = 8  # in each direction
NEIGHBOURS = 5
FIGURES = ("pairs", "ecdf")
TABLES = ("outcomes", "pairs", "ecdf", "tasks")


@dataclass(frozen=True, slots=True)
class Request:
    """What a URL asks for. `board` covers the choice; `asked` the methods of it."""

    choice: Choice
    data: BoardData
    board: Board
    asked: Asked

    @property
    def query(self) -> str:
        return methods_query(self.asked.methods, self.choice)

    @property
    def swapped(self) -> str:
        first, second, *others = self.asked.methods
        return methods_query((second, first, *others), self.choice)

    def compare(self) -> Comparison:
        first, second = self.asked.methods[:2]
        return comparison.compare(self.data, first, second)

    def curves(self) -> tuple[Curve, ...]:
        return comparison.curves(self.data, self.asked.methods)


def methods_query(methods: tuple[MethodRow, ...], choice: Choice) -> str:
    return urlencode([("m", method.slug) for method in methods]) + "&" + choice.query


@require_safe
@conditional
@follows_merges
def compare(request: HttpRequest) -> HttpResponse:
    """A comparison; a page to choose from where the URL does not name two methods."""
    gpus = kept.gpus(generation(request))
    read = _read(request, gpus)
    if read is None:
        return page(request, "leaderboard/compare_choose.html", {"nav": "compare"})
    if not read.asked.is_pair:
        response = page(request, "leaderboard/compare_choose.html", _choosing(read, gpus))
        response.status_code = 400 if read.asked.problem else 200
        return response
    return page(request, "leaderboard/compare.html", _comparing(read, gpus))


@require_safe
@conditional
@follows_merges
def chart(request: HttpRequest, name: str, format: str) -> HttpResponse:
    """A figure of the comparison as JSON, or a table of it as CSV."""
    known = TABLES if format == "csv" else FIGURES
    if name not in known:
        raise unknown("table" if format == "csv" else "chart", name, known)
    read = _read(request, kept.gpus(generation(request)))
    if read is None or not read.asked.is_pair:
        problem = read.asked.problem if read else ""
        raise Http404(problem or "Name two methods: ?m=one&m=another.")
    if format == "json":
        return JsonResponse(_figure(name, read))
    response = HttpResponse(csv_text(_table(name, read)), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="compare-{name}.csv"'
    return response


def _read(request: HttpRequest, gpus: tuple[GpuRow, ...]) -> Request | None:
    """None while no GPU has judged anything. Raises Http404 for what isn't known."""
    choice = read_choice(request.GET, gpus)
    if choice is None:
        return None
    data, board = kept.board(generation(request), choice)
    return Request(
        choice, data, board, selectors.read_methods(request.GET.getlist("m"), data.methods)
    )


def _figure(name: str, read: Request) -> Figure:
    return ecdf.figure(read.curves()) if name == "ecdf" else compared.figure(read.compare())


def _table(name: str, read: Request) -> Table:
    if name == "ecdf":
        return ecdf.table(read.curves())
    build = {"outcomes": compared.outcomes, "pairs": compared.pairs, "tasks": compared.tasks}
    return build[name](read.compare())


def _shared(read: Request, gpus: tuple[GpuRow, ...]) -> dict:
    return {
        "nav": "compare",
        "gpus": gpus,
        "choice": read.choice,
        "data": read.data,
        "board": read.board,
        "asked": read.asked,
        "entrants": selectors.entrants(read.board),
        "categories": vocabulary.CATEGORIES,
        "most": ecdf.MOST,
    }


def _choosing(read: Request, gpus: tuple[GpuRow, ...]) -> dict:
    pairs = selectors.neighbours(read.board, NEIGHBOURS)
    links = [
        (first, second, methods_query((first.method, second.method), read.choice))
        for first, second in pairs
    ]
    return _shared(read, gpus) | {"pairs": links}


def _comparing(read: Request, gpus: tuple[GpuRow, ...]) -> dict:
    found, chosen = read.compare(), set(read.asked.slugs)
    curves = read.curves()
    return _shared(read, gpus) | {
        "c": found,
        "query": read.query,
        "swapped": read.swapped,
        "correctness": sentences.correctness(found),
        "speed": sentences.speed(found),
        "multiplicity": sentences.multiplicity(len(read.board.standings)),
        "outcomes": _outcome_rows(found),
        "mcnemar_p": sentences.p_text(found.mcnemar.p),
        "sign_p": sentences.p_text(found.speed.sign.p),
        "movers": found.movers(MOVERS),
        "standings": [s for s in read.board.standings if s.method.slug in chosen],
        "unranked": [u for u in read.board.unranked if u.method.slug in chosen],
        "curves": curves,
        "ecdf": Twin("Share of tasks by speedup", ecdf.table(curves)),
        "ecdf_note": f"Share, low and high in percent of all {found.tasks} tasks.",
        "draws": bootstrap.DRAWS,
    }


def _outcome_rows(c: Comparison) -> list[tuple[str, list[tuple[str, int]], int]]:
    """(first's outcome, [(second's outcome, tasks)], sum); what occurs for neither is left out."""
    seen = [o for o in comparison.OUTCOMES if o != comparison.ABSENT or c.shared < c.tasks]
    rows = []
    for first in seen:
        row = [(second, c.count(first, second)) for second in seen]
        rows.append((first, row, sum(count for _, count in row)))
    return rows
