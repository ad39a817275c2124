"""What Sentry is sent of an error: our own stack and its kind, never what or whom it was about."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from django.contrib.auth.models import User
from django.test import Client, RequestFactory
from sentry_sdk.transport import Transport

from kbx_site import reporting

CANARY = "canary7f"
DSN = "https://key@sentry.example.org/1"


class Kept(Transport):
    """Where events would leave for the network."""

    sent: list[Any] = []

    def capture_envelope(self, envelope: Any) -> None:
        self.sent += [
            json.loads(item.get_bytes()) for item in envelope.items if item.type == "event"
        ]


@pytest.fixture
def sent(monkeypatch) -> Iterator[list[Any]]:
    """The real SDK, started as a site starts it; its events stay here."""
    real = sentry_sdk.init
    monkeypatch.setattr(sentry_sdk, "init", lambda **given: real(transport=Kept, **given))
    Kept.sent = []
    reporting.start(DSN, "test")
    yield Kept.sent
    sentry_sdk.get_client().close(timeout=0)
    real(dsn=None)


def fails(source: str) -> None:
    raise ValueError(f"can't read it: {'x' * 300} {source}")


def test_an_error_is_told_without_variables_or_the_rest_of_its_words(sent) -> None:
    try:
        fails(CANARY)
    except ValueError:
        logging.getLogger("kbx.recording").exception("job=%s report refused: %s", "a", CANARY)
        logging.getLogger("kbx.dispatch").error("job=%s lost: %s", "a", CANARY)
    event, words = sent
    assert words["logentry"] == {"message": "job=%s lost: %s"}
    assert CANARY not in json.dumps(words)
    (error,) = event["exception"]["values"]
    assert error["type"] == "ValueError"
    assert error["value"].startswith("can't read it")
    assert error["stacktrace"]["frames"][-1]["function"] == "fails"
    assert CANARY not in json.dumps(event)
    assert event["environment"] == "test"


@pytest.mark.django_db
def test_a_page_that_breaks_is_told_through_djangos_own_log(sent, settings) -> None:
    settings.KBX_METRICS_ALLOW = ["no network"]
    answer = Client(raise_request_exception=False).get("/metrics", {"q": CANARY})
    assert answer.status_code == 500
    (event,) = sent
    assert event["exception"]["values"][-1]["type"] == "ValueError"
    assert CANARY not in json.dumps(event)


@pytest.mark.django_db
def test_nothing_of_a_request_or_its_visitor_goes_along(sent) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_user(CANARY, f"{CANARY}@example.org"))
    try:
        request = RequestFactory().post(f"/x/?q={CANARY}", {"source": CANARY})
        fails(request.POST["source"])
    except ValueError as error:
        sentry_sdk.set_user({"id": 1, "email": CANARY})
        sentry_sdk.set_extra("celery-job", {"kwargs": {"source": CANARY}})
        sentry_sdk.set_context("job", {"source": CANARY})
        sentry_sdk.set_tag("who", CANARY)
        sentry_sdk.add_breadcrumb(message=CANARY)
        sentry_sdk.capture_exception(error)
    (event,) = sent
    assert CANARY not in json.dumps(event)
    assert not {"request", "user", "extra", "breadcrumbs", "server_name"} & set(event)
