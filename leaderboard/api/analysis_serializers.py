"""Comparisons, portability, rounds and findings: every field is named here."""

from typing import Any

from rest_framework import serializers as s

from leaderboard.api.serializers import (
    CellSerializer,
    ChoiceSerializer,
    GpuSerializer,
    MethodSerializer,
    RecordedSerializer,
    interval,
)


class WordPairSerializer(s.Serializer):
    """A task as both methods ended there. `ratio`: first / second, above 1 the first is faster."""

    task = s.CharField(source="task.slug")
    category = s.CharField(source="task.category")
    first = s.SerializerMethodField()
    second = s.SerializerMethodField()
    first_speedup = s.SerializerMethodField()
    second_speedup = s.SerializerMethodField()
    ratio = s.FloatField(allow_null=True)

    def get_first(self, pair: Any) -> str:
        return str(pair.words[0])

    def get_second(self, pair: Any) -> str:
        return str(pair.words[1])

    def get_first_speedup(self, pair: Any) -> float | None:
        return pair.speedups[0].value if pair.speedups[0] else None

    def get_second_speedup(self, pair: Any) -> float | None:
        return pair.speedups[1].value if pair.speedups[1] else None


class OutcomeSerializer(s.Serializer):
    first = s.CharField()
    second = s.CharField()
    tasks = s.IntegerField()


class McNemarSerializer(s.Serializer):
    only_first = s.IntegerField()
    only_second = s.IntegerField()
    p = s.FloatField()


class SignTestSerializer(s.Serializer):
    ahead = s.IntegerField()
    behind = s.IntegerField()
    even = s.IntegerField()
    p = s.FloatField()


class SpeedSerializer(s.Serializer):
    pairs = s.IntegerField()
    ratio = interval(help_text="Geometric mean of first / second.")
    sign_test = SignTestSerializer(source="sign")


class StepSerializer(s.Serializer):
    """fast_p: `count` of the tasks reach a speedup of `at`; shares with their band."""

    at = s.FloatField()
    count = s.IntegerField()
    share = s.FloatField()
    low = s.FloatField()
    high = s.FloatField()


class CurveSerializer(s.Serializer):
    method = MethodSerializer()
    tasks = s.IntegerField()
    solved = s.IntegerField()
    steps = StepSerializer(many=True)


class CompareSerializer(s.Serializer):
    choice = ChoiceSerializer()
    first = MethodSerializer()
    second = MethodSerializer()
    correctness = s.CharField(help_text="The verdict on who solves more, in a sentence.")
    faster = s.CharField(help_text="The verdict on who is faster, in a sentence.")
    tasks = s.IntegerField()
    shared = s.IntegerField(help_text="Tasks judged for both.")
    outcomes = OutcomeSerializer(many=True)
    mcnemar = McNemarSerializer()
    speed = SpeedSerializer()
    pairs = WordPairSerializer(many=True)
    curves = CurveSerializer(many=True)


class OnDeviceSerializer(s.Serializer):
    gpu = s.CharField()
    cell = CellSerializer()
    speedup = interval()
    timed = s.IntegerField()
    reason = s.CharField(allow_blank=True)


class AcrossDevicesSerializer(s.Serializer):
    method = MethodSerializer()
    on = OnDeviceSerializer(many=True)


class DeviceSerializer(s.Serializer):
    gpu = GpuSerializer()
    tasks = s.IntegerField()


class EndedSerializer(s.Serializer):
    gpu = s.CharField()
    run = s.UUIDField()
    word = s.CharField()


class DisagreementSerializer(s.Serializer):
    method = s.CharField()
    task = s.CharField()
    among_gpus = s.BooleanField()
    passed = EndedSerializer(many=True)
    failed = EndedSerializer(many=True)


class CoefficientSerializer(s.Serializer):
    value = s.FloatField()
    interval = interval()


class AgreementSerializer(s.Serializer):
    n = s.IntegerField()
    spearman = CoefficientSerializer(allow_null=True)
    kendall = CoefficientSerializer(allow_null=True)


class DevicePairSerializer(s.Serializer):
    left = s.CharField(source="left.slug")
    right = s.CharField(source="right.slug")
    both = s.IntegerField()
    only_left = s.IntegerField()
    only_right = s.IntegerField()
    neither = s.IntegerField()
    kernels = AgreementSerializer(allow_null=True)
    methods = AgreementSerializer(allow_null=True)


class RatioSerializer(s.Serializer):
    method = s.CharField(source="method.slug")
    task = s.CharField(source="task.slug")
    ratio = s.FloatField(source="found.ratio", help_text="Largest over smallest speedup.")
    gpus = s.IntegerField(source="found.gpus")
    best_gpu = s.SerializerMethodField()
    worst_gpu = s.SerializerMethodField()

    def get_best_gpu(self, line: Any) -> str:
        return str(line.found.best[0].slug)

    def get_worst_gpu(self, line: Any) -> str:
        return str(line.found.worst[0].slug)


class RatioSummarySerializer(s.Serializer):
    n = s.IntegerField()
    median = s.FloatField()
    median_interval = interval()
    mean = s.FloatField()
    maximum = s.FloatField()
    above_two = s.IntegerField()


class BuildCellSerializer(s.Serializer):
    built = s.IntegerField()
    failed = s.IntegerField()
    untraced = s.IntegerField()
    spilling = s.IntegerField()


class BuildRowSerializer(s.Serializer):
    method = MethodSerializer()
    candidates = s.IntegerField()
    cells = BuildCellSerializer(many=True, help_text="In the order of `architectures`.")


class BuildsSerializer(s.Serializer):
    """What compiles for which architecture; says nothing about a verdict."""

    architectures = s.ListField(child=s.CharField())
    rows = BuildRowSerializer(many=True)
    tried = s.IntegerField()
    triton = s.ListField(child=s.CharField())


class PortabilitySerializer(s.Serializer):
    devices = DeviceSerializer(many=True)
    rows = AcrossDevicesSerializer(many=True)
    shared = s.IntegerField(help_text="Candidates judged on two devices or more.")
    disagreements = DisagreementSerializer(many=True)
    pairs = DevicePairSerializer(many=True)
    ratios = RatioSerializer(many=True)
    ratio_summary = RatioSummarySerializer(allow_null=True)
    recorded = RecordedSerializer(many=True)
    builds = BuildsSerializer(allow_null=True)


class RoundSummarySerializer(s.Serializer):
    number = s.IntegerField()
    offered = s.IntegerField()
    offered_correct = s.IntegerField()
    judged = s.IntegerField()
    correct = s.IntegerField()
    timed = s.IntegerField()
    geometric = s.FloatField(allow_null=True)
    arithmetic = s.FloatField(allow_null=True)
    speedup = interval()


class RatioSplitSerializer(s.Serializer):
    """after / before == real x composition, of geometric-mean speedups."""

    before = s.FloatField()
    after = s.FloatField()
    both = s.IntegerField()
    entered = s.IntegerField()
    left = s.IntegerField()
    real = s.FloatField(allow_null=True)
    composition = s.FloatField()


class RoundStepSerializer(s.Serializer):
    start = s.IntegerField()
    end = s.IntegerField()
    counts = s.DictField(child=s.IntegerField(), help_text="rescued, new, persistent, lost, ...")
    geometric = RatioSplitSerializer(allow_null=True)


class ChangeSerializer(s.Serializer):
    task = s.CharField()
    fate = s.CharField()
    before = s.UUIDField(allow_null=True)
    after = s.UUIDField(allow_null=True)
    ratio = s.FloatField(allow_null=True)


class MethodRoundsSerializer(s.Serializer):
    method = MethodSerializer()
    gpu = GpuSerializer()
    tasks = s.IntegerField()
    rounds = RoundSummarySerializer(many=True)
    steps = RoundStepSerializer(many=True)
    whole = RoundStepSerializer()
    changes = ChangeSerializer(many=True, help_text="Each task, from the first round to the last.")


class IndexRowSerializer(s.Serializer):
    method = MethodSerializer()
    rounds = s.IntegerField()
    first = RoundSummarySerializer()
    last = RoundSummarySerializer()
    whole = RoundStepSerializer()


class RoundsSerializer(s.Serializer):
    gpu = GpuSerializer()
    tasks = s.IntegerField()
    rows = IndexRowSerializer(many=True)


class ModelSerializer(s.Serializer):
    """A logistic model; shares are of the null deviance."""

    name = s.CharField()
    df = s.IntegerField()
    deviance = s.FloatField()
    explained = s.FloatField()
    chance = s.FloatField()
    bic = s.FloatField()


class LikelihoodStepSerializer(s.Serializer):
    added = s.CharField()
    to = s.CharField()
    ratio = s.FloatField()
    df = s.IntegerField()
    p = s.FloatField()


class AttributionSerializer(s.Serializer):
    """`reason` says why there is no fit, and is empty where there is one."""

    reason = s.CharField(allow_blank=True)
    trials = s.IntegerField(allow_null=True)
    successes = s.IntegerField(allow_null=True)
    models = ModelSerializer(many=True)
    steps = LikelihoodStepSerializer(many=True)


class SpeedsSerializer(s.Serializer):
    name = s.CharField()
    timed = s.IntegerField()
    slower = s.IntegerField(help_text="Below 1.0x.")
    slow = s.IntegerField()
    even = s.IntegerField()
    fast = s.IntegerField()
    share = interval(help_text="Of slower ones, Wilson's interval.")


class EndingsSerializer(s.Serializer):
    category = s.CharField()
    judged = s.IntegerField()
    words = s.DictField(child=s.IntegerField())


class RooflineSummarySerializer(s.Serializer):
    name = s.CharField()
    kernels = s.IntegerField()
    quarter = s.FloatField()
    median = s.FloatField()
    three_quarters = s.FloatField()
    best = s.FloatField()
    mean = s.FloatField()
    reference = s.FloatField()


class KernelSerializer(s.Serializer):
    method = s.CharField()
    task = s.CharField()
    category = s.CharField()
    run = s.UUIDField()
    cases = s.IntegerField()
    intensity = s.FloatField(help_text="FLOP per byte.")
    bound = s.CharField()
    share = s.FloatField(help_text="Of the roofline.")
    reference_share = s.FloatField()


class RooflineSerializer(s.Serializer):
    overall = RooflineSummarySerializer(allow_null=True)
    by_category = RooflineSummarySerializer(many=True)
    by_method = RooflineSummarySerializer(many=True)
    best = KernelSerializer(many=True)
    bandwidth = s.FloatField(allow_null=True, help_text="Bytes per second.")


class FindingsSerializer(s.Serializer):
    choice = ChoiceSerializer()
    judged = s.IntegerField()
    held = s.IntegerField()
    missing = s.IntegerField()
    correct = AttributionSerializer()
    called = AttributionSerializer()
    slower = SpeedsSerializer()
    slower_by_method = SpeedsSerializer(many=True)
    endings = EndingsSerializer(many=True)
    all_endings = EndingsSerializer()
    roofline = RooflineSerializer()


class PublishedTableSerializer(s.Serializer):
    slug = s.CharField()
    title = s.CharField()
    place = s.CharField()
    columns = s.ListField(child=s.CharField())
    rows = s.ListField(child=s.ListField(child=s.JSONField()))
    note = s.CharField(allow_blank=True)


class PublishedSerializer(s.Serializer):
    """A publication's own figures: never ranked with what is measured here."""

    slug = s.CharField()
    title = s.CharField()
    citation = s.CharField()
    url = s.CharField(allow_blank=True)
    licence = s.CharField(allow_blank=True)
    note = s.CharField(allow_blank=True)
    methods = s.ListField(child=s.CharField())
    tables = PublishedTableSerializer(many=True)
