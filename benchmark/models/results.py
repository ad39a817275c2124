"""What was found: runs (facts, written once), their measurements, and audits of them."""

import uuid
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import F, Q
from django.urls import reverse
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models.catalog import Gpu
from benchmark.models.entries import Candidate
from benchmark.models.fields import all_or_none, choices, one_of


class Immutable(Exception):  # noqa: N818  says what the row is
    """Somebody tried to change a row that is a fact."""


class RunQuerySet(models.QuerySet["Run"]):
    """Reads of runs. The methods chain; each is named for what it keeps."""

    def update(self, **fields: Any) -> int:
        raise Immutable("runs are facts: judge again, or audit them")

    def measured(self) -> "RunQuerySet":
        return self.filter(origin=vocabulary.MEASURED)

    def passed(self) -> "RunQuerySet":
        return self.filter(verdict=vocabulary.PASSED)

    def listed(self) -> "RunQuerySet":
        """Runs of submissions that lists and rankings may name."""
        return self.filter(
            candidate__submission__visibility=vocabulary.PUBLIC,
            candidate__submission__withdrawn_at__isnull=True,
        )

    def comparable(self) -> "RunQuerySet":
        """Judged against the task as it is now: runs of an earlier digest are stale."""
        return self.filter(
            task_digest=F("candidate__task__digest"), candidate__task__retired_at__isnull=True
        )

    def trusted(self) -> "RunQuerySet":
        """Not held back: no suspicion of the judge's own and no audit that rejects or suspects."""
        newest = Audit.objects.filter(run=models.OuterRef("pk")).order_by("-created_at", "-id")
        return self.annotate(audit_verdict=models.Subquery(newest.values("verdict")[:1])).filter(
            Q(audit_verdict=vocabulary.CLEAN) | Q(audit_verdict__isnull=True, is_suspect=False)
        )

    def latest(self) -> "RunQuerySet":  # type: ignore[override]  # the word of the contract
        """The newest run of each candidate on each GPU within this queryset."""
        newer = (
            self.model.objects.filter(
                candidate=models.OuterRef("candidate"),
                gpu=models.OuterRef("gpu"),
                origin=models.OuterRef("origin"),
            )
            .order_by("-created_at", "-id")
            .values("pk")[:1]
        )
        return self.filter(pk=models.Subquery(newer))


class Run(models.Model):
    """The finished judgement of a candidate on a GPU: a fact, written once, never edited."""

    uuid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    candidate = models.ForeignKey(Candidate, on_delete=models.CASCADE, related_name="runs")
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="runs")
    origin = models.CharField(
        max_length=16, choices=choices(vocabulary.ORIGINS), default=vocabulary.MEASURED
    )
    task_digest = models.CharField(max_length=64)
    judge_version = models.CharField(max_length=40)
    verdict = models.CharField(max_length=16, choices=choices(vocabulary.VERDICTS))
    stage = models.CharField(max_length=8, help_text="The stage that decided.")
    detail = models.TextField(blank=True)
    speedup = models.FloatField(null=True, blank=True)
    speedup_low = models.FloatField(null=True, blank=True)
    speedup_high = models.FloatField(null=True, blank=True)
    is_suspect = models.BooleanField(
        default=False, help_text="A cross-check failed: shown, not ranked, until audited."
    )
    findings = models.JSONField(default=list)
    kernels = models.JSONField(default=list)
    seconds = models.JSONField(default=dict, help_text="By stage.")
    environment = models.JSONField(default=dict)
    log_tail = models.TextField(blank=True)
    peak_memory_bytes = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["candidate", "gpu", "-created_at"], name="run_newest_first"),
            models.Index(fields=["gpu", "verdict"], name="run_by_gpu_and_verdict"),
        ]
        constraints = [
            one_of("origin", vocabulary.ORIGINS, "run_origin_is_known"),
            one_of("verdict", vocabulary.VERDICTS, "run_verdict_is_known"),
            one_of("stage", vocabulary.STAGES, "run_stage_is_known"),
            models.CheckConstraint(
                condition=all_or_none(["speedup", "speedup_low", "speedup_high"]),
                name="run_speedup_comes_with_its_interval",
            ),
            models.CheckConstraint(
                condition=Q(speedup__isnull=True) | Q(speedup__gt=0, speedup__isnull=False),
                name="run_speedup_is_positive",
            ),
            models.CheckConstraint(
                condition=Q(speedup__isnull=True)
                | Q(speedup_low__lte=F("speedup"), speedup_high__gte=F("speedup")),
                name="run_speedup_is_inside_its_interval",
            ),
            models.CheckConstraint(
                condition=Q(speedup__isnull=True)
                | Q(verdict__in=["passed", "unstable", "impossible"]),
                name="run_speedup_needs_a_correct_candidate",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.uuid}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write the fact once. A correction is a new run, or an audit of this one."""
        if not self._state.adding:
            raise Immutable(f"run {self.uuid} is a fact: judge again, or audit it")
        super().save(*args, **kwargs)

    def get_absolute_url(self) -> str:
        return reverse("leaderboard:run", args=[self.uuid])


class Measurement(models.Model):
    """What a run found on one case: errors always, times where the device can time.

    Errors are in the unit that `unit` names; times in milliseconds, `flops` in FLOP and `bytes` in
    bytes by the task's cost model.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="measurements")
    position = models.PositiveSmallIntegerField()
    case = models.CharField(max_length=120)
    kind = models.CharField(max_length=8)
    shape = models.CharField(max_length=300)
    dtype = models.CharField(max_length=16)
    family = models.CharField(max_length=40, blank=True)
    state = models.CharField(max_length=16)
    verdict = models.CharField(max_length=16, blank=True)
    detail = models.TextField(blank=True)
    error = models.FloatField(null=True)
    reference_error = models.FloatField(null=True)
    tolerance = models.FloatField(null=True)
    unit = models.CharField(max_length=80, blank=True)
    candidate_ms = models.FloatField(null=True)
    candidate_ms_low = models.FloatField(null=True)
    candidate_ms_high = models.FloatField(null=True)
    reference_ms = models.FloatField(null=True)
    reference_ms_low = models.FloatField(null=True)
    reference_ms_high = models.FloatField(null=True)
    speedup = models.FloatField(null=True)
    speedup_low = models.FloatField(null=True)
    speedup_high = models.FloatField(null=True)
    flops = models.FloatField(null=True)
    bytes = models.FloatField(null=True)
    own_share = models.FloatField(null=True, help_text="Device time in the candidate's kernels.")
    samples = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["run_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["run", "case"], name="measurement_is_unique_per_case"),
            one_of("kind", vocabulary.CASE_KINDS, "measurement_kind_is_known"),
            one_of("state", vocabulary.CASE_STATES, "measurement_state_is_known"),
            models.CheckConstraint(
                condition=all_or_none(["candidate_ms", "reference_ms", "speedup"]),
                name="measurement_times_come_in_pairs",
            ),
            models.CheckConstraint(
                condition=Q(candidate_ms__isnull=True)
                | Q(candidate_ms__gt=0, reference_ms__gt=0, speedup__gt=0),
                name="measurement_times_are_positive",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.case}"


class Audit(models.Model):
    """A reviewer's word on a run: append-only, the newest one counts."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="audits")
    verdict = models.CharField(max_length=16, choices=choices(vocabulary.AUDIT_VERDICTS))
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    reason = models.TextField(help_text="Shown to everybody on the run's page.")
    note = models.TextField(blank=True, help_text="More for everybody, below the reason.")
    evidence = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            one_of("verdict", vocabulary.AUDIT_VERDICTS, "audit_verdict_is_known"),
            models.CheckConstraint(condition=~Q(reason=""), name="audit_has_a_reason"),
        ]

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason[:60]}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Append. A second thought is a second audit."""
        if not self._state.adding:
            raise Immutable(f"audit {self.pk} is a record: add another one")
        # Derived tables depend on the models, so they are met when the models are there.
        from benchmark import aggregates

        with transaction.atomic():
            super().save(*args, **kwargs)
            Board.bump()
            aggregates.refresh_run(self.run)


class Board(models.Model):
    """One row: how often what pages show has changed. Cache keys carry it, never a timeout.

    `changed_at` grows by a second or more each time, so that a date in whole seconds, as HTTP has
    it, names one generation and no other; a burst of changes puts it into the future.
    """

    ROW = 1
    generation = models.PositiveBigIntegerField(default=0)
    changed_at = models.DateTimeField(default=timezone.now)
    lanes = models.JSONField(
        default=dict, help_text="How often the derived rows of each GPU and origin have changed."
    )

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(id=1), name="board_is_one_row")]

    def __str__(self) -> str:
        return f"generation {self.generation}"

    @classmethod
    def lock(cls) -> "Board":
        """The row, held until the transaction ends: who changes results does so in turn."""
        rows = Board.objects.select_for_update()
        row = rows.filter(pk=cls.ROW).first()
        if row is None:
            Board.objects.bulk_create([Board(pk=cls.ROW, generation=0)], ignore_conflicts=True)
            row = rows.get(pk=cls.ROW)
        return row

    @classmethod
    @transaction.atomic
    def bump(cls) -> None:
        """Say that results changed. Called inside the transaction that changes them."""
        row = cls.lock()
        row.generation += 1
        row.changed_at = max(timezone.now(), row.changed_at + timedelta(seconds=1))
        row.save()

    @classmethod
    @transaction.atomic
    def touch(cls, lanes: Iterable[tuple[int, str]]) -> None:
        """Say which (GPU, origin) have other derived rows now. Inside the transaction that writes
        them: what was read of other lanes before stays true.
        """
        row = cls.lock()
        for lane in {cls._lane(*lane) for lane in lanes}:
            row.lanes[lane] = row.lanes.get(lane, 0) + 1
        row.save(update_fields=["lanes"])

    def lane(self, gpu: int, origin: str) -> int:
        """The lane's version; 0 where nothing was ever derived."""
        return int(self.lanes.get(self._lane(gpu, origin), 0))

    @staticmethod
    def _lane(gpu: int, origin: str) -> str:
        return f"{gpu} {origin}"

    @classmethod
    def current(cls) -> int:
        return cls.objects.filter(pk=cls.ROW).values_list("generation", flat=True).first() or 0

    @classmethod
    def seen(cls) -> "Board":
        """The row as it is now; generation 0 on a site where nothing was ever recorded."""
        return cls.objects.filter(pk=cls.ROW).first() or cls(pk=cls.ROW)
