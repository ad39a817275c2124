"""Tasks, methods and GPUs: what is compared."""

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString

from benchmark import contracts, curation, vocabulary
from benchmark.admin.base import BumpsBoard, ReadOnly
from benchmark.admin.steps import Into, OnGpus, Step, Steps, ask
from benchmark.models import Gpu, Method, MethodRedirect, Task, TaskVersion


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"
    conditions = {
        vocabulary.DRAFT: Q(is_draft=True),
        vocabulary.LIVE: Q(is_draft=False, retired_at__isnull=True),
        vocabulary.RETIRED: Q(is_draft=False, retired_at__isnull=False),
    }

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, state) for state in vocabulary.TASK_STATES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> QuerySet[Task]:
        condition = self.conditions.get(self.value() or "")
        return queryset.filter(condition) if condition else queryset


class NotOnFilter(admin.SimpleListFilter):
    title = "disabled for a GPU"
    parameter_name = "not_on"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("any", "for some GPU")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Task]) -> QuerySet[Task]:
        return queryset.exclude(not_on={}) if self.value() else queryset


@admin.register(Task)
class TaskAdmin(Steps):
    """Tasks come from the suite through `sync_tasks`: here they are looked at, published, retired
    and disabled for a GPU. What a moderator retired stays so when tasks are brought in again.
    """

    list_display = (
        "slug", "category", "difficulty", "state", "disabled_on", "versions_count", "short_digest",
    )  # fmt: skip
    list_filter = (StateFilter, NotOnFilter, "category", "difficulty", "interpretable")
    search_fields = ("slug", "description")
    fields = (
        "slug", "state_meaning", "disabled_on", "digest_history", "category", "difficulty",
        "signature", "description", "tolerance", "differences", "dtypes", "delegates", "aliases",
        "interpretable", "digest", "case_list", "reference", "plain",
    )  # fmt: skip
    readonly_fields = fields
    actions = ("publish", "retire", "disable", "enable")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        return super().get_queryset(request).annotate(versions_count=Count("versions"))

    @admin.display(description="digest", ordering="digest")
    def short_digest(self, task: Task) -> str:
        return task.digest[:12]

    @admin.display(ordering="is_draft")
    def state(self, task: Task) -> str:
        return task.state

    @admin.display(description="state")
    def state_meaning(self, task: Task) -> str:
        words = f"{task.state}: {vocabulary.TASK_STATES[task.state]}"
        if task.state == vocabulary.RETIRED and not task.stays_retired:
            return f"{words}; it left the suite, and would be published again if it came back"
        return words

    @admin.display(description="not applicable on")
    def disabled_on(self, task: Task) -> str:
        return "; ".join(f"{slug}: {reason}" for slug, reason in task.not_on.items()) or "none"

    @admin.display(description="versions", ordering="versions_count")
    def versions_count(self, task: Any) -> int:
        return int(task.versions_count)

    @admin.display(description="digest history")
    def digest_history(self, task: Task) -> SafeString:
        context = {"history": list(_history(task)), "now": task.digest}
        return render_to_string("admin/digest_history.html", context)

    @admin.display(description="cases")
    def case_list(self, task: Task) -> SafeString:
        return _preformatted("\n".join(" · ".join(case.values()) for case in task.cases))

    @admin.display(description="reference source")
    def reference(self, task: Task) -> SafeString:
        return _preformatted(task.reference_source)

    @admin.display(description="plain solution of our own")
    def plain(self, task: Task) -> SafeString:
        return _preformatted(task.plain_source or "none")

    def view_on_site(self, task: Task) -> str | None:
        """A draft has no page yet."""
        return None if task.is_draft else task.get_absolute_url()

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Nothing is to be saved: the steps change tasks."""
        context |= {"show_save": False, "show_save_and_continue": False}
        return super().render_change_form(request, context, *args, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.action(description="Publish the selected tasks…", permissions=["change"])
    def publish(self, request: HttpRequest, tasks: QuerySet[Task]) -> HttpResponse | None:
        step = Step(
            "Publish tasks",
            "From now on they are shown, judged and ranked, and count in every denominator. Before "
            "a draft is published, look at its contract below the link, and prove it with “kbx "
            "prove”: every mutant killed, the plain solution accepted. Say in the reason what was "
            "looked at and what the proof said.",
            "Publish",
            note=_readiness,
        )
        return ask(self, request, tasks, step, lambda rows, data: _said(
            curation.publish(rows, request.user, data["reason"]), "task", "published"
        ))  # fmt: skip

    @admin.action(description="Retire the selected tasks…", permissions=["change"])
    def retire(self, request: HttpRequest, tasks: QuerySet[Task]) -> HttpResponse | None:
        step = Step(
            "Retire tasks",
            "They are no longer judged or ranked and leave every denominator. Their results stay "
            "to be read, and they stay retired when tasks are brought in from the suite again.",
            "Retire",
            note=lambda task: task.state,
        )
        return ask(self, request, tasks, step, lambda rows, data: _said(
            curation.retire(rows, request.user, data["reason"]), "task", "retired"
        ))  # fmt: skip

    @admin.action(description="Disable the selected tasks for a GPU…", permissions=["change"])
    def disable(self, request: HttpRequest, tasks: QuerySet[Task]) -> HttpResponse | None:
        step = Step(
            "Disable tasks for a GPU",
            "On these GPUs the tasks are not applicable: nothing new is judged there, what was "
            "judged doesn't count, and they leave the GPU's denominator. The reason is shown to "
            "everybody on the task's page.",
            "Disable",
            OnGpus,
            note=self.disabled_on,
        )
        return ask(self, request, tasks, step, lambda rows, data: _said(
            curation.disable(rows, data["gpus"], request.user, data["reason"]),
            "task and GPU", "disabled",
        ))  # fmt: skip

    @admin.action(description="Enable the selected tasks for a GPU…", permissions=["change"])
    def enable(self, request: HttpRequest, tasks: QuerySet[Task]) -> HttpResponse | None:
        step = Step(
            "Enable tasks for a GPU",
            "They count again on these GPUs, with the results that are there.",
            "Enable",
            OnGpus,
            note=self.disabled_on,
        )
        return ask(self, request, tasks, step, lambda rows, data: _said(
            curation.enable(rows, data["gpus"], request.user, data["reason"]),
            "task and GPU", "enabled",
        ))  # fmt: skip


class RedirectInline(ReadOnly, admin.TabularInline):
    model = MethodRedirect
    fields = ("slug", "name", "created_at")
    readonly_fields = fields
    extra = 0
    verbose_name_plural = "merged into this method: their addresses lead here"


@admin.register(Method)
class MethodAdmin(BumpsBoard, Steps):
    list_display = ("name", "kind", "organisation", "submissions_count", "created_at")
    list_filter = ("kind",)
    search_fields = ("name", "slug", "organisation")
    prepopulated_fields = {"slug": ("name",)}
    inlines = (RedirectInline,)
    actions = ("merge",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Method]:
        return super().get_queryset(request).annotate(submissions_count=Count("submissions"))

    @admin.display(description="submissions", ordering="submissions_count")
    def submissions_count(self, method: Any) -> int:
        return int(method.submissions_count)

    @admin.action(description="Merge the selected methods into another…", permissions=["change"])
    def merge(self, request: HttpRequest, methods: QuerySet[Method]) -> HttpResponse | None:
        step = Step(
            "Merge methods",
            "Their submissions move to the method that you choose; of two that have the same "
            "label, the one that moves gets the old address behind it. The old addresses and names "
            "lead there from now on. This can't be undone by a button.",
            "Merge",
            Into,
            note=lambda method: f"{method.submissions_count} submissions",
        )
        return ask(self, request, methods, step, lambda rows, data: _said(
            curation.merge(rows, data["into"], request.user, data["reason"]), "submission", "moved"
        ))  # fmt: skip


@admin.register(Gpu)
class GpuAdmin(BumpsBoard, Steps):
    list_display = ("name", "slug", "vendor", "architecture", "can_time", "is_judging")
    list_filter = ("is_judging", "can_time", "vendor")
    list_editable = ("is_judging",)
    search_fields = ("name", "slug", "architecture")

    def get_readonly_fields(self, request: HttpRequest, obj: Gpu | None = None) -> tuple[str, ...]:
        """A GPU's slug is the name of its queue, on which boards listen: given once."""
        return ("slug",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


def _preformatted(text: str) -> SafeString:
    return format_html('<pre class="curation-source">{}</pre>', text)


def _readiness(task: Task) -> SafeString:
    """What speaks for publishing, and how to prove the task."""
    return format_html(
        "{}, digest {}; {}; {} cases; prove with <code>kbx prove --task {}</code>",
        task.state,
        task.digest[:12],
        "a plain solution is there" if task.plain_source else "no plain solution of our own",
        len(task.cases),
        task.slug,
    )


def _history(task: Task) -> Iterable[tuple[TaskVersion, tuple[contracts.Change, ...] | None]]:
    """Newest first, each with what it changed; None for the first."""
    versions = list(task.versions.all())
    for new, old in pairwise(versions):
        yield (
            new,
            contracts.changes(
                old.contract, new.contract, old.reference_source, new.reference_source
            ),
        )
    if versions:
        yield versions[-1], None


def _said(count: int, what: str, done: str) -> str:
    """A sentence: "1 task retired.", "3 submissions moved."."""
    plural = what if count == 1 else f"{what}s"
    return f"{count} {plural} {done}." if count else f"Nothing to do: {plural} {done} already."
