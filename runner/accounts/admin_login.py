"""The admin's own sign-in form, throttled like the other one."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.core import ratelimit
from django.http import HttpRequest, HttpResponse


def throttled(login: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """`AdminSite.login`, with few attempts an address and a name."""

    @wraps(login)
    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        name = request.POST.get("username", "").casefold()
        refusal = ratelimit.consume_or_429(request, action="admin_login", key=name)
        return refusal or login(request, *args, **kwargs)

    return view
