"""Runs, to look at and to judge by moderators; and the verdicts."""

from types import MappingProxyType
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from benchmark import curation, vocabulary
from benchmark.admin.base import ReadOnly
from benchmark.admin.steps import Step, Steps, ask
from benchmark.models import Audit, Measurement, Run


class MeasurementInline(ReadOnly, admin.TabularInline):
    model = Measurement
    fields = (
        "position", "case", "state", "verdict", "error", "tolerance", "candidate_ms",
        "reference_ms", "speedup", "own_share",
    )  # fmt: skip
    readonly_fields = fields
    extra = 0


class AuditInline(ReadOnly, admin.TabularInline):
    model = Audit
    fields = ("verdict", "reviewer", "reason", "note", "evidence", "created_at")
    readonly_fields = fields
    extra = 0
    verbose_name_plural = "verdicts, the newest first: it counts"


class QueueFilter(admin.SimpleListFilter):
    """The audit queue: `?queue=waiting`."""

    title = "audit queue"
    parameter_name = "queue"
    queues = MappingProxyType(
        {
            "waiting": curation.waiting,
            "suspect": curation.suspected,
            "held": curation.held,
        }
    )

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("waiting", "waits for a moderator"),
            ("suspect", "suspect"),
            ("held", "held: new records"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        queue = self.queues.get(self.value() or "")
        return queryset.filter(pk__in=queue().order_by().values("pk")) if queue else queryset


class VerdictForm(forms.Form):
    verdict = forms.ChoiceField(
        choices=[
            (word, f"{word}: {meaning}")
            for word, meaning in vocabulary.AUDIT_VERDICTS.items()
            if word != vocabulary.HELD  # that is what waits, and no answer
        ],
        widget=forms.RadioSelect,
    )
    reason = forms.CharField(
        max_length=500,
        widget=forms.TextInput(attrs={"size": 80}),
        help_text="One sentence, shown to everybody on the run's page.",
    )
    note = forms.CharField(
        label="Public note",
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        help_text="More for everybody: what was found, what its author can do.",
    )
    evidence = forms.CharField(
        required=False,
        max_length=8000,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        help_text="For moderators: kept with the verdict.",
    )


@admin.register(Run)
class RunAdmin(ReadOnly, Steps):
    """Facts: to correct one, judge again or audit it."""

    list_display = (
        "short_uuid", "task", "method", "gpu", "verdict", "times", "is_suspect", "review", "origin",
        "created_at",
    )  # fmt: skip
    list_filter = (
        QueueFilter, "verdict", "gpu", "origin", "is_suspect", "judge_version",
        "candidate__task__category", "created_at",
    )  # fmt: skip
    list_select_related = ("candidate__task", "candidate__submission__method", "gpu")
    search_fields = (
        "uuid", "candidate__task__slug", "candidate__submission__method__name",
        "candidate__source__sha256",
    )  # fmt: skip
    date_hierarchy = "created_at"
    show_full_result_count = False
    inlines = (AuditInline, MeasurementInline)
    actions = ("give_verdict",)
    readonly_fields = ("method", "task")

    def get_fields(self, request: HttpRequest, obj: Run | None = None) -> Any:
        """Who and what for first; the other columns name them by number."""
        return ["method", "task", *(field.name for field in Run._meta.fields if field.editable)]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        return super().get_queryset(request).annotate(newest_verdict=curation.NEWEST_VERDICT)

    @admin.display(description="run", ordering="uuid")
    def short_uuid(self, run: Run) -> str:
        return str(run.uuid)[:8]

    @admin.display(description="speedup", ordering="speedup")
    def times(self, run: Run) -> str:
        return "none" if run.speedup is None else f"{run.speedup:.3g}x"

    @admin.display(ordering="candidate__task__slug")
    def task(self, run: Run) -> str:
        return run.candidate.task.slug

    @admin.display(ordering="candidate__submission__method__name")
    def method(self, run: Run) -> str:
        return run.candidate.submission.method.name

    def review(self, run: Any) -> str:
        return run.newest_verdict or ("suspect" if run.is_suspect else "none")

    def has_review_permission(self, request: HttpRequest) -> bool:
        """Who may append an audit may do it here."""
        return request.user.has_perm("benchmark.add_audit")

    @admin.action(description="Give the selected runs a verdict…", permissions=["review"])
    def give_verdict(self, request: HttpRequest, runs: QuerySet[Run]) -> HttpResponse | None:
        step = Step(
            "Give a verdict",
            "It is appended to each run's audit trail, which everybody can read; earlier verdicts "
            "stay. The newest counts: clean is ranked, suspect is held back, cheat counts as "
            "failed, judge-bug and withdrawn let the method's run before this one stand in.",
            "Append the verdict",
            VerdictForm,
            note=_facts,
        )

        def append(rows: list[Run], data: dict[str, Any]) -> str:
            done = curation.review(rows, request.user, **data)
            same = len(rows) - done
            said = f" {same} had it already." if same else ""
            return f"{done} runs are {data['verdict']} now.{said}"

        chosen = runs.select_related("candidate__submission__method", "candidate__task", "gpu")
        return ask(self, request, chosen, step, append)


@admin.register(Audit)
class AuditAdmin(admin.ModelAdmin):
    """Append-only: the newest audit of a run counts, and all of them are shown."""

    list_display = ("run", "verdict", "reviewer", "reason", "created_at")
    list_filter = ("verdict", "created_at")
    list_select_related = ("run", "reviewer")
    search_fields = ("run__uuid", "reason", "run__candidate__task__slug")
    fields = ("run", "verdict", "reason", "note", "evidence")
    raw_id_fields = ("run",)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Audit, form: Any, change: bool) -> None:
        """The reviewer is who is logged in, and nobody else."""
        obj.reviewer = request.user  # type: ignore[assignment]
        super().save_model(request, obj, form, change)
        curation.log(request.user, [obj.run], f"Verdict {obj.verdict}: {obj.reason}")


def _facts(run: Any) -> str:
    """What a moderator wants to see of a run in a line."""
    speedup = f", {run.speedup:.3g}x" if run.speedup is not None else ""
    method = run.candidate.submission.method
    suspected = ", suspected by the judge" if run.is_suspect else ""
    newest = run.newest_verdict or "no verdict so far"
    task = run.candidate.task.slug
    return f"{task}, {method}, {run.gpu}: {run.verdict}{speedup}{suspected}; {newest}"
