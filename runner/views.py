"""Pages of the way in: the form, drafts, submissions and jobs as they are judged, the queue."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from benchmark import vocabulary
from benchmark.curation import REASON_LENGTH
from benchmark.models import Draft, Submission, Task
from benchmark.web import page, viewer
from runner import drafting, selectors, submitting
from runner.accounts.selectors import own_drafts
from runner.forms import ConfirmForm, SubmissionForm, VisibilityForm, WithdrawForm
from runner.intake import Intake, limits, read_upload
from runner.throttling import UploadThrottle

PREFILLED = ("method", "kind", "label", "round", "visibility", "source_visibility")
LONGEST_PREFILLED = 120
DRAFTS_SHOWN = 5


@require_http_methods(["GET", "HEAD", "POST"])
def submit(request: HttpRequest) -> HttpResponse:
    """The form. POST reads the upload and leads to its draft: what would happen, and a button."""
    user = viewer(request)
    if not (settings.KBX_OPEN_SUBMISSIONS or user.is_authenticated):
        return _form_page(request, None)
    if request.method != "POST":
        return _form_page(request, SubmissionForm(user=user, initial=_asked_for(request)))
    form = SubmissionForm(request.POST, request.FILES, user=user)
    if not form.is_valid():
        return _form_page(request, form, code=400)
    if refusal := UploadThrottle().refusal(request):
        form.add_error(None, refusal)
        return _form_page(request, form, code=429)
    name, data = form.cleaned_data["upload"]
    intake = read_upload(name, data, submitting.known_tasks(), form.cleaned_data["round"])
    if intake.is_empty:
        form.add_error(None, "There is no candidate in it: what is wrong stands below.")
        return _form_page(request, form, intake, code=400)
    try:
        return redirect(drafting.make(_entry(form.cleaned_data), intake, user))
    except submitting.SubmissionRefused as refused:
        form.add_error(None, f"{refused.reason}: {refused.remedy}.")
        return _form_page(request, form, code=400)


@never_cache
@require_safe
def draft(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """What was found in an upload and what would come of it; once confirmed, its submission."""
    found = _draft(request, uuid)
    if found.submission is not None:
        return redirect(found.submission)
    return _draft_page(request, found)


@require_POST
def confirm(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Submit a draft. A second time, and a third, leads to the same submission."""
    found = _draft(request, uuid)
    if found.submission is not None:
        return redirect(found.submission)
    user = viewer(request)
    if not (settings.KBX_OPEN_SUBMISSIONS or user.is_authenticated):
        raise PermissionDenied
    form = ConfirmForm(request.POST, needs_gpu=False)
    if not form.is_valid():
        return _draft_page(request, found, form)
    try:
        return redirect(drafting.confirm(found, user, form.cleaned_data["claimed_on"]))
    except submitting.SubmissionRefused as refused:
        form.add_error(None, f"{refused.reason}: {refused.remedy}.")
        return _draft_page(request, found, form)


@require_POST
def discard(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Forget a draft. `back=me` leads back to the account's page, which lists them."""
    _draft(request, uuid, Draft.objects.open()).delete()
    return redirect("runner:me" if request.POST.get("back") == "me" else "runner:submit")


@require_safe
def submission(request: HttpRequest, uuid: UUID) -> HttpResponse:
    found = selectors.submission_page(uuid, viewer(request))
    if found is None:
        raise Http404(f"There is no submission {uuid} here, or it is not public.")
    if found.withdrawn_at:
        return page(request, "runner/withdrawn.html", {"submission": found})
    context = {
        "submission": found,
        "states": vocabulary.JOB_STATES,
        "form": VisibilityForm(
            initial={
                "visibility": found.visibility,
                "source_visibility": found.source_visibility,
            }
        ),
        "withdrawal": WithdrawForm(),
    }
    return page(request, "runner/submission.html", context, fragment="runner/_progress.html")


@require_POST
def withdraw(request: HttpRequest, uuid: UUID) -> HttpResponse:
    found = _owned(request, uuid)
    form = WithdrawForm(request.POST)
    try:
        if not form.is_valid():
            raise submitting.SubmissionRefused(
                "the reason is unusable", f"write at most {REASON_LENGTH:,} characters"
            )
        submitting.withdraw(found, viewer(request), form.cleaned_data["reason"])
    except submitting.SubmissionRefused as refused:
        messages.error(request, f"Nothing was changed: {refused.reason}; {refused.remedy}.")
    return redirect("runner:submission", uuid)


@require_POST
def cancel(request: HttpRequest, uuid: UUID) -> HttpResponse:
    """Take back what waits or is under judgement; what is judged stays."""
    cancelled = submitting.cancel(_owned(request, uuid), viewer(request))
    messages.success(request, f"{cancelled} judgements taken back. Verdicts there were stay.")
    return redirect("runner:submission", uuid)


@require_POST
def visibility(request: HttpRequest, uuid: UUID) -> HttpResponse:
    found = _owned(request, uuid)
    form = VisibilityForm(request.POST)
    try:
        if not form.is_valid():
            raise submitting.SubmissionRefused("no such visibility", "choose one of the list")
        submitting.change_visibility(found, **form.cleaned_data, by=viewer(request))
    except submitting.SubmissionRefused as refused:
        messages.error(request, f"{refused.reason}: {refused.remedy}.")
    else:
        said = (
            f"{form.cleaned_data['visibility']}, sources {form.cleaned_data['source_visibility']}"
        )
        messages.success(request, f"Changed: the submission is now {said}.")
    return redirect("runner:submission", uuid)


@require_safe
def job(request: HttpRequest, uuid: UUID) -> HttpResponse:
    found = selectors.job_page(uuid, viewer(request))
    if found is None:
        raise Http404(f"There is no job {uuid} here, or it is not public.")
    return page(request, "runner/job.html", {"job": found}, fragment="runner/_job.html")


@require_safe
def queue(request: HttpRequest) -> HttpResponse:
    context = {
        "queues": selectors.queues(),
        "troubles": selectors.troubles(),
        "nav": "queue",
    }
    return page(request, "runner/queue.html", context)


def _asked_for(request: HttpRequest) -> dict[str, Any]:
    """What a link to the form fills in: "add rounds" names its method, label and round."""
    known = {name: request.GET[name] for name in PREFILLED if name in request.GET}
    return {name: value[:LONGEST_PREFILLED] for name, value in known.items()}


def _entry(data: dict[str, Any]) -> drafting.Entry:
    return drafting.Entry(
        data["method"],
        data["kind"],
        data["label"],
        data["visibility"],
        data["source_visibility"],
        data["upload"][0],
    )


def _draft(request: HttpRequest, uuid: UUID, drafts: Any = None) -> Draft:
    drafts = Draft.objects.all() if drafts is None else drafts
    found = drafts.visible_to(viewer(request)).select_related("submission").filter(uuid=uuid)
    draft = found.first()
    if draft is None:
        raise Http404(f"There is no draft {uuid} here: drafts are kept for a day.")
    return draft


def _draft_page(
    request: HttpRequest, found: Draft, form: ConfirmForm | None = None
) -> HttpResponse:
    outlook = drafting.outlook(found, viewer(request))
    context = {
        "nav": "submit",
        "draft": found,
        "outlook": outlook,
        "form": form or ConfirmForm(needs_gpu=outlook.needs_gpu),
        "visibility_meaning": vocabulary.VISIBILITIES[found.visibility],
        "source_meaning": vocabulary.SOURCE_VISIBILITIES[found.source_visibility],
    }
    response = page(request, "runner/submit_draft.html", context)
    response.status_code = 400 if form is not None else 200
    return response


def _owned(request: HttpRequest, uuid: UUID) -> Submission:
    """The submission, where this visitor may manage it: 404 when unseen, 403 when another's."""
    user = viewer(request)
    found = Submission.objects.visible_to(user).filter(uuid=uuid).first()
    if found is None:
        raise Http404(f"There is no submission {uuid} here, or it is not public.")
    if not selectors.is_owner(found, user):
        raise PermissionDenied
    return found


def _form_page(
    request: HttpRequest,
    form: SubmissionForm | None,
    intake: Intake | None = None,
    code: int = 200,
) -> HttpResponse:
    context = {
        "nav": "submit",
        "form": form,
        "intake": intake,
        "limits": limits,
        "max_mib": limits.MAX_UPLOAD_BYTES // limits.MIB,
        "max_source_kib": vocabulary.MAX_SOURCE_BYTES // 1024,
        "drafts": own_drafts(viewer(request))[:DRAFTS_SHOWN] if form else (),
        "task_names": Task.objects.current().values_list("slug", flat=True) if form else (),
    }
    response = page(request, "runner/submit.html", context)
    response.status_code = code
    return response
