"""Judging again: who is chosen, what it costs, and that a confirmation asks once."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from benchmark import curation
from benchmark.models import Audit, Run, Submission, TaskVersion
from runner import dispatch, recording, rejudging
from runner.models import Device, Job
from runner.rejudging import Changed, Scope

pytestmark = pytest.mark.django_db
BOARD = {"gpu": "h200", "serial": "abc", "host": "lab"}


@pytest.fixture
def by() -> User:
    return User.objects.create_user("mod", is_staff=True)


@pytest.fixture
def site(make: Any) -> SimpleNamespace:
    """alpha with two rounds of relu, the later one by the newer judge, and beta; on an H200."""
    h200 = make.gpu()
    relu, gelu = make.task(), make.task("gelu")
    alpha, beta = make.submission(make.method("alpha")), make.submission(make.method("beta"))
    return SimpleNamespace(
        h200=h200,
        relu=relu,
        gelu=gelu,
        alpha=alpha,
        beta=beta,
        early=make.run(alpha, relu, h200, speedup=1.1, seconds={"total": 30.0}),
        late=make.run(
            alpha, relu, h200, speedup=2.0, round=1, seconds={"total": 90.0}, judge_version="10"
        ),
        gelu_run=make.run(alpha, gelu, h200, speedup=1.5, seconds={"load": 1.0, "check": 59.0}),
        beta_run=make.run(beta, relu, h200, speedup=1.5, task_digest="e" * 64, seconds={}),
    )


def runs_of(preview: rejudging.Preview) -> set[Run]:
    return set(Run.objects.filter(pk__in=[pair.run for pair in preview.pairs]))


def chosen(**scope: Any) -> set[Run]:
    return runs_of(rejudging.preview(Scope(**scope)))


def test_each_scope_chooses_its_own(site: Any) -> None:
    assert chosen(runs=(site.early.uuid,)) == {site.early}
    assert chosen(tasks=("relu",)) == {site.late, site.beta_run}
    assert chosen(tasks=("relu",), every=True) == {site.early, site.late, site.beta_run}
    assert chosen(methods=("alpha",)) == {site.late, site.gelu_run}
    assert chosen(submissions=(site.alpha.uuid,)) == {site.early, site.late, site.gelu_run}
    assert chosen(older_judge=10) == {site.gelu_run, site.beta_run}
    assert chosen(older_digest=True) == {site.beta_run}
    assert chosen(older_judge=10, methods=("alpha",)) == {site.gelu_run}
    assert chosen(tasks=("relu",), gpus=("h100",)) == set()
    assert chosen() == chosen(every=True) == chosen(gpus=("h200",)) == set()


def test_named_runs_are_judged_again_where_they_were_and_nowhere_else(make: Any, site: Any) -> None:
    h100 = make.gpu("h100")
    make.run(site.alpha, site.gelu, h100, speedup=1.2)
    there = make.run(site.beta, site.relu, h100, speedup=1.2)
    named = (site.gelu_run.uuid, there.uuid)
    assert chosen(runs=named) == {site.gelu_run, there}


def test_versions_are_numbers_not_words(site: Any) -> None:
    assert rejudging.judge_versions() == ["10", "1"]
    assert chosen(older_judge=2) == {site.gelu_run, site.beta_run}


def test_the_cost_comes_from_measured_durations(site: Any) -> None:
    Device.objects.create(gpu=site.h200, serial="a", host="x", last_seen_at=timezone.now())
    long_ago = timezone.now() - timedelta(days=1)
    Device.objects.create(gpu=site.h200, serial="b", host="x", last_seen_at=long_ago)
    preview = rejudging.preview(Scope(tasks=("relu", "gelu")))
    (cost,) = preview.costs
    # 90 s and 60 s measured; beta's relu as long as the other relu.
    assert (cost.jobs, cost.seconds, cost.guessed, cost.unknown) == (3, 240.0, 1, 0)
    assert (cost.boards, cost.wall_minutes) == (1, 4.0)
    assert preview.minutes == 4.0


def test_a_duration_that_nothing_tells_is_said_to_be_unknown(make: Any) -> None:
    gpu, task = make.gpu(), make.task()
    run = make.run(make.submission(), task, gpu)
    (cost,) = rejudging.preview(Scope(runs=(run.uuid,))).costs
    assert (cost.seconds, cost.guessed, cost.unknown) == (0.0, 0, 1)


def test_what_can_not_be_judged_is_left_out_with_the_reason(make: Any, by: User, site: Any) -> None:
    h100 = make.gpu("h100")
    other = make.submission(site.beta.method, "other")
    make.run(other, site.gelu, site.h200, speedup=1.0)
    Submission.objects.filter(pk=other.pk).update(withdrawn_at=timezone.now())
    make.run(site.alpha, site.gelu, h100, speedup=1.0)
    curation.disable([site.gelu], [h100], by, "no")
    curation.retire([site.relu], by, "no")
    Job.objects.create(candidate=site.gelu_run.candidate, gpu=site.h200)
    preview = rejudging.preview(Scope(methods=("alpha", "beta"), every=True))
    assert preview.pairs == ()
    assert preview.left_out == {
        rejudging.NOT_CURRENT: 3,
        rejudging.OPEN: 1,
        rejudging.NOT_THERE: 1,
        rejudging.WITHDRAWN: 1,
    }


def test_a_confirmation_asks_once(by: User, site: Any) -> None:
    scope = Scope(tasks=("relu",))
    seen = rejudging.preview(scope).fingerprint
    assert rejudging.ask(scope, seen, by, "a new judge") == 2
    assert Job.objects.open().count() == 2
    with pytest.raises(Changed):
        rejudging.ask(scope, seen, by, "a new judge")
    assert Job.objects.count() == 2
    messages = LogEntry.objects.values_list("change_message", flat=True)
    assert set(messages) == {"2 judgements asked for again (task relu): a new judge"}
    assert {e.get_edited_object() for e in LogEntry.objects.all()} == {site.relu, site.h200}


def test_a_confirmation_of_another_preview_asks_for_nothing(make: Any, by: User, site: Any) -> None:
    scope = Scope(tasks=("relu",))
    seen = rejudging.preview(scope).fingerprint
    make.run(site.beta, site.relu, site.h200, speedup=1.6)
    with pytest.raises(Changed):
        rejudging.ask(scope, seen, by, "a new judge")
    assert not Job.objects.exists()


def test_what_a_board_reports_after_that_is_held_when_it_is_a_record(by: User, site: Any) -> None:
    TaskVersion.objects.create(task=site.gelu, digest=site.gelu.digest)
    scope = Scope(runs=(site.gelu_run.uuid,))
    rejudging.ask(scope, rejudging.preview(scope).fingerprint, by, "again")
    job = Job.objects.get()
    assert dispatch.can_be_judged_on(job.gpu, job.candidate)
    case = {
        "case": "small-1", "kind": "small", "shape": "n=3 float32", "dtype": "float32",
        "family": "normal", "state": "passed", "verdict": "passed", "error": 0.5,
        "reference_error": 0.25, "tolerance": 4.0, "unit": "ulp", "detail": "",
    }  # fmt: skip
    report = {
        "task": "gelu", "category": "Activation", "round": 0, "device": "h200",
        "source_sha256": job.candidate.source_id, "task_digest": site.gelu.digest,
        "judge_version": "10", "verdict": "passed", "stage": "time", "detail": "",
        "speedup": 30.0, "speedup_low": 29.0, "speedup_high": 31.0, "cases": [case],
        "kernels": [{"name": "k", "calls": 2}],
        "findings": [], "seconds": {"total": 5.0}, "peak_memory_bytes": None, "log_tail": "",
        "environment": {},
    }  # fmt: skip
    run = recording.record_report(str(job.uuid), 1, BOARD, report)
    assert run is not None
    assert "former best is 1.5x" in Audit.objects.get(run=run).reason
    assert chosen(runs=(site.gelu_run.uuid,)) == {run}


# The page


URL = "/admin/runner/job/judge-again/"


@pytest.fixture
def moderator(client: Client, by: User) -> Client:
    for name in ("add_job", "view_job"):
        by.user_permissions.add(Permission.objects.get(codename=name))
    client.force_login(by)
    return client


def test_the_page_previews_and_confirms(moderator: Client, site: Any) -> None:
    address = f"{reverse('admin:runner_judge_again')}?older_judge=10"
    page = moderator.get(address)
    assert "2 judgements, about 2 min of GPU time" in page.content.decode()
    assert not Job.objects.exists()
    form = {"fingerprint": page.context["preview"].fingerprint, "reason": ""}
    assert "Say why" in moderator.post(address, form).content.decode()
    assert not Job.objects.exists()
    answer = moderator.post(address, form | {"reason": "judge 10"}, follow=True)
    assert "2 judgements asked for." in answer.content.decode()
    assert Job.objects.open().count() == 2
    again = moderator.post(address, form | {"reason": "judge 10"})
    assert "Nothing was asked for" in again.content.decode()
    assert Job.objects.count() == 2


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("?task=nothing", "There is no task nothing."),
        ("?run=7", "Write UUIDs"),
        ("?older_judge=x", "Enter a whole number"),
        ("?older_judge=1", "Nothing to judge again"),
        ("", "Preview the cost"),
    ],
)
def test_unusable_choices_are_said(moderator: Client, site: Any, query: str, words: str) -> None:
    answer = moderator.get(URL + query)
    assert answer.status_code == 200
    assert words in answer.content.decode()


def test_the_page_needs_its_permission(client: Client, by: User, site: Any) -> None:
    assert client.get(URL).status_code == 302
    client.force_login(by)
    assert client.get(URL).status_code == 403
    assert client.post(f"{URL}?task=relu", {"reason": "r"}).status_code == 403


@pytest.mark.parametrize("model", ["task", "method", "run"])
def test_actions_lead_to_the_preview(admin_client: Client, site: Any, model: str) -> None:
    row = {"task": site.relu, "method": site.alpha.method, "run": site.late}[model]
    action = {"action": f"{model}s_again", "_selected_action": [row.pk]}
    answer = admin_client.post(reverse(f"admin:benchmark_{model}_changelist"), action, follow=True)
    assert answer.context["preview"].jobs in (1, 2)
    assert answer.redirect_chain[0][0].startswith(URL)
