"""Comparisons, portability, rounds and findings."""

from collections.abc import Sequence
from typing import Any

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from benchmark.api import Problem
from leaderboard import comparison, kept, sentences
from leaderboard.api import analysis_serializers as s
from leaderboard.api import query
from leaderboard.api.base import PublicView, describe
from leaderboard.api.boards import method_card
from leaderboard.comparison import OUTCOMES, Comparison
from leaderboard.filters import unknown
from leaderboard.findings.attribution import Absent, Attribution
from leaderboard.refinement import Change
from leaderboard.rows import GpuRow, Result
from leaderboard.selectors import builds, rounds
from leaderboard.selectors import compare as selected
from leaderboard.selectors import findings as found_in
from leaderboard.selectors import portability as ported
from leaderboard.selectors.rounds import Refined


class Compare(PublicView):
    """Two methods task by task, with tests; fast_p of up to five."""

    @describe("compare", s.CompareSerializer, query.METHODS, *query.CHOICE, tag="analysis")
    def get(self, request: Request) -> Response:
        data, _ = kept.board(query.generation(request), query.choice(request))
        slugs = request.query_params.getlist("m")
        known = {method.slug for method in data.methods}
        for slug in filter(None, slugs):
            if slug not in known:
                raise query.unusable("m", unknown("method", slug, known))
        asked = selected.read_methods(slugs, data.methods)
        if not asked.is_pair:
            reason = asked.problem or "A comparison is between two methods."
            raise Problem(reason, "name two methods: ?m=one&m=another", "m")
        found = comparison.compare(data, *asked.methods[:2])
        answer = _compared(found) | {"curves": comparison.curves(data, asked.methods)}
        return Response(s.CompareSerializer(answer).data)


class Portability(PublicView):
    """What becomes of the same kernels on other GPUs, and what compiles for which architecture."""

    @describe("portability", s.PortabilitySerializer, query.GPUS, tag="analysis")
    def get(self, request: Request) -> Response:
        found = ported.portability(query.generation(request), query.gpus_asked(request))
        answer = {
            "devices": [{"gpu": gpu, "tasks": tasks} for gpu, tasks in found.devices],
            "rows": [_across(row, found) for row in found.rows],
            "shared": found.shared,
            "disagreements": [_disagreement(line) for line in found.disagreements],
            "pairs": found.pairs,
            "ratios": found.ratios,
            "ratio_summary": found.summary,
            "recorded": found.recorded,
            "builds": _builds(builds.kept_builds(query.gpus(request))),
        }
        return Response(s.PortabilitySerializer(answer).data)


class Rounds(PublicView):
    """Methods with several rounds on a GPU, from their first to their last."""

    @describe("rounds", s.RoundsSerializer, query.GPU, tag="analysis")
    def get(self, request: Request) -> Response:
        gpu = query.gpu_among(request, rounds.iterating(query.gpus(request)))
        if gpu is None:
            raise no_rounds("No method")
        return Response(s.RoundsSerializer(rounds.index(query.generation(request), gpu)).data)


class MethodRounds(PublicView):
    """What refinement did to a method on a GPU, round by round and task by task."""

    @describe("method_rounds", s.MethodRoundsSerializer, query.GPU, tag="analysis")
    def get(self, request: Request, slug: str) -> Response:
        card = method_card(slug, request.user)
        offered = rounds.devices(card.method.id, query.gpus(request))
        gpu = query.gpu_among(request, offered)
        found = rounds.refined(query.generation(request), card.method.id, gpu) if gpu else None
        if found is None:
            raise no_rounds(card.method.name)
        answer = {
            "method": card.method,
            "gpu": found.gpu,
            "tasks": len(found.tasks),
            "rounds": found.rounds,
            "steps": found.steps,
            "whole": found.whole,
            "changes": [_change(change, found) for change in found.whole.changes],
        }
        return Response(s.MethodRoundsSerializer(answer).data)


class Findings(PublicView):
    """The paper's questions asked of this site's results, for a choice."""

    @describe("findings", s.FindingsSerializer, *query.CHOICE, tag="analysis")
    def get(self, request: Request) -> Response:
        data, _ = kept.board(query.generation(request), query.choice(request))
        found = found_in.findings(data)
        answer = {
            "choice": data.choice,
            "judged": found.judged,
            "held": found.held,
            "missing": found.missing,
            "correct": _attribution(found.correct),
            "called": _attribution(found.called),
            "slower": found.pooled,
            "slower_by_method": found.speeds,
            "endings": found.endings,
            "all_endings": found.all_endings,
            "roofline": found.roofline,
        }
        return Response(s.FindingsSerializer(answer).data)


class Published(PublicView):
    """Published figures, as their authors give them: the published lane."""

    @describe("published", s.PublishedSerializer(many=True), tag="analysis")
    def get(self, request: Request) -> Response:
        return Response(s.PublishedSerializer(found_in.publications(), many=True).data)


def no_rounds(who: str) -> Problem:
    return Problem(
        f"{who} has a second round there.",
        "choose another GPU, or submit candidates with rounds 0, 1, ...",
        code="not-found",
        status_code=status.HTTP_404_NOT_FOUND,
    )


def _compared(found: Comparison) -> dict[str, Any]:
    return {
        "choice": found.choice,
        "first": found.first,
        "second": found.second,
        "correctness": sentences.correctness(found),
        "faster": sentences.speed(found),
        "tasks": found.tasks,
        "shared": found.shared,
        "outcomes": [
            {"first": first, "second": second, "tasks": found.count(first, second)}
            for first in OUTCOMES
            for second in OUTCOMES
        ],
        "mcnemar": found.mcnemar,
        "speed": found.speed,
        "pairs": found.pairs,
    }


def _across(row: ported.AcrossDevices, found: ported.Portability) -> dict[str, Any]:
    cells = zip(found.devices, row.cells, strict=True)
    return {
        "method": row.method,
        "on": [
            {
                "gpu": gpu.slug,
                "cell": cell.cell,
                "speedup": cell.speedup,
                "timed": cell.timed,
                "reason": cell.reason,
            }
            for (gpu, _), cell in cells
        ],
    }


def _disagreement(line: ported.Line[Any]) -> dict[str, Any]:
    return {
        "method": line.method.slug,
        "task": line.task.slug,
        "among_gpus": line.found.among_gpus,
        "passed": _ended(line.found.passed),
        "failed": _ended(line.found.failed),
    }


def _ended(on: Sequence[tuple[GpuRow, Result]]) -> list[dict[str, Any]]:
    return [{"gpu": gpu.slug, "run": result.run, "word": result.word} for gpu, result in on]


def _builds(found: builds.Builds | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "architectures": [one.slug for one in found.architectures],
        "rows": found.rows,
        "tried": found.tried,
        "triton": found.triton,
    }


def _change(change: Change, found: Refined) -> dict[str, Any]:
    return {
        "task": found.tasks[change.task].slug,
        "fate": change.fate,
        "before": change.before.run if change.before else None,
        "after": change.after.run if change.after else None,
        "ratio": change.ratio,
    }


def _attribution(fit: Attribution | Absent) -> dict[str, Any]:
    if isinstance(fit, Absent):
        return {
            "reason": fit.reason,
            "trials": None,
            "successes": None,
            "models": (),
            "steps": (),
        }
    return {
        "reason": "",
        "trials": fit.trials,
        "successes": fit.successes,
        "models": fit.models,
        "steps": fit.steps,
    }
