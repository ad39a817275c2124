"""Who calls the API with a key, and whether that key may do this."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed, PermissionDenied
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from runner.accounts import keys
from runner.accounts.models import READ, SUBMIT, ApiKey

SCHEMES = (b"bearer", b"token")  # the latter is what this site's first tokens were sent as


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer kbx_...`.

    The key's scope is checked here, where no view can forget it: reading needs `read`, everything
    else `submit`.
    """

    def authenticate(self, request: Request) -> tuple[Any, ApiKey] | None:
        scheme, _, secret = get_authorization_header(request).partition(b" ")
        if scheme.lower() not in SCHEMES:
            return None
        key = keys.found(secret.decode("latin-1").strip())
        if key is None:
            raise AuthenticationFailed("This API key is unknown here.")
        if key.state != "usable":
            raise AuthenticationFailed(f"This API key is {key.state}: make another one at /me/.")
        if not key.user.is_active:
            raise AuthenticationFailed("The account of this API key is closed.")
        scope = READ if request.method in SAFE_METHODS else SUBMIT
        if not (key.may(scope) or _needs_no_scope(request)):
            raise PermissionDenied(
                f"This API key may not {scope}: make one with that scope at /me/."
            )
        keys.note_use(key)
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="api"'


def _needs_no_scope(request: Request) -> bool:
    """True of a view that says so itself: what a key says about itself, and nothing else."""
    context = request.parser_context or {}
    return bool(getattr(context.get("view"), "needs_no_scope", False))


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI document says it."""

    target_class = ApiKeyAuthentication
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key of an account, made at /me/. Reading what is public needs "
            "none.",
        }
