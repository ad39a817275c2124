"""Submissions, candidates, and accounts that may not submit."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse

from benchmark import aggregates, curation, records
from benchmark.admin.base import BumpsBoard, ReadOnly
from benchmark.admin.steps import Step, Steps, ask
from benchmark.models import Ban, Candidate, Submission


@admin.register(Submission)
class SubmissionAdmin(BumpsBoard, Steps):
    """What was entered. Only its visibility and settings can be changed; actions do the rest."""

    list_display = (
        "method", "label", "visibility", "candidates_count", "submitted_by", "withdrawn_at",
        "created_at",
    )  # fmt: skip
    list_filter = ("visibility", ("withdrawn_at", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("method", "submitted_by")
    search_fields = ("uuid", "label", "method__name", "submitted_by__username")
    readonly_fields = (
        "uuid", "method", "label", "submitted_by", "notes", "recorded", "withdrawn_at", "told_at",
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
        visibility = obj.visibility
        if "visibility" in form.changed_data:
            obj.visibility = form.initial["visibility"]
        super().save_model(request, obj, form, change)
        if visibility != obj.visibility:
            held = records.change_visibility(obj, visibility)
            if held:
                words = f"{held} runs are held for review: a new first place."
                self.message_user(request, words)
        else:
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


class BanForm(forms.ModelForm):
    by: Any = None  # who asks: set on the class that is made for a request

    hide = forms.BooleanField(
        required=False,
        label="Hide what is there",
        help_text="Its submissions become private until the ban is lifted; else they are kept.",
    )

    class Meta:
        model = Ban
        fields = ("user", "reason")

    def clean_user(self) -> Any:
        user = self.cleaned_data["user"]
        try:
            curation.refuse_ban(user, self.by)
        except curation.Refused as refused:
            raise forms.ValidationError(f"Not possible: {refused}.") from refused
        return user


@admin.register(Ban)
class BanAdmin(Steps):
    """Accounts whose submissions are refused. A ban is lifted, never deleted."""

    form = BanForm
    list_display = ("user", "reason", "banned_by", "hidden_count", "created_at", "lifted_at")
    list_filter = (("lifted_at", admin.EmptyFieldListFilter), "created_at")
    list_select_related = ("user", "banned_by")
    search_fields = ("user__username", "reason")
    raw_id_fields = ("user",)
    actions = ("lift",)

    @admin.display(description="submissions hidden")
    def hidden_count(self, ban: Ban) -> int:
        return len(ban.hidden)

    def get_fields(self, request: HttpRequest, obj: Ban | None = None) -> Any:
        if obj is None:
            return ("user", "reason", "hide")
        return ("user", "reason", "banned_by", "hidden_count", "created_at", "lifted_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Ban | None = None) -> Any:
        return self.get_fields(request, obj) if obj else ()

    def get_form(
        self, request: HttpRequest, obj: Ban | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        if obj is not None:
            kwargs["form"] = forms.ModelForm
        form = super().get_form(request, obj, change, **kwargs)
        return type(form.__name__, (form,), {"by": request.user})

    def save_model(self, request: HttpRequest, obj: Ban, form: Any, change: bool) -> None:
        """The operation makes the row; the form's own was never saved."""
        if not change:
            made = curation.ban(
                obj.user, request.user, obj.reason, hide=form.cleaned_data.get("hide", False)
            )
            obj.pk, obj.hidden = made.pk, made.hidden

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """`curation.ban` has logged it, with the reason."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description="Lift the selected bans…", permissions=["change"])
    def lift(self, request: HttpRequest, bans: QuerySet[Ban]) -> HttpResponse | None:
        step = Step(
            "Lift bans",
            "The accounts may submit again, and what the ban hid is seen again.",
            "Lift",
            note=lambda ban: f"{ban.user}: {ban.reason}",
        )
        return ask(self, request, bans, step, lambda rows, data: (
            f"{curation.lift(rows, request.user, data['reason'])} bans lifted."
        ))  # fmt: skip
