"""Submissions over HTTP: who may send, what comes back, what is refused."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone
from rest_framework.authtoken.models import Token

from benchmark.models import Gpu, Method, StaticBuild, Submission

pytestmark = pytest.mark.django_db
SOURCE = b"import triton\n@triton.jit\ndef k(x):\n    pass\ndef relu(input):\n    return input\n"
URL = "/api/v1/submissions/"


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
    assert "Send a token" in refused.json()["detail"]
    assert not Submission.objects.exists()


def test_a_token_submits_where_the_site_is_not_open(client: Client, settings: Any) -> None:
    settings.KBX_OPEN_SUBMISSIONS = False
    user = User.objects.create(username="ann")
    sent = post(client, token=Token.objects.create(user=user).key)
    assert sent.status_code == 201, sent.content
    assert Submission.objects.get().submitted_by == user


def test_an_unusable_upload_says_what_to_do_and_stores_nothing(client: Client) -> None:
    refused = post(client, name="notes.txt", data=b"hello")
    assert refused.status_code == 400
    assert "notes.txt" in str(refused.json()["remedy"])
    assert not Submission.objects.exists()
    assert not Method.objects.exists()


def test_fields_are_named_when_they_are_missing(client: Client) -> None:
    assert set(client.post(URL, {}).json()) == {"file", "method"}


def test_a_private_submission_is_for_its_submitter(client: Client, settings: Any) -> None:
    ann = User.objects.create(username="ann")
    token = Token.objects.create(user=ann).key
    url = f"{URL}{post(client, token=token, visibility='private').json()['uuid']}/"
    assert client.get(url).status_code == 404
    assert client.get(url, headers={"Authorization": f"Token {token}"}).status_code == 200


def test_an_unknown_submission_is_not_found(client: Client) -> None:
    assert client.get(f"{URL}00000000-0000-4000-8000-000000000000/").status_code == 404
    assert client.get(f"{URL}what/").status_code == 404


def test_probes_answer(client: Client) -> None:
    assert client.get("/healthz").json() == {"alive": True}
    assert client.get("/readyz").json() == {"database": True}


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
