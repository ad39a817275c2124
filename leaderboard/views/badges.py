"""A method's badge, for the choice in the URL."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from leaderboard import badges, kept
from leaderboard.conditional import conditional, generation
from leaderboard.filters import read_choice, unknown
from leaderboard.views.moved import follows_merges


@require_safe
@conditional
@follows_merges
def badge(request: HttpRequest, slug: str) -> HttpResponse:
    now = generation(request)
    choice = read_choice(request.GET, kept.gpus(now))
    if choice is None:
        raise Http404("There is no badge yet: no GPU has judged anything.")
    data, board = kept.board(now, choice)
    by_slug = {method.slug: method for method in data.methods}
    if slug not in by_slug:
        raise unknown("method", slug, by_slug)
    found = badges.badge(board, by_slug[slug])
    title = f"{by_slug[slug].name} on KernelBench-X: {found.value}"
    response = HttpResponse(badges.svg(found, title), content_type="image/svg+xml; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response
