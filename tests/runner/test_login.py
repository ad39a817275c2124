"""Signing in: whoever has an account may, not only staff, who alone get into the admin."""

import pytest
from django.contrib.auth.models import User

NAME, PASSWORD = "ada", "long-enough-to-pass"


@pytest.fixture
def user(db):
    return User.objects.create_user(NAME, password=PASSWORD)


def test_a_user_who_is_no_staff_signs_in_and_gets_the_form(client, user, settings):
    settings.KBX_OPEN_SUBMISSIONS = False
    assert "Sign in to submit" in client.get("/submissions/new/").content.decode()
    answer = client.post("/login/", {"username": NAME, "password": PASSWORD})
    assert answer.headers["Location"] == "/submissions/new/"
    page = client.get("/submissions/new/").content.decode()
    assert f"Signed in as {NAME}" in page
    assert "Check only" in page


def test_a_wrong_password_is_refused_in_words(client, user):
    answer = client.post("/login/", {"username": NAME, "password": "wrong"})
    assert "correct username and password" in answer.content.decode()
    assert "sessionid" not in answer.cookies


def test_signing_in_leads_back_but_never_to_another_site(client, user):
    form = {"username": NAME, "password": PASSWORD}
    assert client.post("/login/", form | {"next": "/queue/"}).headers["Location"] == "/queue/"
    away = client.post("/login/", form | {"next": "https://example.org/"})
    assert away.headers["Location"] == "/submissions/new/"
