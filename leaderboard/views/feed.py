"""What changed, as an Atom feed."""

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import escape
from django.views.decorators.http import require_safe

from benchmark.models import Board
from leaderboard.conditional import conditional
from leaderboard.selectors.changes import Change
from leaderboard.selectors.changes import changes as selected
from leaderboard.views.changes import asked_kind


class Feed(Atom1Feed):
    """Dated by what it holds; an empty one by when results last changed."""

    def latest_post_date(self) -> datetime:
        since: datetime = self.feed["empty_since"]
        return super().latest_post_date() if self.items else since


@require_safe
@conditional
def feed(request: HttpRequest) -> HttpResponse:
    kind = asked_kind(request)
    made = Feed(
        title="KernelBench-X: what changed",
        link=request.build_absolute_uri(reverse("leaderboard:changes")),
        description="New results, tasks and judges that changed, audits.",
        subtitle="New results, tasks and judges that changed, audits.",
        feed_url=request.build_absolute_uri(),
        author_name="KernelBench-X",
        language="en",
        empty_since=Board.seen().changed_at,
    )
    for change in selected(kind):
        made.add_item(**_item(request, change))
    response = HttpResponse(
        made.writeString("utf-8"), content_type="application/atom+xml; charset=utf-8"
    )
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _item(request: HttpRequest, change: Change) -> dict:
    """A title is text; a summary is HTML to feed readers, so that it is escaped once more."""
    return {
        "title": printable(change.title),
        "link": request.build_absolute_uri(change.url),
        "description": escape(printable(change.text)),
        "pubdate": change.at,
        "updateddate": change.at,
        "unique_id": f"tag:{request.get_host()},2026:{change.kind}/{change.key}",
        "categories": [change.kind_text],
    }


def printable(text: str) -> str:
    """XML can't hold control characters, not even escaped."""
    return "".join(character if character.isprintable() else " " for character in text)
