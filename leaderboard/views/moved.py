"""Addresses of methods that were merged into another: they lead there, whatever they show of it."""

from collections.abc import Callable
from functools import wraps

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from benchmark.web import viewer
from leaderboard.selectors import methods

View = Callable[..., HttpResponse]
NAMED = "m"  # the parameter by which a comparison names its methods


def follows_merges(view: View) -> View:
    """For a view that takes a method's slug, or several in its query: what it doesn't find is
    looked for among merged ones, so that a method which is there costs nothing.
    """

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except Http404:
            address = _now_at(request)
            if address is None:
                raise
            return redirect(address, permanent=True)

    return answer


def _now_at(request: HttpRequest) -> str | None:
    """The same page of the methods as they are called now; None where no slug was merged away."""
    match, query = request.resolver_match, request.GET.copy()
    if match is None:
        return None
    kwargs = match.kwargs
    if "slug" in kwargs:
        kwargs = {**kwargs, "slug": _now(request, kwargs["slug"])}
    if NAMED in query:
        query.setlist(NAMED, [_now(request, slug) for slug in query.getlist(NAMED)])
    if kwargs == match.kwargs and query == request.GET:
        return None
    path = reverse(match.view_name, kwargs=kwargs)
    return f"{path}?{query.urlencode()}" if query else path


def _now(request: HttpRequest, slug: str) -> str:
    return methods.merged_into(slug, viewer(request)) or slug
