"""What becomes of the same kernels on other GPUs. The URL is the state: which GPUs, which scale."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from benchmark.web import page
from leaderboard import kept
from leaderboard.charts import portability as charts
from leaderboard.charts.base import Figure, Table, Twin, csv_text
from leaderboard.conditional import conditional, generation
from leaderboard.filters import unknown
from leaderboard.rows import GpuRow
from leaderboard.selectors import builds
from leaderboard.selectors.portability import Portability, portability

ABSOLUTE, RELATIVE = "absolute", "relative"
SCALES = {
    ABSOLUTE: "geometric mean over PyTorch eager",
    RELATIVE: "share of the method's own best GPU",
}
LISTED = 20  # rows of a list on the page; its CSV has all
LARGEST = 10
FEWEST_SHARED = 10  # candidates judged twice: with fewer, a share or a median says little

FIGURES: dict[str, Callable[[Portability], Figure]] = {
    "correctness": charts.correctness_figure,
    "speedup": charts.speedup_figure,
    "relative": charts.relative_figure,
    "ratios": charts.ratios_figure,
}
TABLES: dict[str, Callable[[Portability], Table]] = {
    "correctness": charts.correctness_table,
    "speedup": charts.speedup_table,
    "disagreements": charts.disagreements_table,
    "pairs": charts.pairs_table,
    "ratios": charts.ratios_table,
    "bins": charts.bins_table,
}
BUILDS = "builds"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a URL asks for. `chosen` is empty where it names no GPU: then all are shown."""

    gpus: tuple[GpuRow, ...]
    chosen: tuple[GpuRow, ...]
    scale: str

    @property
    def shown(self) -> tuple[GpuRow, ...]:
        return self.chosen or self.gpus

    @property
    def offered(self) -> tuple[GpuRow, ...]:
        """Devices to choose from: those with results."""
        return tuple(gpu for gpu in self.gpus if gpu.runs)

    @property
    def query(self) -> str:
        return self.with_scale(self.scale)

    def with_scale(self, scale: str) -> str:
        pairs = [("gpu", gpu.slug) for gpu in self.chosen]
        return urlencode(pairs + ([("scale", scale)] if scale != ABSOLUTE else []))


@require_safe
@conditional
def portability_page(request: HttpRequest) -> HttpResponse:
    now = generation(request)
    gpus = kept.gpus(now)
    asked = _read(request, gpus)
    context: dict[str, Any] = {"nav": "portability", "asked": asked, "scales": _scales(asked)}
    found = portability(now, asked.shown)
    if found.devices:
        context |= _context(found)
    context |= {"builds": builds.kept_builds(gpus), "listed": LISTED}
    return page(request, "leaderboard/portability.html", context)


@require_safe
@conditional
def chart(request: HttpRequest, name: str, format: str) -> HttpResponse:
    """A figure as JSON, or a table as CSV, for the GPUs in the URL."""
    known = {*TABLES, BUILDS} if format == "csv" else set(FIGURES)
    if name not in known:
        raise unknown("chart", name, known)
    if name == BUILDS:
        return _csv(_builds_table(), name)
    now = generation(request)
    found = portability(now, _read(request, kept.gpus(now)).shown)
    if not found.devices:
        raise Http404("There is nothing to compare yet: no GPU has judged anything.")
    if format == "csv":
        return _csv(TABLES[name](found), f"portability-{name}")
    return JsonResponse(FIGURES[name](found))


def _read(request: HttpRequest, gpus: tuple[GpuRow, ...]) -> Asked:
    by_slug = {gpu.slug: gpu for gpu in gpus}
    slugs = request.GET.getlist("gpu")
    for slug in slugs:
        if slug not in by_slug:
            raise unknown("GPU", slug, by_slug)
    scale = request.GET.get("scale", "") or ABSOLUTE
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    return Asked(gpus, tuple(gpu for gpu in gpus if gpu.slug in slugs), scale)


def _scales(asked: Asked) -> list[tuple[str, str, bool]]:
    return [(text, asked.with_scale(word), word == asked.scale) for word, text in SCALES.items()]


def _context(found: Portability) -> dict[str, Any]:
    """`timing` cells are paired with their GPUs, since the interpreter has none."""
    return {
        "found": found,
        "timing": [
            (row, [(gpu, cell) for (gpu, _), cell in zip(found.devices, row.cells, strict=True)])
            for row in found.rows
        ],
        "largest": found.ratios[:LARGEST],
        "paper": charts.PAPER,
        "bins": Twin("Candidates by largest over smallest speedup", charts.bins_table(found)),
        "few": found.shared < FEWEST_SHARED,
    }


def _builds_table() -> Table:
    found = builds.builds()
    if found is None:
        raise Http404("Nothing was compiled for any architecture yet.")
    return charts.builds_table(found)


def _csv(table: Table, name: str) -> HttpResponse:
    response = HttpResponse(csv_text(table), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response
