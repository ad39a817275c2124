"""Conditional answers: what an anonymous visitor has already is neither made nor sent again.

Pages that a visitor without a session gets are the same for all of them and change with the
board's generation only, so that names their version (ETag, and Last-Modified where it is exact),
and the process keeps the newest ones as they were sent. Whoever has a session gets a page of their
own that nothing keeps and no cache may share.

What a link alone may lead to is the visitor's: who may have it is asked each time, and what the
process keeps is kept apart by what they may see.
"""

import hashlib
from collections.abc import Callable, Hashable
from functools import cache, partial, wraps
from pathlib import Path

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import timezone
from django.utils.cache import get_conditional_response, patch_cache_control, patch_vary_headers
from django.utils.http import http_date

from benchmark.models import Board
from benchmark.web import wants_fragment
from leaderboard import kept

View = Callable[..., HttpResponse]
DEPENDS_ON = ("Cookie", "Authorization", "HX-Request")
MADE_BY = ("benchmark", "leaderboard", "runner", "kbx_site", "templates", "static")


def conditional(view: View) -> View:
    """For a view that shows an anonymous visitor nothing but what the board's generation covers."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        if has_session(request):
            return for_one(view(request, *args, **kwargs))
        seen = kept.seen()
        request.generation = seen.generation  # type: ignore[attr-defined]  # read by `generation`
        if not seen.generation:
            return view(request, *args, **kwargs)
        etag, modified = version(seen, wants_fragment(request)), last_modified(seen)
        response = get_conditional_response(request, etag, modified)
        if response is None:
            place = (etag, request.get_host(), str(request.scheme), request.get_full_path())
            response = kept.ANSWERS.made(place, partial(view, request, *args, **kwargs))
        if response.status_code in (200, 304):
            name_version(response, etag, modified)
        return response

    return answer  # type: ignore[return-value]  # a 304 is an HttpResponse too


def kept_for(
    request: HttpRequest, may: Hashable, make: Callable[[], HttpResponse], form: str = ""
) -> HttpResponseBase:
    """What everybody gets who may see the same of this address, kept until something changes.

    `may` is what this visitor may see, asked just now, and tells apart whoever may see something
    else; `form` likewise, where the same is written in several ways. Only the visitor's own cache
    keeps the answer, and asks each time.
    """
    seen = kept.seen()
    request.generation = seen.generation  # type: ignore[attr-defined]  # read by `generation`
    if not seen.generation:
        return for_one(make())
    etag = version(seen, may, form)
    response = get_conditional_response(request, etag)
    if response is None:
        place = (etag, request.get_host(), str(request.scheme), request.path)
        response = kept.OF_ONE.made(place, make)
    if response.status_code in (200, 304):
        response["ETag"] = etag
    return for_one(response)


def personal(view: View) -> View:
    """For a view that shows more to some than to others: no cache shares what it answers."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
        return for_one(view(request, *args, **kwargs))

    return answer  # type: ignore[return-value]  # as above


def generation(request: HttpRequest) -> int:
    """The board's generation that this answer is about, asked once a request."""
    if not hasattr(request, "generation"):
        request.generation = kept.seen().generation  # type: ignore[attr-defined]
    return int(request.generation)  # type: ignore[attr-defined]  # as above


def has_session(request: HttpRequest) -> bool:
    return settings.SESSION_COOKIE_NAME in request.COOKIES


def for_one(response: HttpResponseBase) -> HttpResponseBase:
    patch_cache_control(response, private=True, no_cache=True)
    patch_vary_headers(response, DEPENDS_ON)
    return response


def version(seen: Board, *facts: object) -> str:
    """A weak ETag: equal texts, not equal bytes. The date is in it because generations begin anew
    where a database does; `facts` are what else tells answers of one address apart.
    """
    every = (release(), seen.generation, seen.changed_at.timestamp(), *facts)
    return f'W/"{hashlib.sha256(repr(every).encode()).hexdigest()[:32]}"'


def last_modified(seen: Board) -> int | None:
    """Seconds since 1970; None while that is no exact answer: during a burst of changes, and when
    the code is newer than the results.
    """
    changed = int(seen.changed_at.timestamp())
    return changed if release() < changed <= timezone.now().timestamp() else None


def name_version(response: HttpResponseBase, etag: str, modified: int | None) -> None:
    response["ETag"] = etag
    if modified is not None:
        response["Last-Modified"] = http_date(modified)
    # Kept by whoever likes, and asked for again each time: results change at any moment.
    patch_cache_control(response, public=True, no_cache=True)
    patch_vary_headers(response, DEPENDS_ON)


@cache
def release() -> float:
    """When the newest file that pages are made by was written: another release, other pages."""
    base = Path(settings.BASE_DIR)
    files = (path for folder in MADE_BY for path in (base / folder).rglob("*") if path.is_file())
    return max(
        (path.stat().st_mtime for path in files if "__pycache__" not in path.parts), default=0.0
    )
