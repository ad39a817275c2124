"""Views whose answer is the same for everybody: conditional, like the pages beside them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from leaderboard.conditional import conditional, for_one

SAFE = ("GET", "HEAD")
View = Callable[..., HttpResponse]


class ReadView(APIView):
    """GET only. What is listed is shown to whoever asks, so nobody has to say who they are."""

    http_method_names = ["get", "head"]
    authentication_classes: Any = ()
    permission_classes = [AllowAny]  # so that another verb is a 405, not a 403


class PublicView(ReadView):
    """A `ReadView` that the board's generation covers: 304 while nothing has changed."""

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view = super().as_view(**initkwargs)

        @wraps(view)
        def rendered(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            response = view(request, *args, **kwargs)
            return response.render() if isinstance(response, Response) else response

        kept = conditional(rendered)

        @wraps(view)
        def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if cls.authentication_classes and "Authorization" in request.headers:
                return for_one(rendered(request, *args, **kwargs))
            return (kept if request.method in SAFE else rendered)(request, *args, **kwargs)

        return answer


class OwnView(PublicView):
    """A `PublicView` that shows an account its own, too: whoever says who they are gets an answer
    that nobody keeps.
    """

    authentication_classes: Any = api_settings.DEFAULT_AUTHENTICATION_CLASSES


def describe(operation: str, answer: Any, *parameters: Any, tag: str) -> Callable[[Any], Any]:
    """The operation's place in the OpenAPI document."""
    return extend_schema(
        operation_id=operation, responses={200: answer}, parameters=list(parameters), tags=[tag]
    )
