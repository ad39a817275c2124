"""What the API takes and says about submissions, jobs and queues: explicit fields only."""

from typing import Any

from rest_framework import serializers

from benchmark import vocabulary
from benchmark.curation import REASON_LENGTH
from benchmark.models import StaticBuild, Submission
from runner import submitting
from runner.intake.limits import MAX_UPLOAD_BYTES


class UploadSerializer(serializers.Serializer):
    """A multipart upload."""

    file = serializers.FileField(
        allow_empty_file=False,
        max_length=200,
        help_text="predictions.jsonl, a zip of .py files, or one .py named like its task.",
    )
    method = serializers.CharField(
        max_length=submitting.METHOD_LENGTH, help_text="Who or what wrote the kernels."
    )
    label = serializers.CharField(  # type: ignore[assignment]  # shades Field.label
        max_length=submitting.LABEL_LENGTH,
        default="first",
        help_text="Names this set among the method's others.",
    )
    kind = serializers.ChoiceField(list(vocabulary.METHOD_KINDS), default="model")
    visibility = serializers.ChoiceField(list(vocabulary.VISIBILITIES), default=vocabulary.PUBLIC)
    source_visibility = serializers.ChoiceField(
        list(vocabulary.SOURCE_VISIBILITIES),
        default=vocabulary.SHOWN,
        help_text="Who may read the sources.",
    )

    def validate_file(self, file: Any) -> Any:
        if file.size > MAX_UPLOAD_BYTES:
            limit = MAX_UPLOAD_BYTES // 2**20
            raise serializers.ValidationError(f"larger than {limit} MiB", code="too_large")
        return file

    def validate_visibility(self, visibility: str) -> str:
        user = self.context["request"].user
        if visibility == vocabulary.PRIVATE and not user.is_authenticated:
            raise serializers.ValidationError(
                "Without an account nobody could open a private submission: send it as unlisted, "
                "or with a key."
            )
        return visibility


class SeenBySerializer(serializers.Serializer):
    """Who sees a submission and who reads its sources; what is left out stays as it is."""

    visibility = serializers.ChoiceField(list(vocabulary.VISIBILITIES), required=False)
    source_visibility = serializers.ChoiceField(
        list(vocabulary.SOURCE_VISIBILITIES), required=False
    )


class RefusalSerializer(serializers.Serializer):
    """What intake left out or changed: where in the upload, why, and what to do."""

    place = serializers.CharField()
    reason = serializers.CharField()
    remedy = serializers.CharField(allow_blank=True)


class ListedSubmissionSerializer(serializers.ModelSerializer):
    """A submission of the list."""

    method = serializers.CharField(source="method.slug")
    url = serializers.CharField(source="get_absolute_url")
    candidates = serializers.IntegerField(source="candidate_count")

    class Meta:
        model = Submission
        fields = ("uuid", "method", "label", "visibility", "created_at", "url", "candidates")
        read_only_fields = fields


class SubmissionSerializer(serializers.ModelSerializer):
    """Where a submission stands: jobs by state, and what intake refused."""

    method = serializers.CharField(source="method.slug")
    url = serializers.CharField(source="get_absolute_url")
    candidates = serializers.SerializerMethodField()
    jobs = serializers.SerializerMethodField(help_text="How many stand in each state.")
    verdicts = serializers.SerializerMethodField(help_text="How many jobs ended in each verdict.")
    refusals = serializers.SerializerMethodField()

    class Meta:
        model = Submission
        fields = (
            "uuid", "method", "label", "visibility", "created_at", "withdrawn_at", "url",
            "candidates", "jobs", "verdicts", "refusals",
        )  # fmt: skip
        read_only_fields = fields

    def get_candidates(self, submission: Submission) -> int:
        return submission.candidates.count()

    def get_jobs(self, submission: Submission) -> dict[str, int]:
        return submitting.progress(submission)

    def get_verdicts(self, submission: Submission) -> dict[str, int]:
        return submitting.verdicts(submission)

    def get_refusals(self, submission: Submission) -> list[dict[str, str]]:
        """None of a withdrawn submission's: the tombstone says that it was, no more."""
        return [] if submission.withdrawn_at else list(submission.notes)


class WithdrawSerializer(serializers.Serializer):
    """Why, for the history: needed of whoever withdraws another's submission."""

    reason = serializers.CharField(max_length=REASON_LENGTH, default="", allow_blank=True)


class CandidateOutcomeSerializer(serializers.Serializer):
    gpu = serializers.CharField()
    state = serializers.ChoiceField(list(vocabulary.JOB_STATES))
    verdict = serializers.CharField(allow_blank=True)
    speedup = serializers.FloatField(allow_null=True)
    run = serializers.UUIDField(allow_null=True)
    job = serializers.UUIDField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)


class CandidateSerializer(serializers.Serializer):
    """A candidate and what became of it on each GPU."""

    task = serializers.CharField()
    round = serializers.IntegerField()
    outcomes = CandidateOutcomeSerializer(many=True)


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


class CandidateBuildsSerializer(serializers.Serializer):
    """What compilers say of a candidate, by architecture."""

    task = serializers.CharField()
    round = serializers.IntegerField()
    source_sha256 = serializers.CharField()
    builds = StaticBuildSerializer(many=True)


class JobSerializer(serializers.Serializer):
    """A candidate waiting for, under or after judgement on a GPU."""

    uuid = serializers.UUIDField()
    submission = serializers.UUIDField()
    task = serializers.CharField()
    method = serializers.CharField()
    gpu = serializers.CharField()
    state = serializers.ChoiceField(list(vocabulary.JOB_STATES))
    meaning = serializers.CharField()
    attempt = serializers.IntegerField()
    stage = serializers.CharField(allow_blank=True)
    steps_done = serializers.IntegerField()
    steps_total = serializers.IntegerField()
    reason = serializers.CharField(allow_blank=True)
    ahead = serializers.IntegerField(allow_null=True, help_text="Jobs that wait longer, at most.")
    run = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class EstimateSerializer(serializers.Serializer):
    """When a job that is asked for now would be judged: jobs ahead times the median, by at_once."""

    ahead = serializers.IntegerField(help_text="Jobs that wait or run.")
    boards = serializers.IntegerField(help_text="That take jobs now.")
    at_once = serializers.IntegerField(help_text="Jobs that these boards have in hand at a time.")
    median_seconds = serializers.FloatField(help_text="Of a judgement.")
    measured = serializers.IntegerField(help_text="Judgements that the median is of.")
    wait = serializers.SerializerMethodField(help_text="Seconds.")

    def get_wait(self, estimate: Any) -> float:
        return estimate.wait.total_seconds()


class QueueSerializer(serializers.Serializer):
    """A GPU's queue: counts only, as whose jobs wait is nobody's business."""

    gpu = serializers.CharField(source="slug")
    name = serializers.CharField(source="gpu")
    is_judging = serializers.BooleanField()
    can_time = serializers.BooleanField()
    queued = serializers.IntegerField()
    running = serializers.IntegerField()
    oldest = serializers.DateTimeField(allow_null=True)
    set_aside = serializers.IntegerField(help_text="Jobs that failed too often, for us to look at.")
    devices = serializers.IntegerField(help_text="Boards heard of lately.")
    serving = serializers.IntegerField(help_text="Of those, boards that take jobs.")
    estimate = EstimateSerializer(allow_null=True)
    median_wait = serializers.SerializerMethodField(help_text="Seconds.")

    def get_median_wait(self, row: Any) -> float | None:
        return row.median_wait.total_seconds() if row.median_wait else None


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
