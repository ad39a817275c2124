"""The way in by browser: the form, what it refuses and why, progress, jobs, the queue."""

import json

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from benchmark import vocabulary
from benchmark.models import Candidate, Draft, Method, Source, Submission, Task
from runner.models import Device, Job

URL = "/submissions/new/"
KERNEL = "import triton\n\n@triton.jit\ndef k(x):\n    pass\n\ndef relu(input):\n    return input\n"
pytestmark = pytest.mark.django_db


@pytest.fixture
def relu() -> Task:
    return Task.objects.create(slug="relu", category="activation", difficulty=1, digest="d" * 64)


@pytest.fixture
def waiting(h200, relu) -> Submission:
    """A submission with one job in the queue and one under judgement on the same GPU."""
    method = Method.objects.create(slug="m", name="M")
    made = Submission.objects.create(method=method, label="one")
    source = Source.objects.create(sha256=Source.digest(KERNEL), text=KERNEL, size=len(KERNEL))
    for number, state in enumerate((vocabulary.RUNNING, vocabulary.QUEUED)):
        candidate = Candidate.objects.create(
            submission=made, task=relu, round=number, source=source
        )
        now = timezone.now()
        Job.objects.create(
            candidate=candidate, gpu=h200, state=state, sent_at=now, lease_expires_at=now
        )
    return made


def entry(**changes):
    fields = {"method": "My model", "kind": "model", "label": "first", "visibility": "public"}
    return {**fields, **changes}


def upload(text: str, name: str) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def send(client, **fields):
    """Upload and confirm, as a visitor does on two pages; the last answer."""
    draft = client.post(URL, fields)
    return client.post(f"{draft.url}confirm/") if draft.status_code == 302 else draft


def errors(response) -> str:
    assert response.status_code == 400
    return response.content.decode()


def test_the_form_says_its_limits_and_lists_the_tasks(client, relu):
    page = client.get(URL).content.decode()
    assert "32 MiB" in page
    assert '<option value="relu">' in page


def test_a_file_becomes_a_submission_and_its_jobs(client, h200, relu, committed):
    with committed():
        response = send(client, **entry(file=upload(KERNEL, "relu.py")))
    made = Submission.objects.get()
    assert response.url == f"/submissions/{made.uuid}/"
    assert Job.objects.get().candidate.task == relu
    page = client.get(response.url).content.decode()
    assert "Judging: 0 of 1" in page
    assert "hx-trigger" in page


def test_pasted_jsonl_and_pasted_python_are_taken(client, h200, relu, committed):
    line = json.dumps({"file": "relu.py", "predict": KERNEL})
    with committed():
        send(client, **entry(text=line))
        send(client, **entry(text=KERNEL, task="relu", label="second"))
    assert [s.candidates.get().task for s in Submission.objects.all()] == [relu, relu]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Choose a file or paste text"),
        ({"text": KERNEL}, "needs the name of its task"),
        ({"text": KERNEL.replace("relu", "nothing"), "task": "nothing"}, "nothing"),
        ({"text": "{}", "method": ""}, "required"),
        ({"text": "{}", "method": "!!!"}, "name a method"),
        ({"text": KERNEL, "task": "relu", "visibility": "private"}, "nobody could open"),
        ({"text": KERNEL, "task": "relu", "visibility": "everybody"}, "valid choice"),
    ],
)
def test_what_cannot_be_taken_is_said_with_its_place(client, relu, changes, said):
    assert said in errors(client.post(URL, entry(**changes)))
    assert not Submission.objects.exists()


def test_refused_lines_are_named_by_place(client, relu):
    text = json.dumps({"file": "nothing_like_it.py", "predict": KERNEL})
    page = errors(client.post(URL, entry(file=upload(text, "predictions.jsonl"))))
    assert "predictions.jsonl" in page
    assert "nothing_like_it" in page


def test_what_strangers_wrote_is_escaped_on_the_form(client, relu):
    evil = "<script>alert(1)</script>"
    page = errors(client.post(URL, entry(method=evil, file=upload("x = (", f"{evil}.py"))))
    assert "<script>alert" not in page


def test_what_was_typed_is_still_there_after_a_refusal(client, relu):
    typed = entry(method="My <model>", label="third", text=KERNEL, task="relv", kind="agent")
    typed["text"] = KERNEL.replace("def relu", "def typed")
    page = errors(client.post(URL, typed))
    assert 'value="My &lt;model&gt;"' in page
    assert 'value="third"' in page
    assert 'value="relv"' in page
    assert '<option value="agent" selected>' in page
    assert "def typed(input):" in page


def test_a_long_paste_is_taken_like_a_file(client, h200, relu):
    lines = json.dumps({"file": "relu.py", "predict": KERNEL, "prompt": "x" * 2_000_00})
    assert client.post(URL, entry(text="\n".join([lines] * 12))).status_code == 302


def test_uploads_are_counted_by_address_and_what_was_typed_stays(client, h200, relu, settings):
    settings.REST_FRAMEWORK = settings.REST_FRAMEWORK | {
        "DEFAULT_THROTTLE_RATES": {"submissions": "2/hour"}
    }
    cache.clear()

    def sent_as(label, **headers):
        return client.post(URL, entry(text=KERNEL, task="relu", label=label), headers=headers)

    assert [sent_as(label).status_code for label in "ab"] == [302, 302]
    refused = sent_as("my label", **{"X-Forwarded-For": "1.2.3.4"})  # anybody can write that header
    assert refused.status_code == 429
    assert "More than 2 uploads in an hour" in refused.content.decode()
    assert 'value="my label"' in refused.content.decode()
    assert Draft.objects.count() == 2
    sent = {"method": "M", "file": upload(KERNEL, "relu.py")}
    assert client.post("/api/v1/submissions/", sent).status_code == 429
    client.force_login(User.objects.create_user("ann"))
    assert sent_as("her own").status_code == 302
    cache.clear()


def test_a_closed_site_asks_to_sign_in(client, relu, settings):
    settings.KBX_OPEN_SUBMISSIONS = False
    assert "Sign in to submit" in client.get(URL).content.decode()
    client.post(URL, entry(text=KERNEL, task="relu"))
    assert not Submission.objects.exists()


def test_progress_polls_until_everything_is_judged(client, waiting):
    part = client.get(f"/submissions/{waiting.uuid}/", headers={"HX-Request": "true"})
    text = part.content.decode()
    assert "<html" not in text
    assert "Judging: 0 of 2" in text
    assert 'hx-trigger="every 3s"' in text
    Job.objects.update(state=vocabulary.DECLINED, reason="bfloat16 needs a GPU")
    text = client.get(f"/submissions/{waiting.uuid}/").content.decode()
    assert "hx-trigger" not in text
    assert "bfloat16 needs a GPU" in text


def test_a_job_says_where_it_stands(client, waiting):
    running, queued = Job.objects.order_by("pk")
    Job.objects.filter(pk=running.pk).update(stage="check", steps_done=3, steps_total=12)
    page = client.get(f"/jobs/{running.uuid}/").content.decode()
    assert "under judgement" in page
    assert "3 of 12" in page
    assert "at most 0" in client.get(f"/jobs/{queued.uuid}/").content.decode()


def test_the_queue_counts_and_names_nobody(client, waiting, h200):
    Device.objects.create(gpu=h200, serial="s", host="host-7", last_seen_at=timezone.now())
    page = client.get("/queue/").content.decode()
    assert "H200" in page
    assert "host-7" not in page
    assert "/submissions/" + str(waiting.uuid) not in page


def test_an_empty_queue_says_what_to_do(client):
    assert "kbx worker" in client.get("/queue/").content.decode()


def test_only_its_submitter_can_withdraw(client, waiting):
    url = f"/submissions/{waiting.uuid}/withdraw/"
    assert client.post(url).status_code == 403
    owner = User.objects.create_user("owner")
    Submission.objects.filter(pk=waiting.pk).update(submitted_by=owner)
    client.force_login(User.objects.create_user("other"))
    assert client.post(url).status_code == 403
    client.force_login(owner)
    assert client.get(url).status_code == 405
    assert client.post(url).status_code == 302
    waiting.refresh_from_db()
    assert waiting.withdrawn_at is not None
    assert "Withdrawn" in client.get(f"/submissions/{waiting.uuid}/").content.decode()


def test_a_moderator_who_withdraws_another_ones_says_why(client, waiting):
    """As in the admin: the reason stands in the same history, in the same words."""
    url, shown = f"/submissions/{waiting.uuid}/withdraw/", f"/submissions/{waiting.uuid}/"
    owner = User.objects.create_user("owner")
    Submission.objects.filter(pk=waiting.pk).update(submitted_by=owner)
    client.force_login(owner)
    assert 'name="reason"' not in client.get(shown).content.decode()
    client.force_login(User.objects.create_user("mod", is_staff=True))
    assert 'name="reason"' in client.get(shown).content.decode()
    for reason in ("", "  \n", "x" * 2001):
        answer = client.post(url, {"reason": reason}, follow=True)
        assert "Nothing was changed" in answer.content.decode()
        waiting.refresh_from_db()
        assert waiting.withdrawn_at is None
    client.post(url, {"reason": "its author asked by mail"})
    waiting.refresh_from_db()
    assert waiting.withdrawn_at is not None
    [entry] = LogEntry.objects.filter(object_id=str(waiting.pk))
    assert entry.change_message.startswith("Withdrawn by a moderator, ")
    assert entry.change_message.endswith(": its author asked by mail")


def test_pages_of_a_submission_take_few_queries(client, waiting, django_assert_max_num_queries):
    with django_assert_max_num_queries(4):
        client.get(f"/submissions/{waiting.uuid}/")
    with django_assert_max_num_queries(2):
        client.get(f"/jobs/{Job.objects.first().uuid}/")
