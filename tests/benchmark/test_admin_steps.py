"""The admin's steps: a page says what will happen; its form makes it happen, with permission."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from benchmark.models import Audit, Ban, Method, Submission, Task, TaskVersion

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(make: Any) -> Any:
    return make.run(make.submission(), make.task(), make.gpu(), speedup=2.0)


def moderator(client: Client, *codenames: str) -> User:
    user = User.objects.create_user("mod", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client.force_login(user)
    return user


def step(client: Client, model: str, action: str, rows: list[Any], **form: Any) -> str:
    """What the page says after the action; with a form, after it was sent."""
    url = reverse(f"admin:benchmark_{model}_changelist")
    data = {"action": action, "_selected_action": [row.pk for row in rows]}
    if form:
        data |= {"apply": "1", **form}
    return client.post(url, data, follow=True).content.decode()


def test_a_step_changes_nothing_before_its_form_is_sent_filled_in(
    admin_client: Client, run: Any
) -> None:
    task = run.candidate.task
    page = step(admin_client, "task", "retire", [task])
    assert "they stay retired" in page
    assert "relu" in page
    assert "This field is required." in step(admin_client, "task", "retire", [task], reason=" ")
    task.refresh_from_db()
    assert task.retired_at is None
    assert "1 task retired." in step(admin_client, "task", "retire", [task], reason="wrong")
    task.refresh_from_db()
    assert task.stays_retired
    history = admin_client.get(reverse("admin:benchmark_task_history", args=[task.pk]))
    assert "Retired: wrong" in history.content.decode()


def test_an_admin_looks_a_draft_over_and_publishes_it(admin_client: Client, make: Any) -> None:
    draft = make.task("silu", is_draft=True)
    listed = admin_client.get(reverse("admin:benchmark_task_changelist"), {"state": "draft"})
    assert "silu" in listed.content.decode()
    page = step(admin_client, "task", "publish", [draft])
    assert "kbx prove --task silu" in page
    assert "1 task published." in step(admin_client, "task", "publish", [draft], reason="proven")
    assert Task.objects.current().get() == draft


def test_a_draft_is_not_retired_and_the_page_says_so(admin_client: Client, make: Any) -> None:
    draft = make.task("silu", is_draft=True)
    assert "Nothing was changed" in step(admin_client, "task", "retire", [draft], reason="no")


def test_a_task_is_disabled_and_enabled_for_a_gpu(admin_client: Client, run: Any) -> None:
    task, form = run.candidate.task, {"gpus": [run.gpu_id], "reason": "no fp8"}
    assert "1 task and GPU disabled." in step(admin_client, "task", "disable", [task], **form)
    task.refresh_from_db()
    assert task.not_on == {"h200": "no fp8"}
    assert "1 task and GPU enabled." in step(admin_client, "task", "enable", [task], **form)


def test_the_history_shows_what_changed(admin_client: Client, make: Any) -> None:
    task = make.task()
    for digest, tolerance in (("a" * 64, "4 ulp"), (task.digest, "<2 ulp>")):
        TaskVersion.objects.create(
            task=task, digest=digest, reference_source="x", contract={"tolerance": tolerance}
        )
    page = admin_client.get(reverse("admin:benchmark_task_change", args=[task.pk]))
    text = page.content.decode()
    assert "- 4 ulp" in text
    assert "+ &lt;2 ulp&gt;" in text
    assert "the present one" in text


def test_a_find_in_the_queue_is_rejected_with_a_reason(client: Client, make: Any, run: Any) -> None:
    user = moderator(client, "view_run", "add_audit")
    suspect = make.run(
        run.candidate.submission, make.task("gelu"), run.gpu, speedup=9.0, is_suspect=True
    )
    listed = client.get(reverse("admin:benchmark_run_changelist"), {"queue": "waiting"})
    assert re.findall(r'name="_selected_action" value="(\d+)"', listed.content.decode()) == [
        str(suspect.pk)
    ]
    page = step(client, "run", "give_verdict", [suspect])
    assert "suspected by the judge" in page
    form = {"verdict": "cheat", "reason": "It caches.", "note": "See line 3.", "evidence": "log"}
    assert "1 runs are cheat now." in step(client, "run", "give_verdict", [suspect], **form)
    audit = Audit.objects.get()
    assert (audit.reviewer, audit.reason, audit.note) == (user, "It caches.", "See line 3.")
    public = client.get(suspect.get_absolute_url()).content.decode()
    assert "It caches." in public
    assert "See line 3." in public


def test_held_is_no_answer(admin_client: Client, run: Any) -> None:
    page = step(admin_client, "run", "give_verdict", [run], verdict="held", reason="no")
    assert "Select a valid choice" in page
    assert not Audit.objects.exists()


def test_an_account_is_banned_and_the_ban_lifted(admin_client: Client, run: Any) -> None:
    user = User.objects.create_user("author")
    Submission.objects.update(submitted_by=user)
    add = reverse("admin:benchmark_ban_add")
    assert (
        admin_client.post(add, {"user": user.pk, "reason": "spam", "hide": "on"}).status_code == 302
    )
    ban = Ban.objects.get()
    assert (len(ban.hidden), Submission.objects.get().visibility) == (1, "private")
    again = admin_client.post(add, {"user": user.pk, "reason": "spam"})
    assert "banned already" in again.content.decode()
    assert admin_client.get(reverse("admin:benchmark_ban_change", args=[ban.pk])).status_code == 200
    assert "1 bans lifted." in step(admin_client, "ban", "lift", [ban], reason="talked")
    assert Submission.objects.get().visibility == "public"


def test_moderators_can_not_ban_the_staff(client: Client) -> None:
    moderator(client, "add_ban", "view_ban")
    admin = User.objects.create_superuser("boss")
    answer = client.post(reverse("admin:benchmark_ban_add"), {"user": admin.pk, "reason": "x"})
    assert "only a superuser" in answer.content.decode()
    assert not Ban.objects.exists()


def test_methods_are_merged(admin_client: Client, make: Any, run: Any) -> None:
    old, new = run.candidate.submission.method, make.method("beta")
    form = {"into": new.pk, "reason": "one model"}
    assert "1 submission moved." in step(admin_client, "method", "merge", [old], **form)
    assert Method.objects.get() == new
    assert Submission.objects.get().method == new


def test_a_submission_becomes_private_in_the_admin(admin_client: Client, run: Any) -> None:
    submission = run.candidate.submission
    url = reverse("admin:benchmark_submission_change", args=[submission.pk])
    form = {"visibility": "private", "source_visibility": "shown", "settings": "{}"}
    assert admin_client.post(url, form).status_code == 302
    submission.refresh_from_db()
    assert submission.visibility == "private"
    assert not Task.objects.filter(candidates__runs__countingrun__isnull=False).exists()


@pytest.mark.parametrize(
    ("model", "action", "view"),
    [
        ("task", "publish", "view_task"),
        ("task", "retire", "view_task"),
        ("task", "disable", "view_task"),
        ("task", "tasks_again", "view_task"),
        ("run", "give_verdict", "view_run"),
        ("run", "runs_again", "view_run"),
        ("method", "merge", "view_method"),
        ("method", "methods_again", "view_method"),
        ("submission", "withdraw", "view_submission"),
        ("submission", "submissions_again", "view_submission"),
        ("ban", "lift", "view_ban"),
    ],
)
def test_who_may_only_look_is_offered_no_step(
    client: Client, run: Any, model: str, action: str, view: str
) -> None:
    moderator(client, view)
    entry = run.candidate.submission
    row = {"task": run.candidate.task, "method": entry.method, "submission": entry}
    rows = [row.get(model, run)]
    page = step(client, model, action, rows, reason="r", verdict="cheat", gpus=[run.gpu_id])
    assert "No action selected" in page or 'class="actions"' not in page
    assert not Audit.objects.exists()
    assert Task.objects.current().count() == 1


@pytest.mark.parametrize("model", ["task", "run", "method", "submission", "gpu"])
def test_a_rows_page_offers_its_steps(admin_client: Client, run: Any, model: str) -> None:
    rows = {"task": run.candidate.task, "run": run, "gpu": run.gpu}
    rows |= {"submission": run.candidate.submission, "method": run.candidate.submission.method}
    page = admin_client.get(reverse(f"admin:benchmark_{model}_change", args=[rows[model].pk]))
    buttons = re.findall(r'name="action" value="(\w+)"', page.content.decode())
    assert buttons == {
        "task": ["publish", "retire", "disable", "enable", "tasks_again"],
        "run": ["give_verdict", "runs_again"],
        "method": ["merge", "methods_again"],
        "submission": ["submissions_again", "withdraw"],
    }.get(model, [])


def test_the_index_leads_to_the_queues(admin_client: Client) -> None:
    page = admin_client.get(reverse("admin:index")).content.decode()
    for address in re.findall(r'href="(/admin/[^"]*\?[^"]*|/admin/runner/job/judge-again/)"', page):
        assert admin_client.get(address).status_code == 200
    assert page.count("?") >= 3


def test_the_moderators_group_may_do_all_of_it(client: Client, run: Any) -> None:
    user = User.objects.create_user("mod", is_staff=True)
    user.groups.add(Group.objects.get(name="Moderators"))
    client.force_login(user)
    wanted = {
        "task": ["publish", "retire", "disable", "enable", "tasks_again"],
        "run": ["give_verdict", "runs_again"],
        "method": ["merge", "methods_again"],
    }
    rows = {"task": run.candidate.task, "run": run, "method": run.candidate.submission.method}
    for model, actions in wanted.items():
        page = client.get(reverse(f"admin:benchmark_{model}_change", args=[rows[model].pk]))
        buttons = re.findall(r'name="action" value="(\w+)"', page.content.decode())
        assert buttons == actions
    assert client.get(reverse("admin:benchmark_ban_add")).status_code == 200
    assert client.get(reverse("admin:runner_judge_again")).status_code == 200


def test_a_draft_offers_no_page_that_is_not_there(admin_client: Client, make: Any) -> None:
    for task, links in ((make.task(), 1), (make.task("silu", is_draft=True), 0)):
        page = admin_client.get(reverse("admin:benchmark_task_change", args=[task.pk]))
        assert page.content.decode().count(f'href="{task.get_absolute_url()}"') == links
