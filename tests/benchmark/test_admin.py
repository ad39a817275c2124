"""The admin: every list opens, results can't be edited, re-judging sends jobs."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from benchmark.models import Audit, Candidate, Gpu, Method, Run, Source, Submission, Task
from runner.accounts import keys
from runner.models import ApiKey, Device, Job

pytestmark = pytest.mark.django_db
OURS = [m for m in admin.site._registry if m._meta.app_label in ("benchmark", "runner")]


@pytest.fixture
def run() -> Run:
    task = Task.objects.create(slug="relu", category="math", difficulty=1, digest="0" * 64)
    submission = Submission.objects.create(method=Method.objects.create(slug="m"), label="a")
    source = Source.objects.create(sha256="1" * 64, text="x", size=1)
    candidate = Candidate.objects.create(submission=submission, task=task, source=source)
    gpu = Gpu.objects.create(slug="h200", name="H200", is_judging=True)
    run = Run.objects.create(
        candidate=candidate, gpu=gpu, task_digest="0" * 64, verdict="passed", stage="time"
    )
    Job.objects.create(candidate=candidate, gpu=gpu, state="done", run=run)
    return run


def page(model: Any, view: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}", args=args)


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)
def test_lists_and_searches_open(admin_client: Client, run: Run, model: Any) -> None:
    url = page(model, "changelist")
    assert admin_client.get(url).status_code == 200
    assert admin_client.get(url, {"q": "relu"}).status_code == 200


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)
def test_rows_open(admin_client: Client, run: Run, model: Any) -> None:
    for row in model.objects.all()[:1]:
        assert admin_client.get(page(model, "change", row.pk)).status_code == 200


@pytest.mark.parametrize("model", [Run, Job, Candidate])
def test_results_can_not_be_edited_or_deleted(admin_client: Client, run: Run, model: Any) -> None:
    row = model.objects.get()
    assert admin_client.post(page(model, "change", row.pk), {}).status_code == 403
    assert admin_client.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    assert admin_client.get(page(model, "add")).status_code == 403
    assert model.objects.get() == row


def test_an_audit_names_who_is_logged_in(admin_client: Client, admin_user: User, run: Run) -> None:
    entry = {"run": run.pk, "verdict": "cheat", "reason": "a library did it", "evidence": ""}
    assert admin_client.post(page(Audit, "add"), entry).status_code == 302
    audit = Audit.objects.get()
    assert audit.reviewer == admin_user
    assert admin_client.post(page(Audit, "change", audit.pk), entry).status_code == 403
    assert not Run.objects.trusted().exists()


def test_the_action_judges_again_after_a_preview(admin_client: Client, run: Run) -> None:
    action = {"action": "submissions_again", "_selected_action": [run.candidate.submission_id]}
    preview = admin_client.post(page(Submission, "changelist"), action, follow=True)
    assert not Job.objects.open().exists()
    [found] = re.findall(r'name="fingerprint" value="(\w+)"', preview.content.decode())
    address = preview.request["PATH_INFO"] + "?" + preview.request["QUERY_STRING"]
    admin_client.post(address, {"fingerprint": found, "reason": "a new judge"})
    assert Job.objects.open().get().candidate == run.candidate
    assert Run.objects.get() == run
    assert logged(run.candidate.submission) == [
        "1 judgements asked for again (1 submissions): a new judge"
    ]


def test_the_action_judges_what_is_missing_on_gpus_that_judge(
    admin_client: Client, run: Run
) -> None:
    idle = Gpu.objects.create(slug="h20-3e", name="NVIDIA H20-3e")
    action = {"action": "judge_missing", "_selected_action": [run.gpu_id, idle.pk]}
    answer = admin_client.post(page(Gpu, "changelist"), action, follow=True).content.decode()
    assert "0 judgements asked for" in answer
    assert "1 of the GPUs judge nothing" in answer
    Gpu.objects.update(is_judging=True)
    admin_client.post(page(Gpu, "changelist"), action)
    assert Job.objects.open().get().gpu == idle


def test_a_gpu_is_switched_on_in_the_list_and_keeps_its_queue(
    admin_client: Client, run: Run
) -> None:
    gpu = Gpu.objects.create(slug="h20-3e", name="NVIDIA H20-3e")
    rows = Gpu.objects.order_by("name")
    form = {"form-TOTAL_FORMS": 2, "form-INITIAL_FORMS": 2, "_save": "Save"}
    for at, row in enumerate(rows):
        form |= {f"form-{at}-id": row.pk, f"form-{at}-is_judging": "on"}
    assert admin_client.post(page(Gpu, "changelist"), form).status_code == 302
    gpu.refresh_from_db()
    assert gpu.is_judging
    facts = {"name": "H20 3e", "slug": "other", "peak_flops": "{}", "is_judging": "on"}
    assert admin_client.post(page(Gpu, "change", gpu.pk), facts).status_code == 302
    gpu.refresh_from_db()
    assert (gpu.name, gpu.slug) == ("H20 3e", "h20-3e")


@pytest.mark.parametrize("model", [Submission, Gpu, Task])
def test_what_results_hang_on_can_not_be_deleted(
    admin_client: Client, run: Run, model: Any
) -> None:
    row = model.objects.get()
    assert admin_client.post(page(model, "delete", row.pk), {"post": "yes"}).status_code == 403
    action = {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}
    admin_client.post(page(model, "changelist"), action)
    assert model.objects.get() == row


def test_an_audit_needs_a_reason(admin_client: Client, run: Run) -> None:
    for reason in ("", "   "):
        entry = {"run": run.pk, "verdict": "cheat", "reason": reason, "evidence": ""}
        assert admin_client.post(page(Audit, "add"), entry).status_code == 200
    assert not Audit.objects.exists()


def test_staff_without_permissions_may_do_nothing(client: Client, run: Run) -> None:
    client.force_login(User.objects.create_user("staff", is_staff=True))
    action = {"action": "withdraw", "_selected_action": [run.candidate.submission_id]}
    assert client.post(page(Submission, "changelist"), action).status_code == 403
    assert client.get(page(Run, "change", run.pk)).status_code == 403


def logged(row: Any) -> list[str]:
    """What the history of a row says, the newest first."""
    kind = ContentType.objects.get_for_model(row)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk))
    return list(entries.values_list("change_message", flat=True))


def test_withdrawing_asks_first_cancels_what_is_open_and_is_logged(
    admin_client: Client, run: Run
) -> None:
    job = Job.objects.create(candidate=run.candidate, gpu=run.gpu)
    action = {"action": "withdraw", "_selected_action": [run.candidate.submission_id]}
    asked = admin_client.post(page(Submission, "changelist"), action)
    assert "A tombstone stays" in asked.content.decode()
    assert Submission.objects.get().withdrawn_at is None
    given = action | {"apply": "1", "reason": "its author asked"}
    admin_client.post(page(Submission, "changelist"), given)
    assert not Job.objects.open().exists()
    assert Submission.objects.get().withdrawn_at is not None
    admin_client.post(page(Submission, "changelist"), given)  # a second time changes nothing
    assert logged(Submission.objects.get()) == [
        "Withdrawn by a moderator, 1 jobs cancelled: its author asked"
    ]
    job.refresh_from_db()
    assert job.reason == "withdrawn by a moderator"


def test_cancelling_jobs_asking_for_missing_ones_and_revoking_keys_is_logged(
    admin_client: Client, admin_user: User, run: Run
) -> None:
    job = Job.objects.create(candidate=run.candidate, gpu=run.gpu)
    key = keys.make(admin_user, "laptop").row
    for model, name, row in ((Job, "cancel", job), (ApiKey, "revoke", key)):
        action = {"action": name, "_selected_action": [row.pk]}
        admin_client.post(page(model, "changelist"), action)
    action = {"action": "judge_missing", "_selected_action": [run.gpu_id]}
    Gpu.objects.update(is_judging=True)
    admin_client.post(page(Gpu, "changelist"), action)
    assert logged(job) == ["Cancelled"]
    assert logged(key) == ["Revoked"]
    assert logged(run.gpu) == ["0 missing judgements asked for"]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)
def test_lists_do_not_query_by_the_row(
    admin_client: Client, run: Run, model: Any, django_assert_max_num_queries: Any
) -> None:
    for at in range(30):
        source = Source.objects.create(sha256=f"{at:064x}", text="x", size=1)
        candidate = Candidate.objects.create(
            submission=run.candidate.submission,
            task=run.candidate.task,
            source=source,
            round=at + 1,
        )
        again = Run.objects.create(
            candidate=candidate, gpu=run.gpu, task_digest="0" * 64, verdict="passed", stage="time"
        )
        Job.objects.create(candidate=candidate, gpu=run.gpu, state="done", run=again)
        Audit.objects.create(run=again, verdict="clean", reason="looked at")
        gpu = Gpu.objects.create(slug=f"gpu-{at}", name=f"GPU {at}")
        Device.objects.create(gpu=gpu, serial=f"{at}", host="lab", last_seen_at=timezone.now())
        method = Method.objects.create(slug=f"m{at}", name=f"M{at}")
        Submission.objects.create(method=method, label="a", submitted_by=User.objects.first())
    with django_assert_max_num_queries(20):
        admin_client.get(page(model, "changelist"))
