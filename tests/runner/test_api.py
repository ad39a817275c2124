"""Submissions over HTTP: who may send, what comes back, what is refused."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from benchmark.models import Gpu, Method, StaticBuild, Submission
from runner.accounts import keys
from runner.api.models import Answered

pytestmark = pytest.mark.django_db
SOURCE = b"import triton\n@triton.jit\ndef k(x):\n    pass\ndef relu(input):\n    return input\n"
URL = "/api/v1/submissions/"
ERROR = {"code", "reason", "remedy", "fields"}


def post(client: Client, name: str = "relu.py", data: bytes = SOURCE, **fields: Any) -> Any:
    token = fields.pop("token", None)
    headers = {"Authorization": f"Token {token}"} if token else {}
    upload = SimpleUploadedFile(name, data)
    return client.post(URL, {"file": upload, "method": "M", "label": "a"} | fields, headers=headers)


@pytest.fixture(autouse=True)
def tasks(make: Any) -> None:
    make.task("relu")


def test_an_upload_is_accepted_and_its_progress_shown(client: Client, h200: Gpu) -> None:
    sent = post(client)
    assert sent.status_code == 201, sent.content
    seen = client.get(f"{URL}{sent.json()['uuid']}/").json()
    assert seen["jobs"]["queued"] == 1
    assert (seen["method"], seen["label"], seen["candidates"]) == ("m", "a", 1)
    assert seen["verdicts"] == {}


def test_strangers_may_not_submit_where_the_site_is_not_open(client: Client, settings: Any) -> None:
    settings.KBX_OPEN_SUBMISSIONS = False
    refused = post(client)
    assert refused.status_code == 401
    assert "Send an API key" in refused.json()["reason"]
    assert not Submission.objects.exists()


def test_a_token_submits_where_the_site_is_not_open(client: Client, settings: Any) -> None:
    settings.KBX_OPEN_SUBMISSIONS = False
    user = User.objects.create(username="ann")
    sent = post(client, token=keys.make(user, "k").secret)
    assert sent.status_code == 201, sent.content
    assert Submission.objects.get().submitted_by == user


def test_an_unusable_upload_says_what_to_do_and_stores_nothing(client: Client) -> None:
    refused = post(client, name="notes.txt", data=b"hello")
    assert refused.status_code == 400
    assert "notes.txt" in str(refused.json()["remedy"])
    assert not Submission.objects.exists()
    assert not Method.objects.exists()


def test_fields_are_named_when_they_are_missing(client: Client) -> None:
    refused = client.post(URL, {}).json()
    assert {entry["field"]: entry["remedy"] for entry in refused["fields"]} == {
        "file": "send it",
        "method": "send it",
    }
    assert refused["remedy"] == "change file, method"


def test_a_private_submission_is_for_its_submitter(client: Client, settings: Any) -> None:
    ann = User.objects.create(username="ann")
    token = keys.make(ann, "k").secret
    url = f"{URL}{post(client, token=token, visibility='private').json()['uuid']}/"
    assert client.get(url).status_code == 404
    assert client.get(url, headers={"Authorization": f"Token {token}"}).status_code == 200


def test_an_unknown_submission_is_not_found(client: Client) -> None:
    assert client.get(f"{URL}00000000-0000-4000-8000-000000000000/").status_code == 404
    assert client.get(f"{URL}what/").status_code == 404


def key(value: str) -> dict[str, dict[str, str]]:
    return {"headers": {"Idempotency-Key": value}}


def send(client: Client, value: str, data: bytes = SOURCE, **fields: str) -> Any:
    upload = SimpleUploadedFile("relu.py", data)
    return client.post(URL, {"file": upload, "method": "M", "label": "a"} | fields, **key(value))


def test_the_same_upload_under_the_same_key_is_answered_again(client: Client, h200: Gpu) -> None:
    first, again = send(client, "k1"), send(client, "k1")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert ("Idempotent-Replayed" in first, again["Idempotent-Replayed"]) == (False, "true")
    assert Submission.objects.count() == 1
    assert Answered.objects.get().key == "k1"


@pytest.mark.parametrize("other", [{"label": "b"}, {"data": SOURCE + b"# more"}])
def test_another_upload_under_the_same_key_is_refused(client: Client, other: Any) -> None:
    send(client, "k1")
    refused = send(client, "k1", **other)
    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency-key-reused")
    assert "new key" in refused.json()["remedy"]
    assert Submission.objects.count() == 1


def test_a_key_is_its_senders_own(client: Client) -> None:
    send(client, "k1")
    other = client.post(
        URL,
        {"file": SimpleUploadedFile("relu.py", SOURCE), "method": "N"},
        REMOTE_ADDR="203.0.113.9",
        **key("k1"),
    )
    assert other.status_code == 201
    assert Answered.objects.count() == 2


def test_a_refused_upload_keeps_no_key(client: Client) -> None:
    assert send(client, "k1", data=b"").status_code == 400
    assert send(client, "k1", label="\0").status_code == 400
    assert send(client, "k1").status_code == 201


@pytest.mark.parametrize("value", ["x" * 256, "caf\xe9"])
def test_an_unusable_key_is_named(client: Client, value: str) -> None:
    refused = send(client, value)
    assert (refused.status_code, refused.json()["fields"][0]["field"]) == (400, "Idempotency-Key")
    assert not Submission.objects.exists()


def test_old_keys_are_forgotten(client: Client) -> None:
    send(client, "k1")
    Answered.objects.update(created_at=timezone.now() - timedelta(days=8))
    send(client, "k2", label="b")
    assert [row.key for row in Answered.objects.all()] == ["k2"]


def test_two_at_once_under_one_key_are_one_submission(client: Client) -> None:
    """The row of the first is what the second finds: the constraint is what decides."""
    send(client, "k1")
    owner = Answered.objects.get().owner
    with pytest.raises(IntegrityError), transaction.atomic():
        Answered.objects.create(owner=owner, key="k1", digest="0" * 64, answer={})


def test_a_stranger_may_not_send_what_nobody_could_open(client: Client) -> None:
    refused = post(client, visibility="private")
    assert (refused.status_code, refused.json()["fields"][0]["field"]) == (400, "visibility")


def test_the_list_names_public_submissions_and_ones_own(client: Client, signed_in: Any) -> None:
    for label, visibility in (("one", "public"), ("two", "unlisted")):
        post(client, label=label, visibility=visibility)
    signed_in.post(URL, {"file": SimpleUploadedFile("relu.py", SOURCE), "method": "M"}
                   | {"label": "three", "visibility": "private"})  # fmt: skip
    assert [row["label"] for row in client.get(URL).json()["results"]] == ["one"]
    assert [row["label"] for row in signed_in.get(URL).json()["results"]] == ["three", "one"]
    assert client.get(URL, {"method": "nobody\0"}).json()["results"] == []


@pytest.fixture
def signed_in() -> Client:
    from rest_framework.test import APIClient

    client = APIClient()
    client.force_authenticate(User.objects.create(username="ann"))
    return client


def test_candidates_and_their_jobs(client: Client, h200: Gpu) -> None:
    uuid = post(client).json()["uuid"]
    [row] = client.get(f"{URL}{uuid}/candidates/").json()
    [outcome] = row["outcomes"]
    assert (row["task"], outcome["gpu"], outcome["state"]) == ("relu", "H200", "queued")
    job = client.get(f"/api/v1/jobs/{outcome['job']}/").json()
    assert (job["submission"], job["state"], job["ahead"]) == (uuid, "queued", 0)
    [queue] = client.get("/api/v1/queue/").json()
    assert (queue["gpu"], queue["queued"]) == ("h200", 1)
    assert (queue["serving"], queue["set_aside"], queue["estimate"]) == (0, 0, None)


def test_only_its_submitter_withdraws(client: Client, signed_in: Any) -> None:
    theirs = post(client).json()["uuid"]
    refused = signed_in.post(f"{URL}{theirs}/withdraw/")
    assert (refused.status_code, set(refused.json())) == (403, ERROR)
    own = signed_in.post(
        URL, {"file": SimpleUploadedFile("relu.py", SOURCE), "method": "M", "label": "mine"}
    ).json()["uuid"]
    assert signed_in.post(f"{URL}{own}/withdraw/").json()["withdrawn_at"]
    assert client.get(f"{URL}{own}/candidates/").status_code == 410
    assert client.get(f"{URL}{own}/").json()["refusals"] == []


def test_a_moderator_who_withdraws_another_ones_says_why(client: Client) -> None:
    url = f"{URL}{post(client).json()['uuid']}/withdraw/"
    client.force_login(User.objects.create_user("mod", is_staff=True))
    refused = client.post(url)
    assert (refused.status_code, "history" in refused.json()["remedy"]) == (400, True)
    assert Submission.objects.get().withdrawn_at is None
    given = {"data": '{"reason": "spam"}', "content_type": "application/json"}
    assert client.post(url, **given).json()["withdrawn_at"]
    assert LogEntry.objects.get().change_message.endswith(": spam")


def test_a_submission_is_published_and_cancelled_by_its_submitter(
    client: Client, signed_in: Any, h200: Gpu
) -> None:
    file = SimpleUploadedFile("relu.py", SOURCE)
    sent = {"file": file, "method": "M", "label": "mine", "visibility": "private"}
    url = f"{URL}{signed_in.post(URL, sent).json()['uuid']}/"
    asked = {"data": json.dumps({"visibility": "public"}), "content_type": "application/json"}
    assert client.patch(url, **asked).status_code == 404  # nobody else knows of it
    assert signed_in.patch(url, **asked).json()["visibility"] == "public"
    assert client.patch(url, **asked).status_code == 403
    assert client.post(f"{url}cancel/").status_code == 403
    hidden = asked | {"data": json.dumps({"source_visibility": "hidden"})}
    assert signed_in.patch(url, **hidden).json()["visibility"] == "public"  # stays as it is
    assert Submission.objects.get().source_visibility == "hidden"
    wrong = {"data": '{"visibility": "secret"}', "content_type": "application/json"}
    assert signed_in.patch(url, **wrong).json()["fields"][0]["field"] == "visibility"
    assert signed_in.post(f"{url}cancel/").json()["jobs"]["cancelled"] == 1
    signed_in.post(f"{url}withdraw/")
    assert signed_in.patch(url, **asked).status_code == 400
    assert signed_in.put(url, **asked).status_code == 405  # what is left out would be lost


def test_builds_of_hidden_sources_are_not_shown(client: Client) -> None:
    uuid = post(client, source_visibility="hidden").json()["uuid"]
    assert Submission.objects.get().source_visibility == "hidden"
    assert client.get(f"{URL}{uuid}/builds/").json() == []


def test_probes_answer(client: Client) -> None:
    assert client.get("/healthz").json() == {"alive": True}
    assert client.get("/readyz").json()["ready"]


def test_a_submissions_builds_are_listed_by_task(client: Client) -> None:
    uuid = post(client).json()["uuid"]
    submission = Submission.objects.get(uuid=uuid)
    [row] = client.get(f"{URL}{uuid}/builds/").json()
    assert (row["task"], row["round"], row["builds"]) == ("relu", 0, [])
    facts = {"source": submission.candidates.get().source, "shared_limit": 101376}
    for architecture in ("sm_90", "sm_89"):
        StaticBuild.objects.create(
            **facts, architecture=architecture, state="failed", reason="no", triton_version="3.7.1"
        )
    [row] = client.get(f"{URL}{uuid}/builds/").json()
    assert [(build["architecture"], build["state"]) for build in row["builds"]] == [
        ("sm_89", "failed"),
        ("sm_90", "failed"),
    ]
    Submission.objects.update(visibility="private")
    assert client.get(f"{URL}{uuid}/builds/").status_code == 404
    Submission.objects.update(visibility="public", withdrawn_at=timezone.now())
    assert client.get(f"{URL}{uuid}/builds/").status_code == 410
