"""What is said of frozen rows: every field is named here, so that nothing gets out by default."""

from typing import Any

from rest_framework import serializers as s

from benchmark import vocabulary
from leaderboard.figures import Interval

WORDS = "fast, even, slow, correct, or why it does not count"


class IntervalSerializer(s.Serializer):
    """A value with its 95 % interval; ratios for speedups (reference time / candidate time)."""

    value = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()


def interval(**more: Any) -> IntervalSerializer:
    return IntervalSerializer(allow_null=True, **more)


class GpuSerializer(s.Serializer):
    slug = s.CharField()
    name = s.CharField()
    architecture = s.CharField(allow_blank=True)
    can_time = s.BooleanField(help_text="False: correctness only, never a speedup.")
    runs = s.IntegerField(help_text="Listed runs on it.")


class MethodSerializer(s.Serializer):
    slug = s.CharField()
    name = s.CharField()
    kind = s.CharField()
    organisation = s.CharField(allow_blank=True)


class ChoiceSerializer(s.Serializer):
    """What an answer is about: the query string with its defaults filled in."""

    gpu = s.CharField(source="gpu.slug")
    category = s.CharField(allow_blank=True)
    dtype = s.CharField(allow_blank=True)
    difficulty = s.IntegerField(allow_null=True)
    round = s.IntegerField(allow_null=True, help_text="null: the final round.")
    lane = s.ChoiceField(list(vocabulary.ORIGINS))
    baseline = s.SerializerMethodField()

    def get_baseline(self, choice: Any) -> str:
        return vocabulary.BASELINE if choice.gpu.can_time else ""


class FunnelSerializer(s.Serializer):
    """Counts of tasks: of `tasks` asked, how many came how far."""

    tasks = s.IntegerField()
    judged = s.IntegerField()
    loaded = s.IntegerField()
    called = s.IntegerField()
    correct = s.IntegerField()
    faster = s.IntegerField(allow_null=True, help_text="null on a device that can't time.")


class StandingSerializer(s.Serializer):
    rank = s.IntegerField()
    rank_low = s.IntegerField(help_text="Ends of the 95 % interval of the rank.")
    rank_high = s.IntegerField()
    group = s.IntegerField(help_text="Methods of one group can't be told apart from its first.")
    is_tied = s.BooleanField()
    method = MethodSerializer()
    funnel = FunnelSerializer()
    speedup = interval(help_text="Geometric mean over the `timed` solved tasks.")
    timed = s.IntegerField()


class UnrankedSerializer(s.Serializer):
    method = MethodSerializer()
    reason = s.CharField()


class RecordedSerializer(s.Serializer):
    """Results that this site's judge measured elsewhere."""

    date = s.CharField(allow_blank=True)
    hardware = s.CharField(allow_blank=True)
    judge = s.CharField(allow_blank=True)
    predictions = s.CharField(allow_blank=True)
    results = s.IntegerField()


class LeaderboardSerializer(s.Serializer):
    choice = ChoiceSerializer()
    gpu = GpuSerializer()
    tasks = s.IntegerField(help_text="n: every method's denominator.")
    published = s.IntegerField(allow_null=True, help_text="Tasks of the published benchmark.")
    standings = StandingSerializer(many=True)
    unranked = UnrankedSerializer(many=True)
    recorded = RecordedSerializer(many=True)


class CellSerializer(s.Serializer):
    state = s.ChoiceField(["counted", "not-attempted", "not-applicable"])
    correct = s.IntegerField()
    tasks = s.IntegerField()
    judged = s.IntegerField()


class CategorySerializer(s.Serializer):
    slug = s.CharField()
    label = s.CharField()  # type: ignore[assignment]  # shades Field.label
    tasks = s.IntegerField()
    published = s.IntegerField()
    is_small = s.BooleanField(help_text="Fewer than six tasks: a single one moves every number.")


class HeatRowSerializer(s.Serializer):
    method = MethodSerializer()
    cells = CellSerializer(many=True, help_text="In the order of `categories`.")


class CategoriesSerializer(s.Serializer):
    choice = ChoiceSerializer()
    categories = CategorySerializer(many=True)
    rows = HeatRowSerializer(many=True)


class TaskSummarySerializer(s.Serializer):
    slug = s.CharField(source="task.slug")
    category = s.CharField(source="task.category")
    difficulty = s.IntegerField(source="task.difficulty")
    dtypes = s.ListField(child=s.CharField(), source="task.dtypes")
    interpretable = s.BooleanField(source="task.interpretable")
    solved = s.IntegerField(help_text="Methods that solve it, of `judged`.")
    judged = s.IntegerField()
    best = interval()
    best_method = MethodSerializer(allow_null=True)
    best_run = s.UUIDField(allow_null=True)


class CategoryPageSerializer(s.Serializer):
    category = s.CharField()
    label = s.CharField()  # type: ignore[assignment]  # shades Field.label
    leaderboard = LeaderboardSerializer()
    tasks = TaskSummarySerializer(many=True)


class CaseSerializer(s.Serializer):
    name = s.CharField()
    kind = s.CharField()
    dtype = s.CharField()
    family = s.CharField(allow_blank=True)
    shape = s.CharField(allow_blank=True)


class ResultSerializer(s.Serializer):
    """The run that counts for a method on a task and GPU."""

    run = s.UUIDField()
    round = s.IntegerField()
    verdict = s.ChoiceField(list(vocabulary.VERDICTS))
    stage = s.ChoiceField(list(vocabulary.STAGES))
    state = s.ChoiceField(["counted", "stale", "suspect", "rejected"])
    word = s.CharField(help_text=WORDS)
    speedup = s.SerializerMethodField()

    def get_speedup(self, result: Any) -> dict[str, float] | None:
        """Of what counts only: pages show no speedup of what is held back."""
        return speed(result.speedup if result.is_solved else None)


def speed(found: Interval | None) -> dict[str, float] | None:
    return None if found is None else dict(IntervalSerializer(found).data)


class OnGpuResultSerializer(s.Serializer):
    gpu = s.CharField()
    result = ResultSerializer(allow_null=True, help_text="null: not attempted.")


class MatrixRowSerializer(s.Serializer):
    method = MethodSerializer()
    on = OnGpuResultSerializer(many=True)


class RunLineSerializer(s.Serializer):
    uuid = s.UUIDField()
    task = s.CharField()
    method = s.CharField(source="method_slug")
    gpu = s.CharField(help_text="The GPU's name.")
    verdict = s.ChoiceField(list(vocabulary.VERDICTS))
    word = s.CharField(help_text=WORDS)
    speedup = interval()
    round = s.IntegerField()
    created_at = s.DateTimeField()


class TaskSerializer(s.Serializer):
    """A task's contract, who solved it where, and the fastest trusted runs."""

    slug = s.CharField()
    category = s.CharField()
    difficulty = s.IntegerField()
    dtypes = s.ListField(child=s.CharField())
    signature = s.CharField()
    description = s.CharField()
    tolerance = s.CharField(allow_blank=True)
    differences = s.ListField(child=s.CharField(), help_text="From the published contract.")
    delegates = s.ListField(child=s.CharField(), help_text="aten operators a library may do.")
    aliases = s.ListField(child=s.CharField())
    cases = CaseSerializer(many=True)
    reference_source = s.CharField()
    plain_source = s.CharField(allow_blank=True)
    digest = s.CharField()
    interpretable = s.BooleanField()
    is_retired = s.BooleanField()
    versions = s.IntegerField()


class TaskPageSerializer(s.Serializer):
    task = TaskSerializer()
    matrix = MatrixRowSerializer(many=True)
    best = RunLineSerializer(many=True)


class MethodLineSerializer(s.Serializer):
    """A method of the list, with its place in the choice or why it has none."""

    slug = s.CharField(source="method.slug")
    name = s.CharField(source="method.name")
    kind = s.CharField(source="method.kind")
    organisation = s.CharField(source="method.organisation", allow_blank=True)
    standing = StandingSerializer(allow_null=True)
    reason = s.CharField(allow_blank=True)


class SubmissionLineSerializer(s.Serializer):
    uuid = s.UUIDField()
    label = s.CharField()  # type: ignore[assignment]  # shades Field.label
    candidates = s.IntegerField()
    created_at = s.DateTimeField()
    recorded = RecordedSerializer(allow_null=True)


class CardSerializer(s.Serializer):
    method = MethodSerializer()
    url = s.CharField(allow_blank=True)
    description = s.CharField(allow_blank=True)
    submissions = SubmissionLineSerializer(many=True)
    claimed = s.IntegerField(help_text="Runs in the lane of claimed results.")
    published = s.IntegerField()


class OnGpuSerializer(s.Serializer):
    gpu = GpuSerializer()
    funnel = FunnelSerializer()
    speedup = interval()
    timed = s.IntegerField()
    held_back = s.IntegerField()
    stale = s.IntegerField()
    by_category = CellSerializer(many=True, help_text="In the order of /categories/.")
    failures = s.DictField(child=s.IntegerField(), help_text="Tasks by verdict.")


class RoundRowSerializer(s.Serializer):
    gpu = s.CharField(source="gpu.slug")
    round = s.IntegerField()
    judged = s.IntegerField()
    correct = s.IntegerField()
    geometric_mean = s.FloatField(allow_null=True)
    timed = s.IntegerField()


class PointSerializer(s.Serializer):
    submission = s.UUIDField()
    label = s.CharField()  # type: ignore[assignment]  # shades Field.label
    at = s.DateTimeField()
    entered = s.IntegerField()
    judged = s.IntegerField()
    solved = s.IntegerField()
    geometric_mean = s.FloatField(allow_null=True)
    timed = s.IntegerField()
    stale = s.IntegerField()
    judges = s.ListField(child=s.CharField())


class MarkSerializer(s.Serializer):
    at = s.DateTimeField()
    kind = s.CharField()
    text = s.CharField()


class HistorySerializer(s.Serializer):
    gpu = s.CharField(source="gpu.slug")
    points = PointSerializer(many=True)
    marks = MarkSerializer(many=True)


class MethodPageSerializer(s.Serializer):
    card = CardSerializer()
    on_gpus = OnGpuSerializer(many=True)
    rounds = RoundRowSerializer(many=True)
    histories = HistorySerializer(many=True)


class MeasurementSerializer(s.Serializer):
    """A case: errors in `unit`, times in milliseconds; null where nothing was measured."""

    case = s.CharField()
    kind = s.ChoiceField(list(vocabulary.CASE_KINDS))
    shape = s.CharField()
    dtype = s.CharField()
    family = s.CharField(allow_blank=True)
    state = s.ChoiceField(list(vocabulary.CASE_STATES))
    verdict = s.CharField(allow_blank=True)
    detail = s.CharField(allow_blank=True)
    error = s.FloatField(allow_null=True)
    reference_error = s.FloatField(allow_null=True)
    tolerance = s.FloatField(allow_null=True)
    unit = s.CharField(allow_blank=True)
    candidate_ms = s.FloatField(allow_null=True)
    candidate_interval = interval()
    reference_ms = s.FloatField(allow_null=True)
    reference_interval = interval()
    speedup = s.FloatField(allow_null=True)
    speedup_interval = interval()
    tflops = s.FloatField(allow_null=True)
    gbytes = s.FloatField(allow_null=True, help_text="GB/s by the task's cost model.")
    own_share = s.FloatField(allow_null=True)
    samples = s.IntegerField(allow_null=True)


class AuditSerializer(s.Serializer):
    verdict = s.ChoiceField(list(vocabulary.AUDIT_VERDICTS))
    meaning = s.CharField()
    reason = s.CharField()
    created_at = s.DateTimeField()


class StaticRowSerializer(s.Serializer):
    architecture = s.CharField(source="architecture.slug")
    word = s.CharField()
    reason = s.CharField(allow_blank=True)
    kernel_count = s.IntegerField()
    registers = s.IntegerField(allow_null=True)
    spills = s.IntegerField(allow_null=True)
    shared_bytes = s.IntegerField(allow_null=True)
    shared_limit = s.IntegerField()


class RunSerializer(s.Serializer):
    """One judgement with everything that was found."""

    uuid = s.UUIDField()
    task = s.CharField()
    category = s.CharField()
    method = s.CharField(source="method_slug")
    submission = s.UUIDField()
    label = s.CharField()  # type: ignore[assignment]  # shades Field.label
    gpu = s.CharField(source="gpu_slug")
    gpu_name = s.CharField(source="gpu")
    architecture = s.CharField(allow_blank=True)
    can_time = s.BooleanField()
    round = s.IntegerField()
    lane = s.CharField(source="origin")
    verdict = s.ChoiceField(list(vocabulary.VERDICTS))
    meaning = s.CharField()
    word = s.CharField(help_text=WORDS)
    state = s.CharField()
    stage = s.CharField()
    detail = s.CharField(allow_blank=True)
    speedup = interval()
    task_digest = s.CharField()
    judge_version = s.CharField()
    source_sha256 = s.CharField()
    source = s.CharField(  # type: ignore[assignment]  # shades Field.source
        allow_blank=True, help_text="Empty where it is not for you to see."
    )
    findings = s.ListField(child=s.DictField())
    kernels = s.ListField(child=s.DictField())
    seconds = s.DictField(child=s.FloatField(allow_null=True), help_text="By stage.")
    environment = s.DictField(child=s.JSONField())
    log_tail = s.CharField(allow_blank=True)
    peak_memory_bytes = s.IntegerField(allow_null=True)
    created_at = s.DateTimeField()
    cases = MeasurementSerializer(many=True, source="measurements")
    audits = AuditSerializer(many=True)
    recorded = RecordedSerializer(allow_null=True)


class RunPageSerializer(s.Serializer):
    run = RunSerializer()
    builds = StaticRowSerializer(many=True)


class ListedRunSerializer(s.Serializer):
    """A run of the list; `state` says whether it may count."""

    uuid = s.UUIDField()
    task = s.CharField()
    category = s.CharField()
    method = s.CharField()
    submission = s.UUIDField()
    gpu = s.CharField()
    round = s.IntegerField()
    lane = s.CharField()
    verdict = s.ChoiceField(list(vocabulary.VERDICTS))
    word = s.CharField(help_text=WORDS)
    state = s.CharField()
    stage = s.CharField()
    speedup = interval()
    judge_version = s.CharField()
    task_digest = s.CharField()
    created_at = s.DateTimeField()
