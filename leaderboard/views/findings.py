"""The paper's questions asked of this site's results, and the paper's own figures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from benchmark import vocabulary
from benchmark.web import page
from leaderboard import kept
from leaderboard.charts import findings as charts
from leaderboard.charts import findings_captions as captions
from leaderboard.charts.base import Figure, Table, csv_text
from leaderboard.conditional import conditional, generation
from leaderboard.filters import Choice, read_choice, unknown
from leaderboard.findings import beside
from leaderboard.findings.attribution import Attribution
from leaderboard.findings.published import CORRECT, Published
from leaderboard.selectors import findings as selected
from leaderboard.selectors.findings import Findings

HERE = "this site"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the charts draw from: the choice's findings and the paper's figures, if any."""

    choice: Choice
    found: Findings
    paper: Published | None

    @property
    def explained(self) -> tuple[tuple[str, Attribution], ...]:
        """(whose data, fit) for each that could be fitted."""
        sources = [(HERE, self.found.correct), *beside.recomputed(self.paper, CORRECT)]
        return tuple((name, fit) for name, fit in sources if isinstance(fit, Attribution))


@dataclass(frozen=True, slots=True)
class Chart:
    """`caption`: n, denominator and how the numbers come about, without GPU and lane."""

    title: str
    figure: Callable[[Asked], Figure]
    table: Callable[[Asked], Table]
    caption: Callable[[Asked], str]


CHARTS = {
    "explained": Chart(
        "Explained deviance of correctness",
        lambda asked: charts.explained_figure(asked.explained),
        lambda asked: charts.explained_table(asked.explained),
        lambda asked: captions.explained(asked.found),
    ),
    "slower": Chart(
        "Correct kernels against PyTorch eager",
        lambda asked: charts.speeds_figure(asked.found.speeds),
        lambda asked: charts.speeds_table(asked.found.speeds),
        lambda asked: captions.slower(asked.found),
    ),
    "endings": Chart(
        "How candidates end, by category",
        lambda asked: charts.endings_figure(asked.found.endings, asked.found.words),
        lambda asked: charts.endings_table(asked.found.endings, asked.found.words),
        lambda asked: captions.endings(asked.found),
    ),
    "roofline": Chart(
        "Each task's best kernel under the board's roofline",
        lambda asked: charts.roofline_figure(asked.found.roofline.best),
        lambda asked: charts.roofline_table(asked.found.roofline.best),
        lambda asked: captions.roofline(asked.found.roofline),
    ),
}


@dataclass(frozen=True, slots=True)
class ChartBox:
    """A chart on the page: its address, and the same numbers as a table."""

    name: str
    title: str
    query: str
    table: Table
    caption: str


@require_safe
@conditional
def findings(request: HttpRequest) -> HttpResponse:
    now = generation(request)
    gpus = kept.gpus(now)
    choice = read_choice(request.GET, gpus)
    context: dict[str, Any] = {
        "nav": "findings",
        "gpus": gpus,
        "choice": choice,
        "categories": vocabulary.CATEGORIES,
        "dtypes": vocabulary.DTYPES,
        "difficulties": vocabulary.DIFFICULTIES,
        "rounds": range(6),
        "lanes": vocabulary.ORIGINS,
        "is_narrowed": choice is not None and choice != Choice(choice.gpu),
        "band": round(100 * vocabulary.NEUTRAL_BAND),
    }
    if choice is not None:
        asked = _asked(now, choice)
        context |= {
            "gpu_links": [(g, choice.on(g).query, g.slug == choice.gpu.slug) for g in gpus],
            "found": asked.found,
            "paper": asked.paper,
            "beside": _beside(asked),
            "charts": {name: _box(name, asked) for name in CHARTS},
        }
    return page(request, "leaderboard/findings.html", context)


@require_safe
@conditional
def published(request: HttpRequest) -> HttpResponse:
    context = {"nav": "findings", "publications": selected.publications()}
    return page(request, "leaderboard/findings_published.html", context)


@require_safe
@conditional
def chart(request: HttpRequest, name: str, format: str) -> HttpResponse:
    """A figure as JSON, or its table twin as CSV, for the choice in the URL."""
    if name not in CHARTS:
        raise unknown("chart", name, CHARTS)
    now = generation(request)
    choice = read_choice(request.GET, kept.gpus(now))
    if choice is None:
        raise Http404("There is nothing to draw yet: no GPU has judged anything.")
    asked = _asked(now, choice)
    if format == "json":
        return JsonResponse(CHARTS[name].figure(asked))
    return _csv(CHARTS[name].table(asked), f"findings-{name}")


@require_safe
@conditional
def published_csv(request: HttpRequest, slug: str, table: str) -> HttpResponse:
    publications = {found.slug: found for found in selected.publications()}
    if slug not in publications:
        raise unknown("publication", slug, publications)
    found = publications[slug].table(table)
    if found is None:
        raise unknown("table", table, [known.slug for known in publications[slug].tables])
    return _csv(Table(found.columns, found.rows), f"{slug}-{table}")


def _beside(asked: Asked) -> dict[str, Any]:
    """The paper's figures in the forms in which the page sets them beside its own."""
    paper, found = asked.paper, asked.found
    return {
        "explained": beside.explained(found.correct, paper),
        "called": beside.explained_of_calls(found.called, paper),
        "fit_names": [name for name, _ in beside.recomputed(paper, CORRECT)],
        "fits": [fit for _, fit in beside.recomputed(paper, CORRECT)],
        "slower": beside.slower_by_gpu(paper),
        "endings": beside.endings(paper),
        "failing": beside.commonest_failure(paper),
        "scores": beside.scores(paper),
        "totals": beside.totals(paper),
    }


def _asked(now: int, choice: Choice) -> Asked:
    data, _ = kept.board(now, choice)
    return Asked(choice, selected.findings(data), selected.paper())


def _box(name: str, asked: Asked) -> ChartBox:
    chart = CHARTS[name]
    return ChartBox(name, chart.title, asked.choice.query, chart.table(asked), chart.caption(asked))


def _csv(table: Table, name: str) -> HttpResponse:
    response = HttpResponse(csv_text(table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
