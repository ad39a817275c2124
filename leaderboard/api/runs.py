"""Runs: all that lists may name, and each with everything that was found."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpResponse, HttpResponseBase
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from benchmark import vocabulary
from benchmark.api import ByAge, Problem, page_of
from benchmark.models import CountingRun, Run, Task
from leaderboard.api import query
from leaderboard.api import serializers as s
from leaderboard.api.base import PublicView, describe
from leaderboard.conditional import kept_for
from leaderboard.figures import interval, verdict_word
from leaderboard.filters import FINAL, MAX_ROUND
from leaderboard.rows import COUNTED
from leaderboard.selectors import methods, runs, static, tasks
from leaderboard.selectors.board import NEWEST_AUDIT, state_of

UNREAD = ("log_tail", "environment", "kernels", "findings", "detail", "seconds")
PARAMETERS = (
    query.parameter("gpu", "Slug of a GPU; all by default."),
    *(one for one in query.CHOICE if one.name in ("category", "dtype", "difficulty", "lane")),
    query.parameter("round", "`final`: only what counts on a board; or a number. All by default."),
    query.parameter("method", "Slug of a method."),
    query.parameter("task", "Slug of a task."),
    query.parameter("verdict", "Only runs that ended so.", vocabulary.VERDICTS),
)


class Runs(PublicView):
    """Listed runs, the newest first, in pages. What is held back, rejected or stale says so in
    `state` and shows no speedup.
    """

    @describe("runs", page_of(s.ListedRunSerializer), *PARAMETERS, *query.PAGES, tag="runs")
    def get(self, request: Request) -> Response:
        pages = ByAge()
        page = pages.paginate_queryset(_listed(request), request, self) or []
        rows = s.ListedRunSerializer([_line(run) for run in page], many=True)
        return pages.get_paginated_response(rows.data)


class RunPage(APIView):
    """A judgement: verdict, every case, kernels, environment, audits, source and builds."""

    http_method_names = ["get", "head"]

    @describe("run", s.RunPageSerializer, tag="runs")
    def get(self, request: Request, uuid: UUID) -> HttpResponseBase:
        seen_by = runs.access(uuid, request.user)
        if seen_by is None:
            raise Problem(
                f"There is no run {uuid} here, or it is not public.",
                "check the uuid, or send the key of the account that it belongs to",
                code="not-found",
                status_code=status.HTTP_404_NOT_FOUND,
            )
        if seen_by.is_withdrawn:
            raise withdrawn()
        return kept_for(
            request._request,
            seen_by,
            lambda: _rendered(request, _run(uuid, seen_by)),
            form=request.accepted_media_type,
        )


def _run(uuid: UUID, seen_by: runs.Access) -> dict[str, Any]:
    found = runs.run_page(uuid, seen_by)
    hidden = found.source_is_hidden
    builds = () if hidden else static.portability(found.source_sha256).rows
    return dict(s.RunPageSerializer({"run": _Shown(found), "builds": builds}).data)


def _rendered(request: Request, answer: dict[str, Any]) -> HttpResponse:
    """As bytes, which can be kept."""
    renderer = request.accepted_renderer
    content = renderer.render(answer, request.accepted_media_type, {})
    return HttpResponse(content, content_type=renderer.media_type)


class _Shown:
    """A run's page with its pairs as objects."""

    def __init__(self, page: runs.RunPage) -> None:
        self._page = page
        self.seconds = dict(page.seconds)
        self.environment = dict(page.environment)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)


def withdrawn() -> Problem:
    return Problem(
        "Its submission was withdrawn.",
        "ask its author; the tombstone stays so that links say what happened",
        code="withdrawn",
        status_code=status.HTTP_410_GONE,
    )


def _listed(request: Request) -> QuerySet[Run]:
    asked = request.query_params
    lane = query.one_of(request, "lane", vocabulary.ORIGINS) or vocabulary.MEASURED
    found = Run.objects.listed().filter(origin=lane)
    fields = {
        "gpu__slug": query.one_of(request, "gpu", [gpu.slug for gpu in query.gpus(request)]),
        "verdict": query.one_of(request, "verdict", vocabulary.VERDICTS),
        "candidate__submission__method__slug": _known(request, "method", methods.method_slugs),
        "candidate__task__slug": _known(request, "task", tasks.task_slugs),
    }
    found = found.filter(**{name: value for name, value in fields.items() if value})
    if any(asked.get(name) for name in ("category", "dtype", "difficulty")):
        found = found.filter(candidate__task__in=list(_tasks(request)))
    return (
        _in_round(request, found)
        .select_related("candidate__task", "candidate__submission__method", "gpu")
        .annotate(newest_audit=NEWEST_AUDIT)
        .defer(*UNREAD, "candidate__task__reference_source", "candidate__task__plain_source")
    )


def _known(request: Request, name: str, known: Any) -> str:
    return query.one_of(request, name, known()) if request.query_params.get(name) else ""


def _in_round(request: Request, found: QuerySet[Run]) -> QuerySet[Run]:
    value = request.query_params.get("round", "")
    if not value:
        return found
    if value == FINAL:
        final = CountingRun.objects.filter(run=OuterRef("pk"), is_final=True)
        return found.filter(Exists(final))
    if not (value.isascii() and value.isdigit() and len(value) < 5 and int(value) <= MAX_ROUND):
        raise Problem(
            f"There is no round {value[:20]!a}.", "use `final` or a number from 0", "round"
        )
    return found.filter(candidate__round=int(value))


def _tasks(request: Request) -> Iterable[int]:
    """Ids of tasks that the category, dtype and difficulty of the query string choose."""
    category = query.one_of(request, "category", vocabulary.CATEGORY_BY_SLUG)
    dtype = query.one_of(request, "dtype", vocabulary.DTYPES)
    difficulty = query.one_of(request, "difficulty", map(str, vocabulary.DIFFICULTIES))
    for id, own, dtypes, hard in Task.objects.values_list("id", "category", "dtypes", "difficulty"):
        is_asked = category in ("", own) and difficulty in ("", str(hard))
        if is_asked and (not dtype or dtype in dtypes):
            yield id


def _line(run: Run) -> dict[str, Any]:
    submission, task = run.candidate.submission, run.candidate.task
    audit = run.newest_audit  # type: ignore[attr-defined]  # annotated above
    state = state_of(run.task_digest == task.digest, run.is_suspect, audit)
    speedup = interval(run.speedup, run.speedup_low, run.speedup_high)
    if state != COUNTED or not run.gpu.can_time:
        speedup = None
    return {
        "uuid": run.uuid,
        "task": task.slug,
        "category": task.category,
        "method": submission.method.slug,
        "submission": submission.uuid,
        "gpu": run.gpu.slug,
        "round": run.candidate.round,
        "lane": run.origin,
        "verdict": run.verdict,
        "word": verdict_word(run.verdict, speedup.value if speedup else None)
        if state == COUNTED
        else state,
        "state": state,
        "stage": run.stage,
        "speedup": speedup,
        "judge_version": run.judge_version,
        "task_digest": run.task_digest,
        "created_at": run.created_at,
    }
