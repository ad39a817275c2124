"""What the API takes and says about submissions: explicit fields, nothing by default."""

from typing import Any

from rest_framework import serializers

from benchmark import vocabulary
from benchmark.models import Submission
from runner import submitting
from runner.intake.limits import MAX_UPLOAD_BYTES


class UploadSerializer(serializers.Serializer):
    """A multipart upload."""

    file = serializers.FileField(allow_empty_file=False, max_length=200)
    method = serializers.CharField(max_length=submitting.METHOD_LENGTH)
    label = serializers.CharField(  # type: ignore[assignment]  # shades Field.label
        max_length=submitting.LABEL_LENGTH, default="first"
    )
    kind = serializers.ChoiceField(list(vocabulary.METHOD_KINDS), default="model")
    visibility = serializers.ChoiceField(list(vocabulary.VISIBILITIES), default=vocabulary.PUBLIC)

    def validate_file(self, file: Any) -> Any:
        if file.size > MAX_UPLOAD_BYTES:
            limit = MAX_UPLOAD_BYTES // 2**20
            raise serializers.ValidationError(f"larger than {limit} MiB: send it in parts")
        return file


class SubmissionSerializer(serializers.ModelSerializer):
    """Where a submission stands: jobs by state, and what intake refused."""

    method = serializers.CharField(source="method.slug")
    url = serializers.SerializerMethodField()
    candidates = serializers.SerializerMethodField()
    jobs = serializers.SerializerMethodField()
    verdicts = serializers.SerializerMethodField()
    refusals = serializers.JSONField(source="notes")

    class Meta:
        model = Submission
        fields = (
            "uuid", "method", "label", "visibility", "created_at", "withdrawn_at", "url",
            "candidates", "jobs", "verdicts", "refusals",
        )  # fmt: skip
        read_only_fields = fields

    def get_url(self, submission: Submission) -> str:
        return f"/submissions/{submission.uuid}/"

    def get_candidates(self, submission: Submission) -> int:
        return submission.candidates.count()

    def get_jobs(self, submission: Submission) -> dict[str, int]:
        return submitting.progress(submission)

    def get_verdicts(self, submission: Submission) -> dict[str, int]:
        return submitting.verdicts(submission)
