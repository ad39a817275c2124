"""Submissions over HTTP: send one, see how far it is."""

from typing import NoReturn

from django.conf import settings
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotAuthenticated, ValidationError
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer

from benchmark.models import Submission
from benchmark.models.entries import SubmissionQuerySet
from runner import submitting
from runner.api.serializers import SubmissionSerializer, UploadSerializer, builds_of
from runner.intake import read_upload
from runner.throttling import UploadThrottle


class MaySubmit(BasePermission):
    """Reading is for everybody; sending is for users, or for all where the site is open."""

    message = "Send a token: `Authorization: Token ...`; an administrator of the site hands it out."

    def has_permission(self, request: Request, view: object) -> bool:
        if request.method in SAFE_METHODS or settings.KBX_OPEN_SUBMISSIONS:
            return True
        return bool(request.user and request.user.is_authenticated)


class SubmissionViewSet(
    mixins.CreateModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Submission]
):
    """POST a multipart `file` with `method` and `label`; GET one by its uuid."""

    permission_classes = [MaySubmit]
    serializer_class = SubmissionSerializer
    lookup_field = "uuid"
    lookup_value_converter = "uuid"

    def permission_denied(
        self, request: Request, message: str | None = None, code: str | None = None
    ) -> NoReturn:
        """Say what to send: DRF keeps the permission's words for those who are signed in."""
        if request.authenticators and not request.successful_authenticator:
            raise NotAuthenticated(message)
        super().permission_denied(request, message, code)

    def get_queryset(self) -> SubmissionQuerySet:
        visible = Submission.objects.visible_to(self.request.user)
        return visible.select_related("method")

    def get_serializer_class(self) -> type[BaseSerializer]:
        return UploadSerializer if self.action == "create" else SubmissionSerializer

    def get_throttles(self) -> list:
        return [UploadThrottle()] if self.action == "create" else []

    def create(self, request: Request) -> Response:
        """201 with the submission; 400 says what to change, and then nothing was stored."""
        form = UploadSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        try:
            submission = _accept(form.validated_data, request)
        except submitting.SubmissionRefused as error:
            raise ValidationError({"reason": error.reason, "remedy": error.remedy}) from error
        return Response(SubmissionSerializer(submission).data, status=status.HTTP_201_CREATED)

    @action(detail=True)
    def builds(self, request: Request, uuid: str) -> Response:
        """Static portability: what compilers say of each candidate, by architecture."""
        submission = self.get_object()
        if submission.withdrawn_at is not None:
            return Response(status=status.HTTP_410_GONE)
        return Response(builds_of(submission))


def _accept(entry: dict, request: Request) -> Submission:
    file = entry["file"]
    intake = read_upload(file.name, file.read(), submitting.known_tasks())
    return submitting.accept(
        submitting.method_named(entry["method"], entry["kind"]),
        entry["label"],
        intake,
        request.user,
        entry["visibility"],
    )
