"""The admin: every list opens, results can't be edited, re-judging sends jobs."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from benchmark.models import Audit, Candidate, Gpu, Method, Run, Source, Submission, Task
from runner.models import Job

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


def test_the_action_judges_again(admin_client: Client, run: Run) -> None:
    action = {"action": "judge_again", "_selected_action": [run.candidate.submission_id]}
    assert admin_client.post(page(Submission, "changelist"), action).status_code == 302
    assert Job.objects.open().get().candidate == run.candidate
    assert Run.objects.get() == run


def test_lists_do_not_query_by_the_row(
    admin_client: Client, run: Run, django_assert_max_num_queries: Any
) -> None:
    for at in range(30):
        source = Source.objects.create(sha256=f"{at:064x}", text="x", size=1)
        candidate = Candidate.objects.create(
            submission=run.candidate.submission,
            task=run.candidate.task,
            source=source,
            round=at + 1,
        )
        Run.objects.create(
            candidate=candidate, gpu=run.gpu, task_digest="0" * 64, verdict="passed", stage="time"
        )
    with django_assert_max_num_queries(15):
        admin_client.get(page(Run, "changelist"))
