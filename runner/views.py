"""Pages of the way in: the upload form, a submission and its jobs as they are judged, the queue."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from benchmark import vocabulary
from benchmark.models import Submission, Task
from benchmark.web import page, viewer
from runner import selectors, submitting
from runner.forms import SubmissionForm
from runner.intake import Intake, limits, read_upload
from runner.throttling import UploadThrottle


@require_http_methods(["GET", "HEAD", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The form; POST with `check` shows what would happen, else the upload is taken."""
    user = viewer(request)
    if not (settings.KBX_OPEN_SUBMISSIONS or user.is_authenticated):
        return _form_page(request, None)
    if request.method != "POST":
        return _form_page(request, SubmissionForm(user=user))
    form = SubmissionForm(request.POST, request.FILES, user=user)
    if not form.is_valid():
        return _form_page(request, form, code=400)
    if refusal := UploadThrottle().refusal(request):
        form.add_error(None, refusal)
        return _form_page(request, form, code=429)
    name, data = form.cleaned_data["upload"]
    intake = read_upload(name, data, submitting.known_tasks())
    try:
        if "check" in request.POST:
            return _form_page(request, form, intake, _plan(intake, form.cleaned_data, user))
        return redirect(_accepted(intake, form.cleaned_data, user))
    except submitting.SubmissionRefused as refused:
        form.add_error(None, f"{refused.reason}: {refused.remedy}.")
        return _form_page(request, form, intake, code=400)


@require_safe
def submission(request: HttpRequest, uuid: UUID) -> HttpResponse:
    found = selectors.submission_page(uuid, viewer(request))
    if found is None:
        raise Http404(f"There is no submission {uuid} here, or it is not public.")
    if found.withdrawn_at:
        return page(request, "runner/withdrawn.html", {"submission": found})
    context = {"submission": found, "states": vocabulary.JOB_STATES}
    return page(request, "runner/submission.html", context, fragment="runner/_progress.html")


@require_POST
def withdraw(request: HttpRequest, uuid: UUID) -> HttpResponse:
    user = viewer(request)
    found = Submission.objects.visible_to(user).filter(uuid=uuid).first()
    if found is None:
        raise Http404(f"There is no submission {uuid} here, or it is not public.")
    if not selectors.is_owner(found, user):
        raise PermissionDenied
    submitting.withdraw(found)
    return redirect("runner:submission", uuid)


@require_safe
def job(request: HttpRequest, uuid: UUID) -> HttpResponse:
    found = selectors.job_page(uuid, viewer(request))
    if found is None:
        raise Http404(f"There is no job {uuid} here, or it is not public.")
    return page(request, "runner/job.html", {"job": found}, fragment="runner/_job.html")


@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    context = {"queues": selectors.queues(), "nav": "queue"}
    return page(request, "runner/queue.html", context)


def _accepted(intake: Intake, data: dict[str, Any], user: Any) -> Submission:
    return submitting.accept(
        submitting.method_named(data["method"], data["kind"]),
        data["label"],
        intake,
        user,
        data["visibility"],
    )


def _plan(intake: Intake, data: dict[str, Any], user: Any) -> submitting.Plan:
    """What the upload would do. A submission that the user can't see stays unmentioned."""
    method = submitting.method_named(data["method"], data["kind"])
    label = submitting.clean_label(data["label"])
    visible = Submission.objects.visible_to(user).filter(method_id=method.pk, label=label)
    return submitting.plan(intake, method if visible.exists() else None, label)


def _form_page(
    request: HttpRequest,
    form: SubmissionForm | None,
    intake: Intake | None = None,
    plan: submitting.Plan | None = None,
    code: int = 200,
) -> HttpResponse:
    context = {
        "nav": "submit",
        "form": form,
        "intake": intake,
        "plan": plan,
        "limits": limits,
        "max_mib": limits.MAX_UPLOAD_BYTES // limits.MIB,
        "max_source_kib": vocabulary.MAX_SOURCE_BYTES // 1024,
        "task_names": Task.objects.current().values_list("slug", flat=True) if form else (),
    }
    response = page(request, "runner/submit.html", context)
    response.status_code = code
    return response
