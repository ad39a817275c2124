"""Actions that ask first: a page says what will happen and takes a reason, then it happens."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from benchmark.curation import REASON_LENGTH, Refused
from benchmark.models import Gpu, Method

SELECTED = re.compile(r" the selected \w+")  # on a row's own page there is one
LISTED = 50  # rows named on the page; of more, the count is said
MOST_ROWS = 1000  # of one step: each row is locked, changed and logged


class Reason(forms.Form):
    reason = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
        max_length=REASON_LENGTH,
        help_text="Kept in the history.",
    )


class OnGpus(Reason):
    gpus = forms.ModelMultipleChoiceField(
        queryset=Gpu.objects.order_by("name"),
        label="GPUs",
        widget=forms.CheckboxSelectMultiple,
    )
    field_order = ("gpus", "reason")


class Into(Reason):
    into = forms.ModelChoiceField(queryset=Method.objects.order_by("name"), label="Merge into")
    field_order = ("into", "reason")


@dataclass(frozen=True)
class Step:
    """What a page asks. `words`: what will happen; `note`: what is said of each row."""

    title: str
    words: str
    button: str
    form: type[forms.Form] = Reason
    note: Callable[[Any], str] = lambda row: ""


def ask(
    modeladmin: Any,
    request: HttpRequest,
    rows: QuerySet[Any],
    step: Step,
    do: Callable[[list[Any], dict[str, Any]], str],
) -> HttpResponse | None:
    """The page, until its form is sent filled in; then `do(rows, data)`, whose sentence is told."""
    chosen = list(rows[: MOST_ROWS + 1])
    if len(chosen) > MOST_ROWS:
        modeladmin.message_user(request, f"At most {MOST_ROWS} rows at a time.", messages.ERROR)
        return None
    form = step.form(request.POST if "apply" in request.POST else None)
    if form.is_bound and form.is_valid():
        try:
            modeladmin.message_user(request, do(chosen, form.cleaned_data))
        except Refused as refused:
            modeladmin.message_user(request, f"Nothing was changed: {refused}.", messages.ERROR)
        return None
    context = {
        **modeladmin.admin_site.each_context(request),
        "title": step.title,
        "step": step,
        "form": form,
        "opts": modeladmin.model._meta,
        "rows": [(row, step.note(row)) for row in chosen[:LISTED]],
        "more": max(0, len(chosen) - LISTED),
        "count": len(chosen),
        "keys": [row.pk for row in chosen],
        "action": request.POST.get("action", ""),
        "checkbox": ACTION_CHECKBOX_NAME,
    }
    return TemplateResponse(request, "admin/curation_step.html", context)


class Steps(admin.ModelAdmin):
    """An admin whose row pages offer the actions as buttons."""

    change_form_template = "admin/curation_change_form.html"

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        shown = {"row_actions": list(self._buttons(request)) if object_id else []}
        context = shown | (extra_context or {})
        return super().changeform_view(request, object_id, form_url, context)

    def _buttons(self, request: HttpRequest) -> Iterable[tuple[str, str]]:
        for _, name, description in filter(None, self.get_actions(request).values()):
            if description.endswith("…"):  # it asks first
                yield name, SELECTED.sub("", description)
