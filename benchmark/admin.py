"""Curation: tasks, methods, GPUs, submissions and audits. Results can be read and not edited."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest

from benchmark import aggregates
from benchmark.models import (
    Audit,
    Board,
    Candidate,
    Gpu,
    Measurement,
    Method,
    Run,
    Submission,
    Task,
    TaskVersion,
)


class ReadOnly:
    """Rows that admins look at: no adding, changing or deleting, whatever the permissions."""

    def has_add_permission(self, *_: Any) -> bool:
        return False

    def has_change_permission(self, *_: Any) -> bool:
        return False

    def has_delete_permission(self, *_: Any) -> bool:
        return False


class BumpsBoard:
    """What pages show changes with these rows, so cached pages are of an older generation."""

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)  # type: ignore[misc]
        Board.bump()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)  # type: ignore[misc]
        Board.bump()


class TaskVersionInline(ReadOnly, admin.TabularInline):
    model = TaskVersion
    fields = ("digest", "first_seen_at")
    readonly_fields = fields
    extra = 0


@admin.register(Task)
class TaskAdmin(BumpsBoard, admin.ModelAdmin):
    """Tasks come from the suite through `sync_tasks`; here they are looked at and retired, until
    the next `sync_tasks` brings back what the suite still has.
    """

    list_display = ("slug", "category", "difficulty", "interpretable", "short_digest", "retired_at")
    list_filter = (
        "category",
        "difficulty",
        "interpretable",
        ("retired_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("slug", "description")
    fields = (
        "slug", "category", "difficulty", "retired_at", "signature", "description", "tolerance",
        "differences", "dtypes", "delegates", "aliases", "interpretable", "digest", "cases",
        "reference_source", "plain_source",
    )  # fmt: skip
    readonly_fields = tuple(name for name in fields if name != "retired_at")
    inlines = (TaskVersionInline,)

    @admin.display(description="digest", ordering="digest")
    def short_digest(self, task: Task) -> str:
        return task.digest[:12]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Method)
class MethodAdmin(BumpsBoard, admin.ModelAdmin):
    list_display = ("name", "kind", "organisation", "submissions_count", "created_at")
    list_filter = ("kind",)
    search_fields = ("name", "slug", "organisation")
    prepopulated_fields = {"slug": ("name",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Method]:
        return super().get_queryset(request).annotate(submissions_count=Count("submissions"))

    @admin.display(description="submissions", ordering="submissions_count")
    def submissions_count(self, method: Any) -> int:
        return int(method.submissions_count)


@admin.register(Gpu)
class GpuAdmin(BumpsBoard, admin.ModelAdmin):
    list_display = ("name", "slug", "vendor", "architecture", "can_time", "is_judging")
    list_filter = ("is_judging", "can_time", "vendor")
    list_editable = ("is_judging",)
    search_fields = ("name", "slug", "architecture")

    def get_readonly_fields(self, request: HttpRequest, obj: Gpu | None = None) -> tuple[str, ...]:
        """A GPU's slug is the name of its queue, on which boards listen: given once."""
        return ("slug",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Submission)
class SubmissionAdmin(BumpsBoard, admin.ModelAdmin):
    """What was entered. Only its visibility and settings can be changed; actions do the rest."""

    list_display = (
        "method", "label", "visibility", "candidates_count", "submitted_by", "withdrawn_at",
        "created_at",
    )  # fmt: skip
    list_filter = ("visibility", ("withdrawn_at", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("method", "submitted_by")
    search_fields = ("uuid", "label", "method__name", "submitted_by__username")
    readonly_fields = (
        "uuid", "method", "label", "submitted_by", "notes", "recorded", "withdrawn_at",
        "created_at",
    )  # fmt: skip
    date_hierarchy = "created_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Submission]:
        return super().get_queryset(request).annotate(candidates_count=Count("candidates"))

    @admin.display(description="candidates", ordering="candidates_count")
    def candidates_count(self, submission: Any) -> int:
        return int(submission.candidates_count)

    def save_model(self, request: HttpRequest, obj: Submission, form: Any, change: bool) -> None:
        """Others may see it now, or nobody may: what counts for its method is chosen anew."""
        super().save_model(request, obj, form, change)
        aggregates.refresh_submission(obj)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Results are facts: a submission is withdrawn, which leaves a tombstone."""
        return False


@admin.register(Candidate)
class CandidateAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("task", "round", "submission", "source_id")
    list_filter = ("task__category", "round")
    list_select_related = ("task", "submission__method")
    search_fields = (
        "task__slug",
        "submission__label",
        "submission__method__name",
        "source__sha256",
    )


class MeasurementInline(ReadOnly, admin.TabularInline):
    model = Measurement
    fields = (
        "position", "case", "state", "verdict", "error", "tolerance", "candidate_ms",
        "reference_ms", "speedup", "own_share",
    )  # fmt: skip
    readonly_fields = fields
    extra = 0


@admin.register(Run)
class RunAdmin(ReadOnly, admin.ModelAdmin):
    """Facts: to correct one, judge again or audit it."""

    list_display = (
        "uuid", "task", "method", "gpu", "verdict", "speedup", "is_suspect", "origin", "created_at",
    )  # fmt: skip
    list_filter = (
        "verdict",
        "gpu",
        "origin",
        "is_suspect",
        "candidate__task__category",
        "created_at",
    )
    list_select_related = ("candidate__task", "candidate__submission__method", "gpu")
    search_fields = (
        "uuid", "candidate__task__slug", "candidate__submission__method__name",
        "candidate__source__sha256",
    )  # fmt: skip
    date_hierarchy = "created_at"
    show_full_result_count = False
    inlines = (MeasurementInline,)

    @admin.display(ordering="candidate__task__slug")
    def task(self, run: Run) -> str:
        return run.candidate.task.slug

    @admin.display(ordering="candidate__submission__method__name")
    def method(self, run: Run) -> str:
        return run.candidate.submission.method.name


@admin.register(Audit)
class AuditAdmin(admin.ModelAdmin):
    """Append-only: the newest audit of a run counts, and all of them are shown."""

    list_display = ("run", "verdict", "reviewer", "reason", "created_at")
    list_filter = ("verdict", "created_at")
    list_select_related = ("run", "reviewer")
    search_fields = ("run__uuid", "reason", "run__candidate__task__slug")
    fields = ("run", "verdict", "reason", "evidence")
    raw_id_fields = ("run",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Audit, form: Any, change: bool) -> None:
        """The reviewer is who is logged in, and nobody else."""
        obj.reviewer = request.user  # type: ignore[assignment]
        super().save_model(request, obj, form, change)
