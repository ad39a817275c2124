"""What the API takes and says about submissions: explicit fields, nothing by default."""

from typing import Any

from rest_framework import serializers

from benchmark import vocabulary
from benchmark.models import StaticBuild, Submission
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


class StaticBuildSerializer(serializers.ModelSerializer):
    """One source on one architecture; sizes in bytes, spills in 32-bit words per thread."""

    class Meta:
        model = StaticBuild
        fields = (
            "architecture", "state", "reason", "kernel_count", "registers", "spills",
            "shared_bytes", "shared_limit", "kernels", "traced_case", "triton_version",
            "created_at",
        )  # fmt: skip
        read_only_fields = fields


def builds_of(submission: Submission) -> list[dict[str, Any]]:
    """A row per candidate, by task and round, with its newest builds; two queries."""
    candidates = list(submission.candidates.select_related("task"))
    builds: dict[str, list[dict[str, Any]]] = {}
    for build in StaticBuild.objects.of(candidates).newest().order_by("architecture"):
        builds.setdefault(build.source_id, []).append(dict(StaticBuildSerializer(build).data))
    rows = [
        {
            "task": candidate.task.slug,
            "round": candidate.round,
            "source_sha256": candidate.source_id,
            "builds": builds.get(candidate.source_id, []),
        }
        for candidate in candidates
    ]
    return sorted(rows, key=lambda row: (row["task"], row["round"]))
