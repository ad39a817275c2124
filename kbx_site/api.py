"""`/api/v1/`: the apps' own APIs under one roof, the OpenAPI document and pages to try it."""

from django.urls import include, path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from runner.accounts.api import MeView

LISTED = (
    *("gpus", "leaderboard", "categories", "tasks", "methods", "compare", "portability", "rounds"),
    *(
        "findings",
        "published",
        "runs",
        "submission-list",
        "queue",
        "changes",
        "exports",
        "schema",
        "docs",
    ),
)


class Root(APIView):
    """What there is."""

    authentication_classes: list = []
    permission_classes = [AllowAny]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> Response:
        return Response({name: reverse(f"api:{name}", request=request) for name in LISTED})


class Nothing(APIView):
    """An address that isn't there, answered as every other error."""

    authentication_classes: list = []
    permission_classes = [AllowAny]

    def initial(self, request: Request, *args: object, **kwargs: object) -> None:
        raise NotFound("There is no such address in the API.")


class Docs(SpectacularSwaggerSplitView):
    """Swagger UI out of our own static files; its script is an address, as the CSP has it."""

    authentication_classes: list = []
    url_name = "api:schema"
    title = "KernelBench-X API"


app_name = "api"
urlpatterns = [
    path("", Root.as_view(), name="root"),
    path("schema/", SpectacularJSONAPIView.as_view(), name="schema"),
    path("docs/", Docs.as_view(), name="docs"),
    path("me/", MeView.as_view(), name="me"),
    path("", include("leaderboard.api.urls")),
    path("", include("runner.api.urls")),
    path("<path:rest>", extend_schema(exclude=True)(Nothing).as_view(), name="nothing"),
]
