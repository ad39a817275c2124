"""Accounts: sign-up, sign-in, keys, who may see `/me/`, and what moderators may."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import Group, User
from django.core import mail
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.utils import timezone

from benchmark.models import Gpu, Method, Submission
from runner.accounts import keys
from runner.accounts.models import BOTH, READ, SUBMIT, ApiKey

pytestmark = pytest.mark.django_db
PASSWORD = "long-enough-to-pass"
NEW = {"email": "ann@example.org", "username": "ann", "password1": PASSWORD}
SUBMISSIONS = "/api/v1/submissions/"
SOURCE = b"import triton\n@triton.jit\ndef k(x):\n    pass\ndef relu(input):\n    return input\n"
LINK = re.compile(r"http://testserver(/\S+)")


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    """Throttles count in the process's cache, which outlives a test's database."""
    cache.clear()


@pytest.fixture
def ann() -> User:
    return User.objects.create_user("ann", "ann@example.org", PASSWORD)


@pytest.fixture
def bob() -> User:
    return User.objects.create_user("bob", "bob@example.org", PASSWORD)


def asking(secret: str, scheme: str = "Bearer") -> dict[str, str]:
    return {"Authorization": f"{scheme} {secret}"}


def upload(client: Client, secret: str, **fields: str) -> Any:
    form = {"file": SimpleUploadedFile("relu.py", SOURCE), "method": "M", "label": "a"} | fields
    return client.post(SUBMISSIONS, form, headers=asking(secret))


# --- sign-up, sign-in, sign-out, lost password


def test_a_newcomer_signs_up_and_is_in(client: Client) -> None:
    assert "Sign up" in client.get("/accounts/signup/").content.decode()
    answer = client.post("/accounts/signup/", NEW)
    assert answer.headers["Location"] == "/me/"
    page = client.get("/me/").content.decode()
    assert "ann@example.org" in page
    assert "Nothing sent yet" in page


def test_signing_in_takes_a_name_or_an_address_and_signing_out_a_form(
    client: Client, ann: User
) -> None:
    for login in ("ann", "ANN@example.org"):
        answer = client.post("/accounts/login/", {"login": login, "password": PASSWORD})
        assert answer.headers["Location"] == "/me/", login
        client.get("/accounts/logout/")
        assert client.get("/me/").status_code == 200  # a link, or an image, signs nobody out
        client.post("/accounts/logout/")
        assert client.get("/me/").status_code == 302


def test_a_wrong_password_is_refused_in_words(client: Client, ann: User) -> None:
    answer = client.post("/accounts/login/", {"login": "ann", "password": "wrong"})
    assert "not correct" in answer.content.decode()
    assert "sessionid" not in answer.cookies


def test_the_former_address_of_signing_in_leads_on(client: Client) -> None:
    assert (
        client.get("/login/").headers["Location"] == "/accounts/login/?next=%2Fsubmissions%2Fnew%2F"
    )
    assert client.get("/login/?next=/queue/").headers["Location"].endswith("next=%2Fqueue%2F")


def test_signing_in_leads_back_but_never_to_another_site(client: Client, ann: User) -> None:
    form = {"login": "ann", "password": PASSWORD}
    back = client.post("/accounts/login/", form | {"next": "/queue/"})
    assert back.headers["Location"] == "/queue/"
    client.post("/accounts/logout/")
    away = client.post("/accounts/login/", form | {"next": "https://example.org/"})
    assert away.headers["Location"] == "/me/"


@pytest.mark.parametrize(
    "name",
    ["a/b", "ann@example.org", "\u0430nn", "<script>", "a", "x" * 40, "admin", "-ann", "a__b"],
)
def test_names_that_mislead_are_refused(client: Client, name: str) -> None:
    answer = client.post("/accounts/signup/", NEW | {"username": name})
    assert answer.status_code == 200
    assert not User.objects.exists()


def test_an_address_that_has_an_account_gets_no_second_one(client: Client, ann: User) -> None:
    EmailAddress.objects.create(user=ann, email=ann.email, verified=True, primary=True)
    client.post("/accounts/signup/", NEW | {"username": "other"})
    assert User.objects.count() == 1


def test_where_it_is_mandatory_nobody_is_in_before_the_address_is_verified(
    client: Client, settings: Any
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    client.post("/accounts/signup/", NEW)
    assert client.get("/me/").status_code == 302
    assert (
        client.post("/accounts/login/", {"login": "ann", "password": PASSWORD}).status_code == 302
    )
    assert client.get("/me/").status_code == 302
    link = LINK.search(mail.outbox[0].body)
    assert link is not None
    assert "confirm" in client.get(link[1]).content.decode().lower()
    client.post(link[1])
    client.post("/accounts/login/", {"login": "ann", "password": PASSWORD})
    assert client.get("/me/").status_code == 200


def test_an_account_that_an_administrator_made_without_address_still_signs_in(
    client: Client, settings: Any
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    User.objects.create_user("old", password=PASSWORD)
    client.post("/accounts/login/", {"login": "old", "password": PASSWORD})
    assert client.get("/me/").status_code == 200


def test_a_lost_password_is_reset_by_mail(client: Client, ann: User) -> None:
    client.post("/accounts/password/reset/", {"email": "ann@example.org"})
    link = LINK.search(mail.outbox[0].body)
    assert link is not None
    form = client.get(link[1], follow=True)
    where = form.redirect_chain[-1][0]
    fresh = "another-long-password"
    client.post(where, {"password1": fresh, "password2": fresh})
    client.post("/accounts/login/", {"login": "ann", "password": fresh})
    assert client.get("/me/").status_code == 200
    assert client.get(link[1], follow=True).status_code == 200
    assert "invalid" in client.get(link[1], follow=True).content.decode()  # once only


def test_asking_for_a_reset_says_the_same_of_an_unknown_address(client: Client, ann: User) -> None:
    known = client.post("/accounts/password/reset/", {"email": "ann@example.org"}, follow=True)
    unknown = client.post("/accounts/password/reset/", {"email": "no@example.org"}, follow=True)
    assert known.content == unknown.content


def test_sign_up_can_be_closed(client: Client, settings: Any) -> None:
    settings.KBX_SIGNUP = False
    assert "Sign-up is closed" in client.get("/accounts/signup/").content.decode()
    client.post("/accounts/signup/", NEW)
    assert not User.objects.exists()


def test_a_closed_account_is_out(client: Client, ann: User) -> None:
    User.objects.update(is_active=False)
    client.post("/accounts/login/", {"login": "ann", "password": PASSWORD})
    assert client.get("/me/").status_code == 302


PAGES = [
    "login/", "signup/", "password/reset/", "password/reset/done/", "confirm-email/", "inactive/",
    "password/reset/key/1-bad-key/",
]  # fmt: skip
OWN_PAGES = ["email/", "password/change/", "logout/", "reauthenticate/", "3rdparty/"]


@pytest.mark.parametrize("path", PAGES + OWN_PAGES)
def test_every_page_has_the_sites_look_and_no_inline_script(
    client: Client, ann: User, path: str
) -> None:
    if path in OWN_PAGES:
        client.post("/accounts/login/", {"login": "ann", "password": PASSWORD})
    answer = client.get(f"/accounts/{path}", follow=True)
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "KernelBench<span>-X</span>" in page
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\son[a-z]+=", page) == []
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


# --- throttles


def test_guessing_a_password_is_stopped(client: Client, ann: User) -> None:
    for _ in range(5):
        client.post("/accounts/login/", {"login": "ann", "password": "wrong"})
    right = client.post("/accounts/login/", {"login": "ann", "password": PASSWORD})
    assert "Too many failed" in right.content.decode()
    assert client.get("/me/").status_code == 302


def test_guessing_in_the_admin_is_stopped(client: Client, ann: User) -> None:
    form = {"username": "ann", "password": "wrong"}
    codes = [client.post("/admin/login/", form).status_code for _ in range(11)]
    assert codes == [200] * 10 + [429]
    assert client.get("/admin/login/").status_code == 200


def test_signing_up_by_the_dozen_is_stopped(client: Client) -> None:
    answers = []
    for at in range(6):
        form = NEW | {"email": f"a{at}@example.org", "username": f"a{at}"}
        answers.append(Client().post("/accounts/signup/", form))
    assert [answer.status_code for answer in answers] == [302] * 5 + [429]
    assert "Too many tries" in answers[-1].content.decode()


def test_a_forwarded_address_that_no_proxy_of_ours_wrote_is_not_believed(client: Client) -> None:
    codes = []
    for at in range(6):
        form = NEW | {"email": f"a{at}@example.org", "username": f"a{at}"}
        forged = {"X-Forwarded-For": f"10.0.0.{at}"}
        codes.append(Client().post("/accounts/signup/", form, headers=forged).status_code)
    assert codes[-1] == 429


def test_keys_are_made_so_many_an_hour_and_no_more(ann: User) -> None:
    for at in range(keys.MOST_AN_HOUR):
        keys.make(ann, f"key {at}")
    with pytest.raises(keys.KeyRefused, match="within the hour"):
        keys.make(ann, "one more")
    ApiKey.objects.update(created_at=timezone.now() - timedelta(hours=2))
    keys.make(ann, "later")


def test_only_so_many_keys_are_in_use_at_a_time(ann: User) -> None:
    for at in range(keys.MOST_USABLE):
        keys.make(ann, f"key {at}")
        ApiKey.objects.update(created_at=timezone.now() - timedelta(hours=2))
    with pytest.raises(keys.KeyRefused, match="revoke one"):
        keys.make(ann, "one more")
    assert keys.revoke(ann, ApiKey.objects.first().pk)
    keys.make(ann, "in its place")


# --- API keys


def make_key(client: Client, **changes: object) -> str:
    form = {"name": "laptop", "scopes": BOTH, "days": 90} | changes
    page = client.post("/me/keys/", form)
    assert page.status_code == 200, page.content.decode()
    assert "no-store" in page.headers["Cache-Control"]
    [secret] = set(re.findall(r"kbx_[\w-]{43}", page.content.decode()))
    return secret


def test_a_key_is_shown_once_and_nowhere_in_the_database(client: Client, ann: User) -> None:
    client.force_login(ann)
    secret = make_key(client)
    assert secret not in client.get("/me/").content.decode()
    row = ApiKey.objects.get()
    assert row.digest == hashlib.sha256(secret.encode()).hexdigest()
    assert secret.startswith(row.start)
    assert len(row.start) == 12
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            assert secret not in str(cursor.fetchall()), table


def test_a_key_submits_and_reads_as_its_account(
    client: Client, ann: User, make: Any, settings: Any
) -> None:
    settings.KBX_OPEN_SUBMISSIONS = False
    make.task("relu")
    made = keys.make(ann, "laptop")
    sent = upload(client, made.secret, visibility="private")
    assert sent.status_code == 201, sent.content
    assert Submission.objects.get().submitted_by == ann
    url = f"{SUBMISSIONS}{sent.json()['uuid']}/"
    assert client.get(url, headers=asking(made.secret)).status_code == 200
    assert client.get(url, headers=asking(made.secret, "Token")).status_code == 200
    assert client.get(url).status_code == 404
    made.row.refresh_from_db()
    assert made.row.last_used_at is not None


@pytest.mark.parametrize(("scopes", "reads", "sends"), [(READ, 200, 403), (SUBMIT, 403, 201)])
def test_a_key_does_what_its_scopes_say_and_no_more(
    client: Client, ann: User, make: Any, scopes: str, reads: int, sends: int
) -> None:
    make.task("relu")
    secret = keys.make(ann, "one", scopes).secret
    assert upload(client, secret).status_code == sends
    assert client.get(SUBMISSIONS, headers=asking(secret)).status_code == reads
    assert client.get("/api/v1/me/", headers=asking(secret)).status_code == 200  # says what it may


def test_an_expired_revoked_unknown_or_closed_accounts_key_is_refused(
    client: Client, ann: User
) -> None:
    made = keys.make(ann, "laptop")

    def refusal(secret: str = made.secret) -> str:
        answer = client.get("/api/v1/me/", headers=asking(secret))
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        return str(answer.json())

    assert "unknown" in refusal(made.secret[:-1])
    assert "unknown" in refusal(made.row.digest)  # what a stolen database holds opens nothing
    ApiKey.objects.update(expires_at=timezone.now())
    assert "expired" in refusal()
    ApiKey.objects.update(expires_at=timezone.now() + timedelta(days=1))
    assert keys.revoke(ann, made.row.pk)
    assert "revoked" in refusal()
    ApiKey.objects.update(revoked_at=None)
    User.objects.update(is_active=False)
    assert "closed" in refusal()


def test_a_use_is_noted_once_a_minute(
    client: Client, ann: User, django_assert_num_queries: Any
) -> None:
    made = keys.make(ann, "laptop")
    keys.note_use(made.row)
    first = ApiKey.objects.get().last_used_at
    keys.note_use(made.row)
    assert ApiKey.objects.get().last_used_at == first
    ApiKey.objects.update(last_used_at=first - timedelta(minutes=2))
    keys.note_use(made.row)
    assert ApiKey.objects.get().last_used_at >= first


def test_keys_are_revoked_by_their_owner_alone(client: Client, ann: User, bob: User) -> None:
    made = keys.make(ann, "laptop")
    url = f"/me/keys/{made.row.pk}/revoke/"
    assert client.post(url).status_code == 302  # to sign in
    client.force_login(bob)
    assert client.post(url).status_code == 404
    assert ApiKey.objects.get().revoked_at is None
    client.force_login(ann)
    assert client.get(url).status_code == 405
    assert client.post(url).headers["Location"] == "/me/"
    assert ApiKey.objects.get().state == "revoked"
    assert client.post(url).status_code == 404


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"scopes": "admin"}, {"days": 9999}, {"days": "x"}, {"name": "x" * 81}]
)
def test_a_key_that_is_asked_for_wrongly_is_not_made(
    client: Client, ann: User, wrong: dict[str, object]
) -> None:
    client.force_login(ann)
    form = {"name": "laptop", "scopes": BOTH, "days": 90} | wrong
    assert client.post("/me/keys/", form).status_code == 400
    assert not ApiKey.objects.exists()


def test_making_a_key_needs_the_forms_token(ann: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ann)
    assert strict.post("/me/keys/", {"name": "x", "scopes": BOTH, "days": 90}).status_code == 403


def test_a_keys_account_and_what_is_left_are_told(client: Client, ann: User, h200: Gpu) -> None:
    secret = keys.make(ann, "laptop", READ).secret
    said = client.get("/api/v1/me/", headers=asking(secret)).json()
    assert said["username"] == "ann"
    assert said["key"]["scopes"] == ["read"]
    assert said["quota"][0]["gpu"] == "h200"
    assert said["quota"][0]["left"] == said["quota"][0]["per_day"] > 0
    assert client.get("/api/v1/me/").status_code == 401


# --- /me/


def sent(user: User | None, label: str, **fields: Any) -> Submission:
    method, _ = Method.objects.get_or_create(slug="m", defaults={"name": "M"})
    return Submission.objects.create(method=method, label=label, submitted_by=user, **fields)


def test_me_is_for_who_is_signed_in(client: Client, ann: User) -> None:
    assert client.get("/me/").headers["Location"] == "/accounts/login/?next=/me/"
    client.force_login(ann)
    answer = client.get("/me/")
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]


def test_me_shows_own_submissions_of_every_visibility_and_nobody_elses(
    client: Client, ann: User, bob: User
) -> None:
    for visibility in ("public", "unlisted", "private"):
        sent(ann, f"mine {visibility}", visibility=visibility)
        sent(bob, f"canary {visibility}", visibility=visibility)
    sent(ann, "mine withdrawn", withdrawn_at=timezone.now())
    sent(None, "canary of nobody")
    keys.make(bob, "canary key")
    client.force_login(ann)
    page = client.get("/me/").content.decode()
    for label in ("public", "unlisted", "private", "withdrawn"):
        assert f"mine {label}" in page
    assert "canary" not in page


def test_me_asks_as_often_for_many_submissions_as_for_few(
    client: Client, ann: User, make: Any, django_assert_max_num_queries: Any
) -> None:
    for at in range(30):
        make.candidate(sent(ann, f"set {at}"), make.task(f"task{at}"))
    client.force_login(ann)
    with django_assert_max_num_queries(13):
        page = client.get("/me/").content.decode()
    assert "Page 1 of 2" in page
    assert "set 29" in page
    assert "set 0<" in client.get("/me/?page=2").content.decode()


def test_hostile_names_are_text_on_me(client: Client, ann: User) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    sent(ann, hostile)
    keys.make(ann, hostile)
    client.force_login(ann)
    assert hostile not in client.get("/me/").content.decode()


# --- moderators


@pytest.fixture
def moderator() -> User:
    user = User.objects.create_user("mo", "mo@example.org", PASSWORD, is_staff=True)
    user.groups.add(Group.objects.get(name="Moderators"))
    return user


def test_moderators_curate_and_make_no_administrators(client: Client, moderator: User) -> None:
    may = ("benchmark.add_audit", "benchmark.change_submission", "runner.change_job")
    never = (
        "auth.change_user", "auth.add_user", "auth.change_group", "benchmark.delete_run",
        "benchmark.change_run", "benchmark.change_audit", "runner.change_allowance",
        "runner.view_apikey", "benchmark.change_gpu",
    )  # fmt: skip
    assert all(moderator.has_perm(name) for name in may)
    assert [name for name in never if moderator.has_perm(name)] == []
    client.force_login(moderator)
    assert client.get("/admin/benchmark/submission/").status_code == 200
    assert client.get("/admin/runner/quota/").status_code == 200
    assert client.get("/admin/runner/apikey/").status_code == 403


def test_moderators_see_private_submissions_and_not_others_pages(
    client: Client, ann: User, bob: User, moderator: User
) -> None:
    url = sent(ann, "hers", visibility="private").get_absolute_url()
    codes = {}
    for who in (None, bob, ann, moderator):
        visitor = Client()
        if who:
            visitor.force_login(who)
        codes[who and who.username] = visitor.get(url).status_code
    assert codes == {None: 404, "bob": 404, "ann": 200, "mo": 200}
    client.force_login(moderator)
    assert "hers" not in client.get("/me/").content.decode()


def test_administrators_revoke_keys_and_never_see_them(admin_client: Client, ann: User) -> None:
    made = keys.make(ann, "laptop")
    url = "/admin/runner/apikey/"
    page = admin_client.get(f"{url}{made.row.pk}/change/").content.decode()
    assert made.row.start in page
    assert made.row.digest not in page
    admin_client.post(url, {"action": "revoke", "_selected_action": [made.row.pk]})
    assert ApiKey.objects.get().state == "revoked"
