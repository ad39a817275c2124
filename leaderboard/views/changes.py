"""What changed, as a page. The URL is the state: which kind of change."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from benchmark.web import page
from leaderboard.conditional import conditional
from leaderboard.filters import unknown
from leaderboard.selectors import changes as selected


@require_safe
@conditional
def changes(request: HttpRequest) -> HttpResponse:
    kind = asked_kind(request)
    context = {
        "nav": "changes",
        "changes": selected.changes(kind),
        "kind": kind,
        "kinds": selected.KINDS,
        "most": selected.SHOWN,
    }
    return page(request, "leaderboard/changes.html", context)


def asked_kind(request: HttpRequest) -> str:
    kind = request.GET.get("kind", "")
    if kind and kind not in selected.KINDS:
        raise unknown("kind", kind, selected.KINDS)
    return kind
