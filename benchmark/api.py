"""What the APIs of both apps share: errors of one shape, cursors, generated schemas."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from django.core.exceptions import ValidationError as DjangoValidationError
from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.openapi import AutoSchema
from rest_framework import exceptions, serializers, status
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView, exception_handler

DOCUMENT = "/api/v1/docs/"
# What to do about an answer of this status, where nothing more special is known.
REMEDIES = {
    status.HTTP_400_BAD_REQUEST: f"see {DOCUMENT} for what this address takes",
    status.HTTP_401_UNAUTHORIZED: "send an API key, made at /me/: `Authorization: Bearer kbx_...`",
    status.HTTP_403_FORBIDDEN: "use the account that this belongs to",
    status.HTTP_404_NOT_FOUND: "check the address; lists name what there is",
    status.HTTP_405_METHOD_NOT_ALLOWED: f"see {DOCUMENT} for the methods of this address",
    status.HTTP_406_NOT_ACCEPTABLE: "accept application/json",
    status.HTTP_410_GONE: "its author took it back; the tombstone stays",
    status.HTTP_415_UNSUPPORTED_MEDIA_TYPE: "send multipart/form-data, or JSON where documented",
}
FIELD_REMEDIES = {
    "required": "send it",
    "null": "send a value",
    "blank": "send a value that is not empty",
    "empty": "send a file that is not empty",
    "invalid_choice": "use one of the values that the OpenAPI document lists",
    "max_length": "send a shorter one",
    "too_large": "send it in parts",
}
WHOLE = ""  # the field of an error that is about no field alone


class Problem(exceptions.APIException):
    """An answer that is no error of ours: what is wrong, where, and what to do about it."""

    def __init__(
        self,
        reason: str,
        remedy: str,
        field: str = WHOLE,
        code: str = "invalid",
        status_code: int = status.HTTP_400_BAD_REQUEST,
    ) -> None:
        super().__init__(reason, code)
        self.reason, self.remedy, self.field = reason, remedy, field
        self.status_code = status_code


class FieldErrorSerializer(serializers.Serializer):
    field = serializers.CharField(help_text="The field or query parameter.")
    reason = serializers.CharField()
    remedy = serializers.CharField(help_text="What to change.")


class ErrorSerializer(serializers.Serializer):
    """Every answer with a status of 400 or above."""

    code = serializers.CharField(help_text="A word for programs: invalid, refused, throttled, ...")
    reason = serializers.CharField()
    remedy = serializers.CharField(help_text="What to do about it.")
    fields = serializers.ListField(  # type: ignore[assignment]  # shades Serializer.fields
        child=FieldErrorSerializer(), help_text="Empty where no field alone is at fault."
    )


def error(
    code: str, reason: str, remedy: str, fields: Sequence[Mapping[str, str]] = ()
) -> dict[str, Any]:
    """The body of every error."""
    return {"code": code, "reason": reason, "remedy": remedy, "fields": list(fields)}


def answer_error(raised: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler: its status and headers, our body. None: a failure of ours."""
    response = exception_handler(raised, context)
    if response is not None:
        response.data = _body(raised, response.status_code)
        response.content_type = None
    return response


def _body(raised: Exception, code: int) -> dict[str, Any]:
    if isinstance(raised, Problem):
        named = {"field": raised.field, "reason": raised.reason, "remedy": raised.remedy}
        return error(_code(raised), raised.reason, raised.remedy, [named] if raised.field else [])
    if isinstance(raised, exceptions.ValidationError):
        return _invalid(raised)
    if isinstance(raised, exceptions.Throttled):
        wait = int(getattr(raised, "wait", None) or 0) + 1
        reason = "Too many requests from this account or address."
        return error("throttled", reason, f"try again in {wait} s, as Retry-After says")
    if isinstance(raised, Http404):
        return error("not-found", *split_hint(str(raised) or "There is nothing here."))
    reason = str(getattr(raised, "detail", "")) or "This can't be answered."
    return error(_code(raised), reason, REMEDIES.get(code, REMEDIES[400]))


def split_hint(text: str) -> tuple[str, str]:
    """(reason, remedy) of a 404's text: its first sentence, and the hint behind it, if any."""
    for mark in (" Did you mean ", " Known: ", ": use "):
        reason, found, hint = text.partition(mark)
        if found:
            return reason.rstrip(":"), (found.strip(": ") + " " + hint).strip()
    return text, REMEDIES[404]


def _code(raised: Exception) -> str:
    detail = getattr(raised, "detail", None)
    return str(getattr(detail, "code", "invalid")).replace("_", "-")


def _invalid(raised: exceptions.ValidationError) -> dict[str, Any]:
    fields = list(_fields(raised.detail))
    if not fields:
        return error("invalid", "The request can't be used.", REMEDIES[400])
    names = ", ".join(dict.fromkeys(entry["field"] for entry in fields if entry["field"]))
    first = fields[0]
    reason = f"{first['field']}: {first['reason']}" if first["field"] else first["reason"]
    remedy = f"change {names}" if len(fields) > 1 and names else first["remedy"]
    return error("invalid", reason, remedy, [entry for entry in fields if entry["field"]])


def _fields(detail: Any, name: str = WHOLE) -> Iterable[dict[str, str]]:
    """One entry for each message, with the dotted path of its field."""
    if isinstance(detail, dict):
        for key, inner in detail.items():
            own = WHOLE if key == api_settings.NON_FIELD_ERRORS_KEY else str(key)
            yield from _fields(inner, ".".join(filter(None, (name, own))))
    elif isinstance(detail, list):
        for inner in detail:
            yield from _fields(inner, name)
    else:
        code = getattr(detail, "code", "invalid")
        yield {
            "field": name,
            "reason": str(detail),
            "remedy": FIELD_REMEDIES.get(code, REMEDIES[400]),
        }


class Cursor(CursorPagination):
    """Lists in pages: follow `next` until it is null. Rows that arrive meanwhile shift nothing."""

    page_size = 50
    max_page_size = 200
    page_size_query_param = "limit"
    ordering: Any = "-created_at"
    invalid_cursor_message = "The cursor is none of this list."

    def paginate_queryset(
        self, queryset: QuerySet[Any] | Sequence[Any], request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        """A cursor that was written by hand can hold a position of another type."""
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValueError, OverflowError, TypeError, DjangoValidationError) as wrong:
            raise self._unusable() from wrong
        except exceptions.NotFound as wrong:
            raise self._unusable() from wrong

    def _unusable(self) -> Problem:
        return Problem(
            self.invalid_cursor_message, "begin anew without it, and follow `next`", "cursor"
        )


class BySlug(Cursor):
    ordering = "slug"


class ByAge(Cursor):
    """Newest first."""

    ordering = ("-created_at", "-id")


def page_of(row: type[serializers.Serializer]) -> type[serializers.Serializer]:
    """The answer of a list: a page of rows and the addresses of those beside it."""
    none = "null: there is none."
    fields = {
        "next": serializers.URLField(allow_null=True, help_text=none),
        "previous": serializers.URLField(allow_null=True, help_text=none),
        "results": row(many=True),
    }
    return type(
        f"{row.__name__.removesuffix('Serializer')}PageSerializer",
        (serializers.Serializer,),
        fields,
    )


class Schema(AutoSchema):
    """Adds the one shape of errors to every operation."""

    def _get_response_bodies(
        self, direction: Literal["request", "response"] = "response"
    ) -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        named = {"400": "Unusable", "404": "Not here, or not for you to see", "429": "Too often"}
        for code, description in named.items():
            if code not in bodies:
                body = self._get_response_for_code(ErrorSerializer, code)
                bodies[code] = body | {"description": description}
        return bodies
