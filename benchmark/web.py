"""What pages of both apps share: who is looking, and fragments for htmx."""

from typing import Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.cache import patch_vary_headers


def viewer(request: HttpRequest) -> Any:
    """The user; a visitor without a session gets none, so that pages stay cachable."""
    if settings.SESSION_COOKIE_NAME in request.COOKIES:
        return request.user
    return AnonymousUser()


def wants_fragment(request: HttpRequest) -> bool:
    """True for a partial update; boosted links and restored history need the whole page."""
    htmx = request.htmx  # type: ignore[attr-defined]  # set by django_htmx's middleware
    return bool(htmx) and not htmx.boosted and not htmx.history_restore_request


def page(
    request: HttpRequest, template: str, context: dict[str, Any], fragment: str = ""
) -> HttpResponse:
    """Render `template`, or `fragment` for htmx. Caches keep the two apart by Vary."""
    name = fragment if fragment and wants_fragment(request) else template
    response = render(request, name, {**context, "viewer": viewer(request)})
    patch_vary_headers(response, ["HX-Request"])
    return response
