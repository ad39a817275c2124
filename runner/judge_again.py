"""The admin's page that previews judging again, and confirms it."""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from benchmark.models import Gpu, Method, Task
from runner import rejudging
from runner.rejudging import Changed, Scope

PERMISSION = "runner.add_job"
MOST_NAMED = 200  # rows of an action, which travel in the address


class ScopeForm(forms.Form):
    """The state is the address: `?task=relu&older_judge=3`."""

    task = forms.CharField(required=False, label="Tasks", help_text="Slugs, with spaces between.")
    method = forms.CharField(required=False, label="Methods", help_text="Slugs.")
    run = forms.CharField(required=False, label="Runs", help_text="UUIDs.")
    submission = forms.CharField(required=False, label="Submissions", help_text="UUIDs.")
    gpu = forms.CharField(required=False, label="Only on GPUs", help_text="Slugs.")
    older_judge = forms.IntegerField(
        required=False,
        min_value=1,
        label="Judged by a judge older than",
        help_text="The judge's version.",
    )
    older_digest = forms.BooleanField(
        required=False, label="Judged against an earlier digest of the task"
    )
    every = forms.BooleanField(
        required=False,
        label="Every round and submission",
        help_text="Else only what counts on boards now.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = ", ".join(rejudging.judge_versions()[:8])
        if versions:
            self.fields["older_judge"].help_text = f"The judge's version; on boards are {versions}."

    def clean_task(self) -> tuple[str, ...]:
        return self._slugs("task", Task)

    def clean_method(self) -> tuple[str, ...]:
        return self._slugs("method", Method)

    def clean_gpu(self) -> tuple[str, ...]:
        return self._slugs("gpu", Gpu)

    def clean_run(self) -> tuple[UUID, ...]:
        return self._uuids("run")

    def clean_submission(self) -> tuple[UUID, ...]:
        return self._uuids("submission")

    def scope(self) -> Scope:
        data = self.cleaned_data
        return Scope(
            runs=data["run"],
            submissions=data["submission"],
            tasks=data["task"],
            methods=data["method"],
            gpus=data["gpu"],
            older_judge=data["older_judge"],
            older_digest=data["older_digest"],
            every=data["every"],
        )

    def _uuids(self, name: str) -> tuple[UUID, ...]:
        try:
            return tuple(map(UUID, self.cleaned_data[name].split()))
        except ValueError as error:
            raise forms.ValidationError("Write UUIDs with spaces between.") from error

    def _slugs(self, name: str, model: Any) -> tuple[str, ...]:
        slugs = tuple(dict.fromkeys(self.cleaned_data[name].split()))
        known = set(model.objects.filter(slug__in=slugs).values_list("slug", flat=True))
        unknown = [slug for slug in slugs if slug not in known]
        if unknown:
            raise forms.ValidationError(f"There is no {name} {', '.join(unknown)}.")
        return slugs


def link(**scope: Any) -> str:
    """The page's address with a choice; lists are written with spaces between."""
    words = {name: " ".join(map(str, value)) for name, value in scope.items()}
    return f"{reverse('admin:runner_judge_again')}?{urlencode(words)}"


def page(request: HttpRequest) -> HttpResponse:
    """GET shows what the choice costs; POST confirms what was shown."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    form = ScopeForm(request.GET)
    scope = form.scope() if form.is_valid() else Scope()
    reason = request.POST.get("reason", "").strip()[:2000]
    if request.method == "POST" and not scope.is_empty:
        if not reason:
            messages.error(request, "Say why it is judged again.")
        elif _asked(request, scope, reason):
            return HttpResponseRedirect(reverse("admin:runner_job_changelist"))
    preview = rejudging.preview(scope)
    costs = [
        (cost, rejudging.duration(cost.minutes), rejudging.duration(cost.wall_minutes or 0.0))
        for cost in preview.costs
    ]
    context = {
        **admin.site.each_context(request),
        "title": "Judge again",
        "form": form if request.GET else ScopeForm(),
        "preview": None if scope.is_empty else preview,
        "costs": costs,
        "total": rejudging.duration(preview.minutes),
        "reason": reason,
    }
    return TemplateResponse(request, "admin/runner_judge_again.html", context)


def _asked(request: HttpRequest, scope: Scope, reason: str) -> bool:
    try:
        asked = rejudging.ask(scope, request.POST.get("fingerprint", ""), request.user, reason)
    except Changed as changed:
        messages.warning(request, f"Nothing was asked for: {changed}. This is the cost now.")
        return False
    messages.success(request, f"{asked} judgements asked for.")
    return True
