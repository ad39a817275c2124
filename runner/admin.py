"""Jobs and boards, to look at; and the actions on submissions that send work to boards."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path

from benchmark import curation, vocabulary
from benchmark.admin import GpuAdmin, MethodAdmin, ReadOnly, RunAdmin, SubmissionAdmin, TaskAdmin
from benchmark.admin.steps import Step, ask
from benchmark.models import Gpu, Submission
from runner import dispatch, submitting
from runner import judge_again as judging_again
from runner.accounts import admin as accounts_admin  # noqa: F401  registers its models
from runner.models import BuildRequest, Device, Job


@admin.register(Device)
class DeviceAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("gpu", "host", "serial", "state", "reason", "judge_version", "last_seen_at")
    list_filter = ("state", "gpu", "judge_version", "last_seen_at")
    list_select_related = ("gpu",)
    search_fields = ("host", "serial")


@admin.register(Job)
class JobAdmin(ReadOnly, admin.ModelAdmin):
    list_display = (
        "uuid", "task", "submission", "gpu", "state", "attempt", "failures", "stage", "created_at",
        "ended_at",
    )  # fmt: skip
    list_filter = ("state", "gpu", "attempt", "created_at")
    list_select_related = ("candidate__task", "candidate__submission__method", "gpu")
    search_fields = ("uuid", "candidate__task__slug", "candidate__submission__label", "reason")
    date_hierarchy = "created_at"
    show_full_result_count = False
    actions = ("cancel", "put_back")

    def get_urls(self) -> list[Any]:
        page = self.admin_site.admin_view(judging_again.page)
        return [path("judge-again/", page, name="runner_judge_again"), *super().get_urls()]

    @admin.display(ordering="candidate__task__slug")
    def task(self, job: Job) -> str:
        return job.candidate.task.slug

    @admin.display(ordering="candidate__submission")
    def submission(self, job: Job) -> str:
        return str(job.candidate.submission)

    @admin.action(description="Cancel the selected open jobs")
    def cancel(self, request: HttpRequest, jobs: Any) -> None:
        if not request.user.has_perm("runner.change_job"):
            self.message_user(request, "You may not change jobs.", messages.ERROR)
            return
        chosen = list(jobs.open())
        cancelled = dispatch.cancel(chosen, "cancelled by a moderator")
        curation.log(request.user, chosen, "Cancelled")
        self.message_user(request, f"{cancelled} jobs cancelled.")

    @admin.action(description="Put the selected lost jobs back into the queue")
    def put_back(self, request: HttpRequest, jobs: QuerySet[Job]) -> None:
        if not request.user.has_perm("runner.change_job"):
            self.message_user(request, "You may not change jobs.", messages.ERROR)
            return
        chosen = list(jobs.filter(state=vocabulary.LOST))
        put_back = dispatch.put_back(jobs)
        curation.log(request.user, chosen, "Put back into the queue")
        self.message_user(request, f"{put_back} jobs wait again.")


@admin.register(BuildRequest)
class BuildRequestAdmin(ReadOnly, admin.ModelAdmin):
    list_display = ("source", "task", "attempt", "sent_at", "started_at", "gave_up_at", "reason")
    list_filter = ("attempt", "gave_up_at")
    list_select_related = ("task", "source")
    search_fields = ("source__sha256", "task__slug", "reason")


@admin.action(description="Withdraw the selected submissions…", permissions=["change"])
def withdraw(
    modeladmin: Any, request: HttpRequest, submissions: QuerySet[Submission]
) -> HttpResponse | None:
    step = Step(
        "Withdraw submissions",
        "They leave every board, list and file for good, and what of them waits is not judged. A "
        "tombstone stays at their addresses. This can't be undone by a button.",
        "Withdraw",
        note=lambda row: "withdrawn before" if row.withdrawn_at else row.visibility,
    )

    def do(rows: list[Submission], data: dict[str, Any]) -> str:
        new = [row for row in rows if row.withdrawn_at is None]
        cancelled = sum(submitting.withdraw(row, request.user, data["reason"]) for row in new)
        return f"{len(new)} withdrawn; {cancelled} open jobs cancelled."

    return ask(modeladmin, request, submissions, step, do)


@admin.action(description="Judge what the selected GPUs have not judged", permissions=["change"])
def judge_missing(modeladmin: Any, request: HttpRequest, gpus: QuerySet[Gpu]) -> None:
    asked = 0
    for gpu in gpus.filter(is_judging=True):
        new = dispatch.enqueue_missing(gpu)
        curation.log(request.user, [gpu], f"{new} missing judgements asked for")
        asked += new
    left_out = gpus.filter(is_judging=False).count()
    modeladmin.message_user(request, f"{asked} judgements asked for.")
    if left_out:
        words = f"{left_out} of the GPUs judge nothing: tick “is judging” first."
        modeladmin.message_user(request, words, messages.WARNING)


def _preview(
    modeladmin: Any, request: HttpRequest, rows: QuerySet[Any], name: str, column: str
) -> HttpResponse | None:
    """On to the page that says what judging these rows again costs."""
    chosen = list(rows.values_list(column, flat=True)[: judging_again.MOST_NAMED + 1])
    if len(chosen) > judging_again.MOST_NAMED:
        words = f"At most {judging_again.MOST_NAMED} at a time; or choose a task or a method."
        modeladmin.message_user(request, words, messages.ERROR)
        return None
    return HttpResponseRedirect(judging_again.link(**{name: chosen}))


@admin.action(description="Judge the selected tasks again…", permissions=["judge"])
def tasks_again(modeladmin: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    return _preview(modeladmin, request, rows, "task", "slug")


@admin.action(description="Judge the selected methods again…", permissions=["judge"])
def methods_again(
    modeladmin: Any, request: HttpRequest, rows: QuerySet[Any]
) -> HttpResponse | None:
    return _preview(modeladmin, request, rows, "method", "slug")


@admin.action(description="Judge the selected submissions again…", permissions=["judge"])
def submissions_again(
    modeladmin: Any, request: HttpRequest, rows: QuerySet[Any]
) -> HttpResponse | None:
    return _preview(modeladmin, request, rows, "submission", "uuid")


@admin.action(description="Judge the selected runs again…", permissions=["judge"])
def runs_again(modeladmin: Any, request: HttpRequest, rows: QuerySet[Any]) -> HttpResponse | None:
    return _preview(modeladmin, request, rows, "run", "uuid")


def may_judge(_: Any, request: HttpRequest) -> bool:
    return request.user.has_perm(judging_again.PERMISSION)


# These admins live below, in `benchmark`, which knows nothing of jobs.
for modeladmin, action in (
    (TaskAdmin, tasks_again),
    (MethodAdmin, methods_again),
    (RunAdmin, runs_again),
):
    modeladmin.actions = (*modeladmin.actions, action)
    modeladmin.has_judge_permission = may_judge  # type: ignore[union-attr]  # given here
SubmissionAdmin.has_judge_permission = may_judge  # type: ignore[attr-defined]  # given here
SubmissionAdmin.actions = (submissions_again, withdraw)  # type: ignore[misc]  # a class-wide list
GpuAdmin.actions = (judge_missing,)  # type: ignore[misc]  # a class-wide list
