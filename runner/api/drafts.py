"""Drafts over HTTP: send an upload, see what would come of it, confirm it once."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.parsers import FormParser, JSONParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from benchmark.api import ErrorSerializer, Problem
from benchmark.models import Draft, Gpu
from benchmark.models.entries import DraftQuerySet
from benchmark.throttles import ReadThrottle
from runner import drafting, submitting
from runner.api import serializers as s
from runner.api.views import MaySubmit, SubmissionViewSet
from runner.intake import limits, read_upload
from runner.throttling import UploadThrottle

TAGS = ["drafts"]


class DraftUploadSerializer(s.UploadSerializer):
    """A multipart upload that is looked at first."""

    round = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=limits.MAX_ROUND,
        help_text="Of everything in it that doesn't say its own round.",
    )


class RowSerializer(serializers.Serializer):
    """Something that was found, and what would come of it."""

    place = serializers.CharField()
    task = serializers.CharField()
    round = serializers.IntegerField()
    does = serializers.ChoiceField(
        [drafting.JUDGED, drafting.NOTHING, drafting.CLASH, drafting.CLAIMED, drafting.LOOSE]
    )
    notes = serializers.ListField(child=serializers.CharField())


class RefusedSerializer(s.RefusalSerializer):
    kind = serializers.CharField(help_text="unreadable, unknown task, or duplicate.")


class ProblemSerializer(serializers.Serializer):
    reason = serializers.CharField()
    remedy = serializers.CharField()


class DraftSerializer(serializers.Serializer):
    """An upload that was read, and what confirming it would do now."""

    uuid = serializers.UUIDField()
    url = serializers.CharField()
    method = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # shades Field.label
    visibility = serializers.CharField()
    source_visibility = serializers.CharField()
    submission = serializers.UUIDField(allow_null=True, help_text="Once confirmed.")
    found = RowSerializer(many=True)
    refused = RefusedSerializer(many=True)
    counts = serializers.DictField(child=serializers.IntegerField())
    judged_on = serializers.DictField(child=serializers.IntegerField())
    quota_left = serializers.DictField(child=serializers.IntegerField())
    adds_to = serializers.UUIDField(allow_null=True)
    needs_claimed_on = serializers.BooleanField()
    problem = ProblemSerializer(allow_null=True)


class ConfirmSerializer(serializers.Serializer):
    claimed_on = serializers.SlugField(
        required=False, help_text="The GPU, by slug, that claimed results were found on."
    )

    def validate_claimed_on(self, slug: str) -> Gpu:
        gpu = Gpu.objects.filter(slug=slug).first()
        if gpu is None:
            raise serializers.ValidationError(f"no GPU is called {slug!r}", "invalid_choice")
        return gpu


class DraftViewSet(viewsets.GenericViewSet[Draft]):
    """A draft is its sender's own; one sent without an account is for whoever has its address."""

    permission_classes = [MaySubmit]
    serializer_class = DraftSerializer
    parser_classes = [MultiPartParser, FormParser, JSONParser]
    pagination_class = None
    lookup_field = "uuid"
    lookup_value_converter = "uuid"
    permission_denied = SubmissionViewSet.permission_denied

    def get_queryset(self) -> DraftQuerySet:
        return Draft.objects.visible_to(self.request.user).select_related("submission")

    def get_throttles(self) -> list:
        return [UploadThrottle()] if self.action == "create" else [ReadThrottle()]

    @extend_schema(
        operation_id="draft_make",
        tags=TAGS,
        request={"multipart/form-data": DraftUploadSerializer},
        responses={201: DraftSerializer, 401: ErrorSerializer},
    )
    def create(self, request: Request) -> Response:
        """Dry run: read an upload and say what would come of it. Nothing is submitted."""
        form = DraftUploadSerializer(data=request.data, context={"request": request})
        form.is_valid(raise_exception=True)
        try:
            draft = _made(dict(form.validated_data), request.user)
        except submitting.SubmissionRefused as refused:
            raise Problem(refused.reason, refused.remedy, code="refused") from refused
        return Response(drafting.to_json(draft, request.user), status=status.HTTP_201_CREATED)

    @extend_schema(operation_id="draft", tags=TAGS, responses=DraftSerializer)
    def retrieve(self, request: Request, uuid: UUID) -> Response:
        """What confirming a draft would do, as things are now."""
        return Response(drafting.to_json(self.get_object(), request.user))

    @extend_schema(operation_id="draft_discard", tags=TAGS, responses={204: None})
    def destroy(self, request: Request, uuid: UUID) -> Response:
        """Forget a draft. What was confirmed stays."""
        draft = self.get_object()
        if draft.submission is None:
            draft.delete()
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        operation_id="draft_confirm",
        tags=TAGS,
        request=ConfirmSerializer,
        responses={201: s.SubmissionSerializer, 400: ErrorSerializer},
    )
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, uuid: UUID) -> Response:
        """Submit a draft, once: repeated, it answers with the same submission."""
        form = ConfirmSerializer(data=request.data)
        form.is_valid(raise_exception=True)
        try:
            submission = drafting.confirm(
                self.get_object(), request.user, form.validated_data.get("claimed_on")
            )
        except submitting.SubmissionRefused as refused:
            raise Problem(refused.reason, refused.remedy, code="refused") from refused
        return Response(s.SubmissionSerializer(submission).data, status=status.HTTP_201_CREATED)


def _made(entry: dict[str, Any], user: Any) -> Draft:
    file, round_ = entry.pop("file"), entry.pop("round", None)
    intake = read_upload(file.name, file.read(), submitting.known_tasks(), round_)
    return drafting.make(drafting.Entry(filename=file.name, **entry), intake, user)
