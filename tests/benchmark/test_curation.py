"""What moderators decide: each operation whole or not at all, logged, and true on the pages."""

from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from benchmark import aggregates, contracts, curation, vocabulary
from benchmark.curation import Refused
from benchmark.models import Audit, Ban, Board, Immutable, Method, Submission, Task
from leaderboard import kept
from leaderboard.filters import Choice
from leaderboard.selectors import board as boards
from leaderboard.selectors import methods
from runner.models import Job, Quota

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _forget() -> None:
    kept.forget()


@pytest.fixture
def by() -> User:
    return User.objects.create_user("mod", is_staff=True)


@pytest.fixture
def site(make: Any) -> SimpleNamespace:
    """alpha is faster on two tasks than beta, on an H200 and an H100."""
    h200, h100 = make.gpu(), make.gpu("h100")
    relu, gelu = make.task(), make.task("gelu")
    alpha, beta = make.submission(make.method("alpha")), make.submission(make.method("beta"))
    runs = [
        make.run(of, on, where, speedup=speed)
        for of, speed in ((alpha, 2.0), (beta, 1.5))
        for on in (relu, gelu)
        for where in (h200, h100)
    ]
    return SimpleNamespace(
        h200=h200, h100=h100, relu=relu, gelu=gelu, alpha=alpha, beta=beta, runs=runs
    )


def standings(gpu: Any) -> list[tuple[str, int, int]]:
    """(method, solved, of tasks) as the board of this GPU has them."""
    row = next(g for g in boards.gpus() if g.id == gpu.pk)
    _, board = kept.board(Board.current(), Choice(gpu=row))
    return [(s.method.slug, s.funnel.correct, s.funnel.tasks) for s in board.standings]


def drift() -> bool:
    return any(aggregates.compare(method) for method in Method.objects.all())


def logged(row: Any) -> list[str]:
    entries = LogEntry.objects.filter(object_id=str(row.pk)).order_by("id")
    return [e.change_message for e in entries if e.get_edited_object() == row]


# Tasks


def test_a_draft_is_nowhere_until_it_is_published(
    make: Any, by: User, client: Client, site: Any
) -> None:
    draft = make.task("silu", is_draft=True)
    assert standings(site.h200)[0] == ("alpha", 2, 2)
    assert client.get("/tasks/silu/").status_code == 404
    assert b"silu" not in client.get("/tasks/").content
    assert curation.publish([draft], by, "proven: 12 of 12 mutants killed") == 1
    assert standings(site.h200)[0] == ("alpha", 2, 3)
    assert client.get("/tasks/silu/").status_code == 200
    assert logged(draft) == ["Published, was draft: proven: 12 of 12 mutants killed"]
    assert curation.publish([draft], by, "again") == 0


def test_a_retired_task_stays_retired_when_the_suite_is_brought_in(by: User) -> None:
    call_command("sync_tasks")
    relu = Task.objects.get(slug="relu")
    curation.retire([relu], by, "its reference is wrong")
    call_command("sync_tasks")
    relu.refresh_from_db()
    assert (relu.state, relu.stays_retired) == (vocabulary.RETIRED, True)
    curation.publish([relu], by, "mended")
    call_command("sync_tasks")
    relu.refresh_from_db()
    assert relu.state == vocabulary.LIVE


def test_a_new_task_of_a_site_that_has_tasks_is_a_draft(make: Any) -> None:
    make.task("left-the-suite", "math")
    call_command("sync_tasks")
    assert set(Task.objects.values_list("is_draft", flat=True).exclude(slug="left-the-suite")) == {
        True
    }
    assert not Task.objects.current().exists()
    Task.objects.filter(slug="relu").delete()
    call_command("sync_tasks", "--publish")
    assert [task.slug for task in Task.objects.current()] == ["relu"]


def test_a_draft_can_not_be_retired(make: Any, by: User, site: Any) -> None:
    draft = make.task("silu", is_draft=True)
    with pytest.raises(Refused):
        curation.retire([site.relu, draft], by, "no")
    site.relu.refresh_from_db()
    assert site.relu.state == vocabulary.LIVE


def test_a_disabled_task_counts_nowhere_on_its_gpu(by: User, client: Client, site: Any) -> None:
    assert curation.disable([site.relu], [site.h200], by, "no fp8 there") == 1
    assert standings(site.h200) == [("alpha", 1, 1), ("beta", 1, 1)]
    assert standings(site.h100) == [("alpha", 2, 2), ("beta", 2, 2)]
    page = client.get("/tasks/relu/").content.decode()
    assert "no fp8 there" in page
    assert page.count("not applicable") >= 2  # alpha's and beta's cells
    assert not drift()
    alpha = boards.method_row(site.alpha.method)
    on, _ = methods.on_gpus(alpha, boards.gpus())
    assert {g.gpu.slug: g.funnel.tasks for g in on} == {"h200": 1, "h100": 2}
    assert curation.disable([site.relu], [site.h200], by, "again") == 0
    assert curation.enable([site.relu], [site.h200], by, "driver mended") == 1
    assert standings(site.h200) == [("alpha", 2, 2), ("beta", 2, 2)]
    assert [words.split(":")[0] for words in logged(site.relu)] == [
        "Disabled on H200",
        "Enabled on H200",
    ]


def test_what_changed_between_versions_is_told() -> None:
    cases = [{"name": "small", "shape": "n=3"}, {"name": "large", "shape": "n=9"}]
    old = {"tolerance": "4 ulp", "cases": cases, "signature": "f(x)"}
    new = {"tolerance": "2 ulp", "cases": [cases[0], {"name": "large", "shape": "n=8"}]}
    found = contracts.changes(old, new | {"signature": "f(x)"}, "a = 1\nb = 2", "a = 1\nb = 3")
    assert {change.what: change.lines for change in found} == {
        "tolerance": ("- 4 ulp", "+ 2 ulp"),
        "cases": ("- large · n=9", "+ large · n=8"),
        "reference source": ("@@ -1,2 +1,2 @@", " a = 1", "-b = 2", "+b = 3"),
    }
    assert contracts.changes({}, new, "same", "same") == ()


# Verdicts


def test_a_rejected_run_changes_the_ranking_and_says_why(
    by: User, client: Client, site: Any
) -> None:
    on_h200 = [run for run in site.runs if run.gpu_id == site.h200.pk]
    done = curation.review(on_h200[:1], by, "cheat", "It returns a cached answer.", "See line 3.")
    assert done == 1
    assert standings(site.h200) == [("beta", 2, 2), ("alpha", 1, 2)]
    page = client.get(on_h200[0].get_absolute_url()).content.decode()
    assert "It returns a cached answer." in page
    assert "See line 3." in page
    assert not drift()
    assert logged(on_h200[0]) == ["Verdict cheat: It returns a cached answer."]
    assert curation.review(on_h200[:1], by, "cheat", "again") == 0
    curation.review(on_h200[:1], by, "clean", "we were wrong")
    assert standings(site.h200)[0] == ("alpha", 2, 2)
    assert [a.verdict for a in on_h200[0].audits.all()] == ["clean", "cheat"]
    with pytest.raises(Immutable):
        on_h200[0].audits.get(verdict="cheat").save()


def test_a_bulk_verdict_is_whole_or_not_at_all(by: User, site: Any) -> None:
    with pytest.raises(Exception, match="audit_has_a_reason"):
        curation.review(site.runs, by, "cheat", "")
    assert not Audit.objects.exists()
    assert curation.review(site.runs, by, "suspect", "same source everywhere") == len(site.runs)
    assert standings(site.h200) == []


def test_the_queue_holds_suspects_and_held_runs(make: Any, by: User, site: Any) -> None:
    silu = make.task("silu")
    suspect = make.run(site.beta, silu, site.h200, speedup=9.0, is_suspect=True)
    Audit.objects.create(run=site.runs[0], verdict="held", reason="a record")
    assert set(curation.waiting()) == {suspect, site.runs[0]}
    assert set(curation.suspected()) == {suspect}
    curation.review(curation.waiting(), by, "clean", "profiled it")
    assert not curation.waiting().exists()


# Accounts


@pytest.fixture
def author(site: Any) -> User:
    user = User.objects.create_user("author")
    Submission.objects.filter(pk=site.alpha.pk).update(submitted_by=user)
    return user


def test_a_ban_hides_what_is_there_and_lifting_brings_it_back(
    by: User, author: User, site: Any
) -> None:
    Submission.objects.filter(pk=site.beta.pk).update(
        submitted_by=author, visibility=vocabulary.UNLISTED
    )
    ban = curation.ban(author, by, "spam", hide=True)
    assert set(Submission.objects.values_list("visibility", flat=True)) == {vocabulary.PRIVATE}
    assert not drift()
    with pytest.raises(Refused, match="spam"):
        curation.refuse_banned(author)
    with pytest.raises(Refused, match="already"):
        curation.ban(author, by, "spam", hide=True)
    assert curation.lift([ban], by, "talked") == 1
    curation.refuse_banned(author)
    site.alpha.refresh_from_db()
    site.beta.refresh_from_db()
    assert (site.alpha.visibility, site.beta.visibility) == ("public", "unlisted")
    assert len(logged(author)) == 2


def test_a_ban_may_keep_what_is_there(by: User, author: User, site: Any) -> None:
    curation.ban(author, by, "spam", hide=False)
    assert standings(site.h200)[0] == ("alpha", 2, 2)


def test_moderators_ban_neither_themselves_nor_the_staff(by: User) -> None:
    other = User.objects.create_user("other", is_staff=True)
    for user in (by, other):
        with pytest.raises(Refused):
            curation.ban(user, by, "no", hide=False)
    assert not Ban.objects.exists()


# Methods


def test_merging_moves_submissions_and_leads_the_old_address_on(
    make: Any, by: User, client: Client, site: Any
) -> None:
    alpha, beta = site.alpha.method, site.beta.method
    assert curation.merge([alpha], beta, by, "one model, two names") == 1
    assert standings(site.h200) == [("beta", 2, 2)]
    labels = set(beta.submissions.values_list("label", flat=True))
    assert labels == {"first", "first (alpha)"}
    answer = client.get("/methods/alpha/")
    assert (answer.status_code, answer["Location"]) == (301, "/methods/beta/")
    assert curation.merged_by_name("ALPHA") == beta
    assert not drift()
    assert logged(beta) == ["alpha merged into beta: one model, two names"]


def test_a_merge_of_a_merge_leads_to_the_last(make: Any, by: User, site: Any) -> None:
    gamma = make.method("gamma")
    curation.merge([site.alpha.method], site.beta.method, by, "a")
    curation.merge([site.beta.method], gamma, by, "b")
    assert {curation.merged("alpha"), curation.merged("beta")} == {gamma}
    with pytest.raises(Refused):
        curation.merge([gamma], gamma, by, "c")


def test_a_redirect_shows_nothing_private(client: Client, by: User, site: Any) -> None:
    curation.merge([site.alpha.method], site.beta.method, by, "a")
    for submission in Submission.objects.all():
        curation._show(submission, vocabulary.PRIVATE)
    assert client.get("/methods/alpha/").status_code == 404


def test_labels_never_clash_nor_grow_too_long() -> None:
    taken = {"x" * 80, "x" * 76 + " (m)"}
    assert curation._free_label("x" * 80, "m", taken) == "x" * 74 + " (m 2)"
    assert curation._free_label("new", "m", taken) == "new"


def test_what_is_taken_out_of_judging_takes_its_open_jobs_along(by: User, site: Any) -> None:
    author = User.objects.create_user("author")
    site.alpha.submitted_by = author
    site.alpha.save()

    def queued(gpu: Any) -> Job:
        Job.objects.all().delete()
        candidate = site.alpha.candidates.get(task=site.relu)
        return Job.objects.create(
            candidate=candidate, gpu=gpu, quota=Quota.objects.create(
                user=author, gpu=gpu, day=date.fromordinal(1 + Quota.objects.count()), used=1
            ),
        )  # fmt: skip

    steps = {
        "on this GPU: slow": lambda: curation.disable([site.relu], [site.h200], by, "slow"),
        "was retired: old": lambda: curation.retire([site.relu], by, "old"),
        "may not submit": lambda: curation.ban(author, by, "spam", hide=False),
    }
    for reason, step in steps.items():
        job = queued(site.h200)
        charged = job.quota
        step()
        job.refresh_from_db()
        charged.refresh_from_db()
        assert (job.state, charged.used) == ("cancelled", 0)
        assert reason in job.reason
    elsewhere = queued(site.h100)
    curation.disable([site.gelu], [site.h200], by, "slow")
    elsewhere.refresh_from_db()
    assert elsewhere.state == "queued"
