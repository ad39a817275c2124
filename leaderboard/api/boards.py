"""Rankings, categories, tasks and methods."""

from collections.abc import Sequence
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from benchmark import vocabulary
from benchmark.api import BySlug, page_of
from benchmark.models import Method, Task
from leaderboard import kept, summaries
from leaderboard.api import query
from leaderboard.api import serializers as s
from leaderboard.api.base import OwnView, PublicView, describe
from leaderboard.filters import Choice, unknown
from leaderboard.rows import Board, GpuRow
from leaderboard.selectors import methods, tasks
from leaderboard.selectors.board import BoardData
from leaderboard.selectors.compare import entrants
from leaderboard.views import history


class Gpus(PublicView):
    """GPUs with listed results or in service, the pages' default first."""

    @describe("gpus", s.GpuSerializer(many=True), tag="boards")
    def get(self, request: Request) -> Response:
        return Response(s.GpuSerializer(query.gpus(request), many=True).data)


class Leaderboard(PublicView):
    """The ranking of a choice, with intervals of ranks and speedups, and who is not ranked."""

    @describe("leaderboard", s.LeaderboardSerializer, *query.CHOICE, tag="boards")
    def get(self, request: Request) -> Response:
        choice = query.choice(request)
        return Response(leaderboard(*kept.board(query.generation(request), choice)))


class Categories(PublicView):
    """Correct k of n by method and category."""

    @describe("categories", s.CategoriesSerializer, *query.CHOICE, tag="boards")
    def get(self, request: Request) -> Response:
        data, board = kept.board(query.generation(request), query.choice(request))
        heatmap = summaries.heatmap(data, [standing.method for standing in board.standings])
        found = {"choice": data.choice, "categories": heatmap.categories, "rows": heatmap.rows}
        return Response(s.CategoriesSerializer(found).data)


class Category(PublicView):
    """A category's ranking and its tasks."""

    @describe("category", s.CategoryPageSerializer, *query.CHOICE, tag="boards")
    def get(self, request: Request, slug: str) -> Response:
        if slug not in vocabulary.CATEGORY_BY_SLUG:
            raise unknown("category", slug, vocabulary.CATEGORY_BY_SLUG)
        choice = query.choice(request).within(slug)
        data, board = kept.board(query.generation(request), choice)
        rows = s.TaskSummarySerializer(summaries.task_summaries(data), many=True)
        return Response(
            {
                "category": slug,
                "label": vocabulary.CATEGORY_BY_SLUG[slug].label,
                "leaderboard": leaderboard(data, board),
                "tasks": rows.data,
            }
        )


class Tasks(PublicView):
    """Tasks of a choice with their solve rates, by name, in pages."""

    @describe("tasks", page_of(s.TaskSummarySerializer), *query.CHOICE, *query.PAGES, tag="tasks")
    def get(self, request: Request) -> Response:
        data, _ = kept.board(query.generation(request), query.choice(request))
        by_slug = {row.task.slug: row for row in summaries.task_summaries(data)}
        pages = BySlug()
        page = pages.paginate_queryset(Task.objects.filter(slug__in=by_slug), request, self) or []
        rows = [by_slug[task.slug] for task in page]
        return pages.get_paginated_response(s.TaskSummarySerializer(rows, many=True).data)


class TaskPage(PublicView):
    """A task's contract, cases and sources, who solved it where, and its fastest trusted runs."""

    @describe("task", s.TaskPageSerializer, tag="tasks")
    def get(self, request: Request, slug: str) -> Response:
        contract = tasks.contract(slug)
        if contract is None:
            raise unknown("task", slug, tasks.task_slugs())
        gpus = query.gpus(request)
        matrix = [_matrix_row(row, gpus) for row in tasks.matrix(contract.id, gpus)]
        found = {"task": contract, "matrix": matrix, "best": tasks.best_runs(contract.id)}
        return Response(s.TaskPageSerializer(found).data)


class Methods(PublicView):
    """Methods with a listed submission, by slug, in pages; with their place in the choice."""

    @describe(
        "methods", page_of(s.MethodLineSerializer), *query.CHOICE, *query.PAGES, tag="methods"
    )
    def get(self, request: Request) -> Response:
        _, board = kept.board(query.generation(request), query.choice(request))
        by_slug = {entrant.method.slug: entrant for entrant in entrants(board)}
        pages = BySlug()
        found = Method.objects.filter(slug__in=by_slug)
        page = pages.paginate_queryset(found, request, self) or []
        rows = [by_slug[method.slug] for method in page]
        return pages.get_paginated_response(s.MethodLineSerializer(rows, many=True).data)


def method_card(slug: str, user: Any) -> methods.Card:
    """The method of this slug, or the one that it was merged into; 404 with near misses."""
    card = methods.card(slug, user) or methods.card(methods.merged_into(slug, user) or slug, user)
    if card is None:
        raise unknown("method", slug, methods.method_slugs())
    return card


class MethodPage(OwnView):
    """A method on each GPU: summary, rounds, and its history over submissions. Your own is found
    before it is listed, too.
    """

    @describe("method", s.MethodPageSerializer, tag="methods")
    def get(self, request: Request, slug: str) -> Response:
        card = method_card(slug, request.user)
        gpus = query.gpus(request)
        on_gpus, rounds = methods.on_gpus(card.method, gpus)
        found = {
            "card": card,
            "on_gpus": on_gpus,
            "rounds": rounds,
            "histories": [box.history for box in history.boxes(card, gpus)],
        }
        return Response(s.MethodPageSerializer(found).data)


def leaderboard(data: BoardData, board: Board) -> dict[str, Any]:
    return dict(s.LeaderboardSerializer(_board(data.choice, data, board)).data)


def _board(choice: Choice, data: BoardData, board: Board) -> dict[str, Any]:
    return {
        "choice": choice,
        "gpu": board.gpu,
        "tasks": board.tasks,
        "published": board.published,
        "standings": board.standings,
        "unranked": board.unranked,
        "recorded": data.recorded,
    }


def _matrix_row(row: tasks.MatrixRow, gpus: Sequence[GpuRow]) -> dict[str, Any]:
    pairs = zip(gpus, row.results, strict=True)
    return {
        "method": row.method,
        "on": [{"gpu": gpu.slug, "result": result} for gpu, result in pairs],
    }
