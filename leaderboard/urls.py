from django.urls import path, register_converter

from leaderboard.exports.datasets import VERSION
from leaderboard.exports.writers import FORMATS
from leaderboard.views import (
    badges,
    changes,
    compare,
    data,
    embeds,
    feed,
    findings,
    history,
    pages,
    portability,
    rounds,
)


class ChartFormat:
    regex = "json|csv"

    def to_python(self, value: str) -> str:
        return value

    def to_url(self, value: str) -> str:
        return value


class CiteFormat(ChartFormat):
    regex = "bib|cff"


class DataFormat(ChartFormat):
    regex = "|".join(FORMATS)


register_converter(ChartFormat, "chart_format")
register_converter(DataFormat, "data_format")
register_converter(CiteFormat, "cite_format")

app_name = "leaderboard"
urlpatterns = [
    path("", pages.home, name="home"),
    path("leaderboard/", pages.board, name="board"),
    path("categories/", pages.categories, name="categories"),
    path("categories/<slug:slug>/", pages.category, name="category"),
    path("tasks/", pages.task_list, name="tasks"),
    path("tasks/<slug:slug>/", pages.task, name="task"),
    path("methods/<slug:slug>/", pages.method, name="method"),
    path("methods/<slug:slug>/history.<chart_format:format>", history.chart, name="history"),
    path("compare/", compare.compare, name="compare"),
    path("compare/<slug:name>.<chart_format:format>", compare.chart, name="compare-chart"),
    path("findings/", findings.findings, name="findings"),
    path("findings/published/", findings.published, name="published"),
    path(
        "findings/published/<slug:slug>/<slug:table>.csv",
        findings.published_csv,
        name="published-csv",
    ),
    path("findings/<slug:name>.<chart_format:format>", findings.chart, name="findings-chart"),
    path("portability/", portability.portability_page, name="portability"),
    path(
        "portability/<slug:name>.<chart_format:format>",
        portability.chart,
        name="portability-chart",
    ),
    path("rounds/", rounds.index, name="rounds"),
    path("rounds/<slug:slug>/", rounds.method, name="method-rounds"),
    path("rounds/<slug:slug>/<slug:name>.<chart_format:format>", rounds.chart, name="rounds-chart"),
    path("runs/<uuid:uuid>/", pages.run, name="run"),
    path("runs/<uuid:uuid>/source.py", pages.source, name="source"),
    path("charts/<slug:name>.<chart_format:format>", pages.chart, name="chart"),
    path("data/", data.data, name="data"),
    path(f"data/v{VERSION}/<slug:name>.<data_format:format>", data.download, name="data-file"),
    path(
        f"data/v{VERSION}/<slug:name>.<data_format:format>.sha256",
        data.checksum,
        name="data-checksum",
    ),
    path("data/citation.<cite_format:format>", data.cite, name="cite"),
    path("changes/", changes.changes, name="changes"),
    path("feed.atom", feed.feed, name="feed"),
    path("badge/<slug:slug>.svg", badges.badge, name="badge"),
    path("embed/<slug:name>/", embeds.embed, name="embed"),
    path("about/metrics/", pages.metrics, name="metrics"),
]
