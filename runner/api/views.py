"""Submissions over HTTP: send one, see how far it is; its jobs, and the queues."""

from collections.abc import Sequence
from typing import NoReturn
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.parsers import JSONParser, MultiPartParser
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from benchmark.api import ByAge, ErrorSerializer, Problem
from benchmark.models import Submission
from benchmark.models.entries import SubmissionQuerySet
from benchmark.throttles import ReadThrottle
from runner import selectors, submitting
from runner.api import idempotency
from runner.api import serializers as s
from runner.intake import read_upload
from runner.throttling import UploadThrottle

TAGS = ["submissions"]
KEY = OpenApiParameter(
    idempotency.HEADER,
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="Up to 255 printable ASCII characters, for example a random UUID. The same key "
    "with the same upload is answered as the first time, for 7 days, and stored once; with another "
    "upload it is refused (422).",
)
METHOD = OpenApiParameter("method", OpenApiTypes.STR, description="Slug of a method.")


class MaySubmit(BasePermission):
    """Reading is for everybody; sending is for users, or for all where the site is open."""

    message = "Send an API key of yours, made at /me/: `Authorization: Bearer kbx_...`."

    def has_permission(self, request: Request, view: object) -> bool:
        if request.method in SAFE_METHODS or settings.KBX_OPEN_SUBMISSIONS:
            return True
        return bool(request.user and request.user.is_authenticated)


class SubmissionViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Submission]
):
    """POST a multipart `file` with `method` and `label`; GET one by its uuid."""

    permission_classes = [MaySubmit]
    serializer_class = s.SubmissionSerializer
    parser_classes = [MultiPartParser, JSONParser]
    pagination_class = ByAge
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
        """Of the list: what lists may name, and the asker's own."""
        visible = Submission.objects.visible_to(self.request.user).select_related("method")
        if self.action != "list":
            return visible
        mine = Q(submitted_by=self.request.user) if self.request.user.is_authenticated else Q(pk=-1)
        listed = Q(pk__in=Submission.objects.listed().values("pk"))
        found = visible.filter(listed | mine, withdrawn_at__isnull=True)
        if method := self.request.query_params.get("method", ""):
            found = found.filter(method__slug=method) if "\0" not in method else found.none()
        return found.annotate(candidate_count=Count("candidates"))

    def get_serializer_class(self) -> type[BaseSerializer]:
        named: dict[str, type[BaseSerializer]] = {
            "create": s.UploadSerializer,
            "list": s.ListedSubmissionSerializer,
        }
        return named.get(self.action, s.SubmissionSerializer)

    def get_throttles(self) -> list:
        return [UploadThrottle()] if self.action == "create" else [ReadThrottle()]

    @extend_schema(operation_id="submissions", tags=TAGS, parameters=[METHOD])
    def list(self, request: Request) -> Response:
        """Public submissions, and your own, the newest first, in pages."""
        return super().list(request)

    @extend_schema(operation_id="submission", tags=TAGS)
    def retrieve(self, request: Request, uuid: UUID) -> Response:
        """How far a submission is."""
        return super().retrieve(request, uuid)

    @extend_schema(
        operation_id="submit",
        tags=TAGS,
        parameters=[KEY],
        request={"multipart/form-data": s.UploadSerializer},
        responses={201: s.SubmissionSerializer, 401: ErrorSerializer, 422: ErrorSerializer},
    )
    def create(self, request: Request) -> Response:
        """Send candidates. 201 with the submission; 400 says what to change, and then nothing was
        stored.
        """
        form = s.UploadSerializer(data=request.data, context={"request": request})
        form.is_valid(raise_exception=True)
        entry = dict(form.validated_data)
        file = entry.pop("file")
        content = file.read()
        digest = idempotency.digest_of(entry, file.name, content)
        try:
            return idempotency.answered(
                request, digest, lambda: _taken(entry, file.name, content, request)
            )
        except submitting.SubmissionRefused as refused:
            raise Problem(refused.reason, refused.remedy, code="refused") from refused

    @extend_schema(operation_id="candidates", tags=TAGS, responses=s.CandidateSerializer(many=True))
    @action(detail=True, pagination_class=None)
    def candidates(self, request: Request, uuid: UUID) -> Response:
        """What became of each candidate on each GPU."""
        self._not_withdrawn()
        found = selectors.submission_page(uuid, request.user)
        rows = [_candidate(row, found.gpus) for row in found.candidates] if found else []
        return Response(s.CandidateSerializer(rows, many=True).data)

    @extend_schema(
        operation_id="builds", tags=TAGS, responses=s.CandidateBuildsSerializer(many=True)
    )
    @action(detail=True, pagination_class=None)
    def builds(self, request: Request, uuid: UUID) -> Response:
        """Static portability: what compilers say of each candidate, by architecture. Empty where
        the sources are not for you to see: compilers quote them.
        """
        submission = self._not_withdrawn()
        readable = Submission.objects.with_sources_for(request.user)
        if not readable.filter(pk=submission.pk).exists():
            return Response([])
        return Response(s.builds_of(submission))

    @extend_schema(
        operation_id="change_visibility",
        tags=TAGS,
        request=s.SeenBySerializer,
        responses={200: s.SubmissionSerializer, 403: ErrorSerializer},
    )
    def partial_update(self, request: Request, uuid: UUID) -> Response:
        """Publish your submission, or change otherwise who sees it and reads its sources."""
        submission = self._managed("change who sees")
        form = s.SeenBySerializer(data=request.data)
        form.is_valid(raise_exception=True)
        fields = ("visibility", "source_visibility")
        wanted = {name: getattr(submission, name) for name in fields} | form.validated_data
        try:
            submitting.change_visibility(submission, **wanted, by=request.user)
        except submitting.SubmissionRefused as refused:
            raise Problem(refused.reason, refused.remedy, code="refused") from refused
        submission.refresh_from_db()
        return Response(s.SubmissionSerializer(submission).data)

    @extend_schema(
        operation_id="cancel",
        tags=TAGS,
        request=None,
        responses={200: s.SubmissionSerializer, 403: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, uuid: UUID) -> Response:
        """Take back what of your submission is not judged yet; verdicts stay."""
        submission = self._managed("cancel")
        submitting.cancel(submission, request.user)
        return Response(s.SubmissionSerializer(submission).data)

    @extend_schema(
        operation_id="withdraw",
        tags=TAGS,
        request=s.WithdrawSerializer,
        responses={200: s.SubmissionSerializer, 400: ErrorSerializer, 403: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, uuid: UUID) -> Response:
        """Take your submission off every board; a tombstone stays. A moderator who withdraws
        another's says why.
        """
        submission = self._managed("withdraw")
        form = s.WithdrawSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        try:
            submitting.withdraw(submission, request.user, form.validated_data["reason"])
        except submitting.SubmissionRefused as refused:
            raise Problem(refused.reason, refused.remedy, code="refused") from refused
        return Response(s.SubmissionSerializer(submission).data)

    def _managed(self, what: str) -> Submission:
        """The submission, where whoever asks may do this to it."""
        submission: Submission = self.get_object()
        if not selectors.is_owner(submission, self.request.user):
            raise PermissionDenied(f"Only its submitter can {what} a submission.")
        return submission

    def _not_withdrawn(self) -> Submission:
        submission: Submission = self.get_object()
        if submission.withdrawn_at is not None:
            raise Problem(
                "This submission was withdrawn.",
                "ask its author; the tombstone stays so that links say what happened",
                code="withdrawn",
                status_code=status.HTTP_410_GONE,
            )
        return submission


class JobView(APIView):
    """A candidate waiting for, under or after judgement."""

    http_method_names = ["get", "head"]

    @extend_schema(operation_id="job", tags=TAGS, responses=s.JobSerializer)
    def get(self, request: Request, uuid: UUID) -> Response:
        found = selectors.job_page(uuid, request.user)
        if found is None:
            raise Problem(
                f"There is no job {uuid} here, or it is not public.",
                "check the uuid, or send the key of the account that it belongs to",
                code="not-found",
                status_code=status.HTTP_404_NOT_FOUND,
            )
        return Response(s.JobSerializer(found).data)


class QueueView(APIView):
    """Every GPU in service, with open jobs or boards."""

    http_method_names = ["get", "head"]

    @extend_schema(operation_id="queue", tags=TAGS, responses=s.QueueSerializer(many=True))
    def get(self, request: Request) -> Response:
        return Response(s.QueueSerializer(selectors.queues(), many=True).data)


def _taken(entry: dict, name: str, content: bytes, request: Request) -> dict:
    intake = read_upload(name, content, submitting.known_tasks())
    submission = submitting.accept(
        submitting.method_named(entry["method"], entry["kind"]),
        entry["label"],
        intake,
        request.user,
        entry["visibility"],
        source_visibility=entry["source_visibility"],
    )
    rendered = s.SubmissionSerializer(submission).data
    return {**rendered, "uuid": str(rendered["uuid"])}


def _candidate(row: selectors.CandidateRow, gpus: Sequence[str]) -> dict:
    pairs = zip(gpus, row.outcomes, strict=True)
    outcomes = [_outcome(gpu, outcome) for gpu, outcome in pairs if outcome is not None]
    return {"task": row.task, "round": row.round, "outcomes": outcomes}


def _outcome(gpu: str, outcome: selectors.Outcome) -> dict:
    names = ("state", "verdict", "speedup", "run", "job", "reason")
    return {"gpu": gpu, **{name: getattr(outcome, name) for name in names}}
