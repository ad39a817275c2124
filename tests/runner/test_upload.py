"""From an upload to a submission: the draft, its confirmation, who sees what, and taking back."""

import io
import json
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from django.contrib.auth.models import User
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Ban, Candidate, CountingRun, Draft, Gpu, Run, Source, Submission
from runner import drafting, notifying, submitting
from runner.commands import submit
from runner.intake import Claim, Found, Intake, Refusal, limits
from runner.models import Job

URL = "/submissions/new/"
pytestmark = pytest.mark.django_db


def kernel(entry: str, text: str = "") -> str:
    head = f"import triton\n\n@triton.jit\ndef k(x):\n    pass\n{text}\n"
    return f"{head}def {entry}(input):\n    return input\n"


@pytest.fixture
def tasks(make: Any) -> None:
    for slug in ("relu", "gelu"):
        make.task(slug)


@pytest.fixture
def ann(client: Client) -> User:
    user = User.objects.create_user("ann", "ann@example.org")
    client.force_login(user)
    return user


def upload(client: Client, text: str, name: str = "predictions.jsonl", **fields: Any) -> Any:
    entry = {"method": "My model", "kind": "model", "label": "first", "visibility": "public"}
    return client.post(URL, {**entry, "file": SimpleUploadedFile(name, text.encode()), **fields})


def line(entry: str, text: str = "", **fields: Any) -> str:
    return json.dumps({"file": f"{entry}.py", "predict": kernel(entry, text), **fields}) + "\n"


def drafted(client: Client, *args: Any, **fields: Any) -> str:
    """The address of the draft of an upload."""
    response = upload(client, *args, **fields)
    assert response.status_code == 302, response.content.decode()
    return str(response.url)


def page_of(client: Client, url: str) -> str:
    return str(client.get(url).content.decode())


def submitted(client: Client, *args: Any, **fields: Any) -> Submission:
    client.post(drafted(client, *args, **fields) + "confirm/")
    return Submission.objects.latest("id")


# The draft


def test_a_draft_says_what_maps_where_and_stores_no_submission(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    text = line("relu") + line("gelu", round=1) + line("relv") + line("relu", "# other") + "{"
    page = page_of(client, drafted(client, text))
    assert "predictions.jsonl line 1" in page
    assert "2 <small>candidates" in page
    assert "<strong>2</strong> on h200" in page
    assert "did you mean relu" in page
    assert "a second candidate for relu" in page
    assert "predictions.jsonl line 5" in page
    assert "1 unknown task<" in page
    assert "1 duplicate<" in page
    assert "Left of today" in page
    assert not Submission.objects.exists()
    assert not Candidate.objects.exists()
    assert not Source.objects.exists()


def test_a_draft_is_confirmed_once_however_often_it_is_asked(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    url = drafted(client, line("relu"))
    there = [client.post(url + "confirm/").url for _ in range(3)]
    assert there == [f"/submissions/{Submission.objects.get().uuid}/"] * 3
    assert Job.objects.count() == Candidate.objects.count() == 1
    assert client.get(url).url == there[0]
    assert bytes(Draft.objects.get().content) == b""


def test_a_draft_needs_a_post_to_be_confirmed_or_discarded(
    client: Client, tasks: None, ann: User
) -> None:
    url = drafted(client, line("relu"))
    assert client.get(url + "confirm/").status_code == 405
    assert client.get(url + "discard/").status_code == 405
    assert client.post(url + "discard/").url == URL
    assert client.get(url).status_code == 404


def test_forms_are_refused_without_their_token(tasks: None, ann: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ann)
    assert upload(strict, line("relu")).status_code == 403
    assert not Draft.objects.exists()


def test_a_draft_is_for_its_author_alone(client: Client, tasks: None, ann: User) -> None:
    url = drafted(client, line("relu"))
    other = Client()
    for _ in range(2):
        assert other.get(url).status_code == 404
        assert other.post(url + "confirm/").status_code == 404
        assert other.post(url + "discard/").status_code == 404
        other.force_login(User.objects.get_or_create(username="bob")[0])
    assert client.get(url).status_code == 200


def test_a_strangers_draft_becomes_the_submission_of_who_signs_in(
    client: Client, tasks: None
) -> None:
    url = drafted(client, line("relu"))
    bob = User.objects.create_user("bob")
    client.force_login(bob)
    client.post(url + "confirm/")
    assert Submission.objects.get().submitted_by == bob


def test_a_closed_site_confirms_no_strangers_draft(
    client: Client, tasks: None, settings: Any
) -> None:
    url = drafted(client, line("relu"))
    settings.KBX_OPEN_SUBMISSIONS = False
    assert client.post(url + "confirm/").status_code == 403


def test_open_drafts_are_named_on_the_form_and_on_me_to_their_author_alone(
    client: Client, tasks: None, ann: User
) -> None:
    url = drafted(client, line("relu"), label="<i>first")
    assert url in page_of(client, URL)
    assert url not in page_of(Client(), URL)
    mine = page_of(client, "/me/")
    assert url in mine
    assert "<i>first" not in mine
    assert client.post(url + "discard/", {"back": "me"}).url == "/me/"
    assert "Checked, not submitted" not in page_of(client, "/me/")
    url = drafted(client, line("relu"))
    client.post(url + "confirm/")
    assert url not in page_of(client, URL)
    assert url not in page_of(client, "/me/")


def test_a_banned_account_is_told_on_the_draft(client: Client, tasks: None, ann: User) -> None:
    url = drafted(client, line("relu"))
    Ban.objects.create(user=ann, reason="spam")
    assert "confirm/" not in page_of(client, url)
    assert client.post(url + "confirm/").status_code == 400
    assert not Submission.objects.exists()


def test_drafts_are_few_and_go_after_a_day(
    client: Client, tasks: None, ann: User, monkeypatch: Any
) -> None:
    monkeypatch.setattr(drafting, "MOST_OPEN", 2)
    urls = [drafted(client, line("relu"), label=str(at)) for at in range(3)]
    assert [client.get(url).status_code for url in urls] == [404, 200, 200]
    old = timezone.now() - drafting.KEPT_OPEN - timedelta(minutes=1)
    Draft.objects.filter(label="1").update(created_at=old)
    assert drafting.sweep() == 1
    assert [client.get(url).status_code for url in urls] == [404, 404, 200]


def test_a_draft_comes_back_as_it_was_read(make: Any, tasks: None) -> None:
    intake = Intake(
        (Found("relu", 0, "# \u00e9\ud7ff\n", "a \u2028", ("note",)),),
        (Refusal("b", "no", "yes", "duplicate"),),
        (Claim("gelu", 1, "time", True, "c", "d" * 64, 1.5, True, {"gbs": 2.0}, "x"),),
    )
    draft = drafting.make(drafting.Entry("M", "model", "a"), intake, None)
    held = drafting.read(Draft.objects.get(pk=draft.pk))
    assert held == intake
    assert held.refusals[0].kind == "duplicate"


def test_another_persons_label_is_said_on_the_draft(client: Client, tasks: None, ann: User) -> None:
    submitted(client, line("relu"))
    client.force_login(User.objects.create_user("bob"))
    url = drafted(client, line("gelu"))
    page = page_of(client, url)
    assert "use another label" in page
    assert "confirm/" not in page
    assert client.post(url + "confirm/").status_code == 400
    assert Candidate.objects.count() == 1


def test_more_than_the_quota_is_said_before_and_refused_after(
    client: Client, tasks: None, h200: Gpu, ann: User, settings: Any
) -> None:
    settings.KBX_QUOTA_PER_DAY = 1
    url = drafted(client, line("relu") + line("gelu"))
    assert "are more than the 1 left" in page_of(client, url)
    assert client.post(url + "confirm/").status_code == 400
    assert not Submission.objects.exists()


# Rounds


def test_rounds_are_added_under_the_same_label(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    first = submitted(client, line("relu"))
    page = page_of(client, f"/submissions/{first.uuid}/")
    assert "Add round 1" in page
    assert 'value="My model"' in page_of(client, URL + "?method=My+model&label=first&round=1")
    url = drafted(client, line("relu", "# 1"), round="1", visibility="unlisted")
    assert "Adds to" in page_of(client, url)
    client.post(url + "confirm/")
    assert list(first.candidates.values_list("round", flat=True)) == [0, 1]
    first.refresh_from_db()
    assert first.visibility == "public"


def test_the_same_again_is_said_to_be_there_and_another_source_clashes(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    submitted(client, line("relu"))
    again = page_of(client, drafted(client, line("relu")))
    assert "All of it is there already" in again
    other = drafted(client, line("relu", "# other"))
    assert "clash" in page_of(client, other)
    assert client.post(other + "confirm/").status_code == 400
    assert Candidate.objects.count() == 1


# Who sees what


def test_a_private_submission_is_published_later(
    client: Client, tasks: None, h200: Gpu, ann: User, make: Any
) -> None:
    made = submitted(client, line("relu"), visibility="private")
    judged(make)
    url = f"/submissions/{made.uuid}/"
    assert Client().get(url).status_code == 404
    assert not CountingRun.objects.exists()
    assert "Only you and the moderators" in page_of(client, url)
    change = {"visibility": "public", "source_visibility": "hidden"}
    assert Client().post(url + "visibility/", change).status_code == 404
    client.post(url + "visibility/", change)
    assert Client().get(url).status_code == 200
    assert CountingRun.objects.count() == 1
    client.post(url + "visibility/", change | {"visibility": "unlisted"})
    assert not CountingRun.objects.exists()
    assert Client().get(url).status_code == 200


@pytest.mark.parametrize(
    "change", [{}, {"visibility": "all", "source_visibility": "shown"}, {"visibility": "public"}]
)
def test_no_such_visibility_changes_nothing(
    client: Client, tasks: None, ann: User, change: dict[str, str]
) -> None:
    made = submitted(client, line("relu"), visibility="private")
    response = client.post(f"/submissions/{made.uuid}/visibility/", change, follow=True)
    assert "choose one of the list" in response.content.decode()
    made.refresh_from_db()
    assert made.visibility == "private"


def test_nobodys_submission_can_not_become_private(tasks: None, make: Any) -> None:
    from benchmark.models import Method

    made = submitting.accept(Method(slug="m", name="M"), "a", make.intake("relu"))
    with pytest.raises(submitting.SubmissionRefused, match="nobody"):
        submitting.change_visibility(made, "private", "shown")


def test_only_the_owner_manages(client: Client, tasks: None, h200: Gpu, ann: User) -> None:
    made = submitted(client, line("relu"))
    visitor = Client()
    for _ in range(2):
        for what in ("cancel", "visibility", "withdraw"):
            assert visitor.post(f"/submissions/{made.uuid}/{what}/").status_code == 403
        assert "Manage" not in page_of(visitor, f"/submissions/{made.uuid}/")
        visitor.force_login(User.objects.get_or_create(username="bob")[0])
    assert Job.objects.get().state == vocabulary.QUEUED


CANARY = "canary_5c1d"


def test_a_hidden_source_is_in_no_answer_of_the_run(
    client: Client, tasks: None, h200: Gpu, ann: User, make: Any
) -> None:
    made = submitted(client, line("relu", f"# {CANARY}"), source_visibility="hidden")
    run = judged(
        make,
        verdict="call-error",
        stage="call",
        detail=f"CompilationError: at 3:4: {CANARY}",
        log_tail=f"Traceback: {CANARY}",
    )
    urls = [f"/runs/{run.uuid}/", f"/submissions/{made.uuid}/", "/tasks/relu/"]
    source = f"/runs/{run.uuid}/source.py"
    for url in urls:
        assert CANARY not in page_of(Client(), url)
    assert "without the source" in page_of(Client(), urls[0])
    assert Client().get(source).status_code == 404
    assert CANARY in page_of(client, urls[0])
    assert CANARY in page_of(client, source)
    submitting.change_visibility(made, "public", "shown")
    assert CANARY in page_of(Client(), urls[0])


# The end, and taking back


def judged(make: Any, **changes: Any) -> Run:
    """Let the one open job end with a report."""
    from runner import recording

    job = Job.objects.get(state=vocabulary.QUEUED)
    device = {
        "gpu": job.gpu.slug, "name": job.gpu.name, "serial": "s", "host": "h",
        "architecture": "sm_90", "memory": 1,
    }  # fmt: skip
    run = recording.record_report(str(job.uuid), 1, device, make.report(job, **changes))
    assert run is not None
    return run


def test_its_submitter_gets_one_mail_when_all_is_judged(
    client: Client, tasks: None, h200: Gpu, ann: User, make: Any
) -> None:
    made = submitted(client, line("relu"), visibility="private")
    assert notifying.sweep() == 0
    judged(make)
    assert [notifying.sweep(), notifying.sweep()] == [1, 0]
    (sent,) = mail.outbox
    assert sent.to == ["ann@example.org"]
    assert sent.subject == "Judged: My model, first"
    assert "H200: 1 passed" in sent.body
    assert f"/submissions/{made.uuid}/" in sent.body
    submitted(client, line("relu", "# 1"), round="1")
    judged(make)
    assert notifying.sweep() == 1


def test_a_mail_that_could_not_be_sent_is_tried_again(
    client: Client, tasks: None, h200: Gpu, ann: User, make: Any, settings: Any
) -> None:
    submitted(client, line("relu"))
    judged(make)
    usual = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9  # nobody listens there
    assert notifying.sweep() == 0
    settings.EMAIL_BACKEND = usual
    assert notifying.sweep() == 1


def test_nobody_is_mailed_without_an_address_or_after_cancelling(
    client: Client, tasks: None, h200: Gpu, ann: User, make: Any
) -> None:
    User.objects.update(email="")
    submitted(client, line("relu"))
    judged(make)
    User.objects.update(email="ann@example.org")
    Submission.objects.update(submitted_by=None)
    assert notifying.sweep() == 0
    made = submitted(client, line("gelu"), label="second")
    client.post(f"/submissions/{made.uuid}/cancel/")
    assert notifying.sweep() == 0


def test_cancelling_takes_back_what_is_not_judged_and_leaves_the_rest(
    client: Client, tasks: None, h200: Gpu, ann: User, make: Any
) -> None:
    made = submitted(client, line("relu"))
    judged(make)
    submitted(client, line("gelu"))
    response = client.post(f"/submissions/{made.uuid}/cancel/", follow=True)
    assert "1 judgements taken back" in response.content.decode()
    assert submitting.progress(made) == {
        "queued": 0, "running": 0, "done": 1, "declined": 0, "lost": 0, "cancelled": 1,
    }  # fmt: skip
    assert Run.objects.count() == 1


def test_a_withdrawn_submission_is_a_tombstone_that_nothing_brings_back(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    made = submitted(client, line("relu"))
    client.post(f"/submissions/{made.uuid}/withdraw/")
    assert "Withdrawn" in page_of(Client(), f"/submissions/{made.uuid}/")
    change = {"visibility": "public", "source_visibility": "shown"}
    client.post(f"/submissions/{made.uuid}/visibility/", change)
    assert not Submission.objects.listed().exists()
    assert "was withdrawn" in page_of(client, drafted(client, line("gelu")))


# Claims


def metrics(**speedups: float | None) -> str:
    return json.dumps(
        {
            f"Math/{name}.py": {
                "call_ok": True, "exe_ok": value is not None, "perf_ok": value is not None,
                "speedup": value, "runtime_ms": 0.5, "dtype": "float32", "code": kernel(name),
            }
            for name, value in speedups.items()
        }
    )  # fmt: skip


def test_claimed_results_stay_in_their_lane(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    url = drafted(client, metrics(relu=3.0, gelu=None), "metrics.json")
    page = page_of(client, url)
    assert "kept as claimed" in page
    assert "Submit 2 claimed results" in page
    assert client.post(url + "confirm/").status_code == 400  # on which GPU?
    assert not Submission.objects.exists()
    there = client.post(url + "confirm/", {"claimed_on": "h200"}).url
    runs = {run.candidate.task.slug: run for run in Run.objects.all()}
    assert {run.origin for run in runs.values()} == {vocabulary.CLAIMED}
    assert (runs["relu"].verdict, runs["relu"].speedup) == ("passed", 3.0)
    assert (runs["gelu"].verdict, runs["gelu"].speedup) == ("wrong-values", None)
    assert not Job.objects.exists()
    assert {source.is_stored for source in Source.objects.all()} == {False}
    assert set(CountingRun.objects.values_list("origin", flat=True)) == {vocabulary.CLAIMED}
    page = page_of(client, there)
    assert "Claimed, not measured here" in page
    assert "Claimed only" in page
    board = page_of(Client(), "/leaderboard/?gpu=h200")
    assert "3.00x" not in board
    assert "3.00x" in page_of(Client(), "/leaderboard/?gpu=h200&lane=claimed")
    assert "Claimed, not measured here" in page_of(Client(), f"/runs/{runs['relu'].uuid}/")


def test_the_same_claims_again_change_nothing_and_predictions_complete_them(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    for _ in range(2):
        url = drafted(client, metrics(relu=3.0), "metrics.json")
        client.post(url + "confirm/", {"claimed_on": "h200"})
    assert Run.objects.count() == 1
    submitted(client, line("relu"))
    assert Candidate.objects.count() == 1
    assert Candidate.objects.get().source.is_stored
    assert Job.objects.get().candidate == Candidate.objects.get()


def test_predictions_and_their_claims_come_in_one_archive(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("out/relu.py", kernel("relu"))
        archive.writestr("out/metrics.json", metrics(relu=3.0).replace(kernel("relu"), ""))
        archive.writestr("out/summary.json", "{}")
    file = SimpleUploadedFile("out.zip", buffer.getvalue())
    url = drafted(client, "", file=file)
    client.post(url + "confirm/", {"claimed_on": "h200"})
    candidate = Candidate.objects.get()
    assert candidate.runs.get().origin == vocabulary.CLAIMED
    assert Job.objects.get().candidate == candidate


def test_claims_without_a_source_are_left_out_with_the_reason(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    text = json.dumps({"relu.py": {"call_ok": True, "exe_ok": True, "perf_ok": False}})
    page = page_of(client, drafted(client, text, "metrics.json"))
    assert "without the sources that they are about" in page
    assert "confirm/" not in page


# Hostile and large


HOSTILE = "=cmd|'/c calc'!A1<script>alert(1)</script>"


def test_hostile_names_are_text_everywhere(
    client: Client, tasks: None, h200: Gpu, ann: User
) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr(f"{HOSTILE}/relu.py", kernel("relu"))
        packed.writestr(f"{HOSTILE}.exe", "MZ")
    file = SimpleUploadedFile("a.zip", archive.getvalue())
    url = drafted(client, "", file=file, method=HOSTILE, label=HOSTILE)
    assert "<script>alert" not in page_of(client, url)
    there = client.post(url + "confirm/").url
    assert "<script>alert" not in page_of(client, there)
    assert Submission.objects.get().label == HOSTILE


def test_three_rounds_of_176_tasks_take_few_queries_from_upload_to_submission(
    client: Client, h200: Gpu, ann: User, make: Any, django_assert_max_num_queries: Any
) -> None:
    names = [make.task(f"task_{at}").slug for at in range(176)]
    text = "".join(line(name, round=number) for name in names for number in range(3))
    with django_assert_max_num_queries(20):
        url = drafted(client, text)
    with django_assert_max_num_queries(80):
        client.post(url + "confirm/")
    assert Candidate.objects.count() == Job.objects.count() == 528


def test_nothing_of_an_upload_reaches_a_disk(
    client: Client, tasks: None, h200: Gpu, ann: User, tmp_path: Any, settings: Any
) -> None:
    """Django would spool what is larger than 2.5 MiB, if it were not told to hold it."""
    settings.FILE_UPLOAD_TEMP_DIR = str(tmp_path / "gone")
    text = "".join(line("relu", round=number, prompt="x" * 1_000_000) for number in range(4))
    assert limits.MAX_UPLOAD_BYTES > len(text) > 2.5 * limits.MIB
    assert submitted(client, text).candidates.count() == 4


# Commands


def test_import_submission_shows_its_plan_and_dry_runs(
    tasks: None, h200: Gpu, tmp_path: Any, capsys: Any
) -> None:
    (tmp_path / "metrics.json").write_text(metrics(gelu=2.0))
    (tmp_path / "relu.py").write_text(kernel("relu"))
    arguments = ["import_submission", str(tmp_path), "--method", "Mine"]
    call_command(*arguments, "--dry-run")
    said = capsys.readouterr()
    assert "1 to be judged, 1 claimed" in said.err
    assert "judged on h200 (1)" in said.err
    assert "nothing was submitted" in said.out
    assert not Submission.objects.exists()
    with pytest.raises(CommandError, match="GPU"):
        call_command(*arguments)
    call_command(
        *arguments, "--claimed-on", "h200", "--visibility", "unlisted", "--sources", "hidden",
        "--round", "2",
    )  # fmt: skip
    made = Submission.objects.get()
    assert (made.visibility, made.source_visibility) == ("unlisted", "hidden")
    assert set(made.candidates.values_list("round", flat=True)) == {2}
    assert str(tmp_path) not in json.dumps(made.notes)


@pytest.mark.django_db(transaction=True)
def test_kbx_submit_shows_the_plan_and_submits_it_once(
    live_server: Any, h200: Gpu, make: Any, tmp_path: Any
) -> None:
    make.task("relu")
    (tmp_path / "relu.py").write_text(kernel("relu"))
    (tmp_path / "relv.py").write_text(kernel("relv"))
    arguments = [str(tmp_path), "--method", "Mine", "--site", live_server.url]
    dry = CliRunner().invoke(submit.command, [*arguments, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert "found 1 tasks: 1 to be judged, 1 not taken" in dry.output
    assert "did you mean relu" in dry.output
    assert "judged on h200 (1)" in dry.output
    assert "nothing was submitted" in dry.output
    assert not Submission.objects.exists()
    first, again = (CliRunner().invoke(submit.command, [*arguments, "--yes"]) for _ in range(2))
    assert first.exit_code == again.exit_code == 0, first.output + again.output
    assert "all of it is there already" in again.output
    assert Job.objects.get().candidate.submission.method.name == "Mine"
    other = CliRunner().invoke(
        submit.command,
        [*arguments, "--label", "x", "--sources", "hidden", "--visibility", "unlisted"],
    )
    assert other.exit_code == 0, other.output
    made = Submission.objects.get(label="x")
    assert (made.visibility, made.source_visibility) == ("unlisted", "hidden")


@pytest.mark.django_db(transaction=True)
def test_kbx_submit_says_what_it_needs_before_it_submits(
    live_server: Any, h200: Gpu, make: Any, tmp_path: Any
) -> None:
    make.task("relu")
    (tmp_path / "metrics.json").write_text(metrics(relu=2.0))
    arguments = [str(tmp_path / "metrics.json"), "--method", "Mine", "--site", live_server.url]
    refused = CliRunner().invoke(submit.command, arguments)
    assert refused.exit_code == 2
    assert "--claimed-on" in refused.output
    assert not Submission.objects.exists()
    unknown = CliRunner().invoke(submit.command, [*arguments, "--claimed-on", "abacus"])
    assert unknown.exit_code == 1
    assert "no GPU is called" in unknown.output
    done = CliRunner().invoke(submit.command, [*arguments, "--claimed-on", "h200"])
    assert done.exit_code == 0, done.output
    assert Run.objects.get().origin == vocabulary.CLAIMED
