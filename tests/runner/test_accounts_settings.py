"""Mail, GitHub and sign-up by the environment; tokens of before become keys when it is migrated."""

import hashlib
import os
import secrets
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from runner.accounts.models import ApiKey

ROOT = Path(__file__).resolve().parents[2]
TELL = (
    "from django.conf import settings as s; from django.urls import reverse; "
    "print(s.EMAIL_BACKEND.rsplit('.', 2)[-2], s.ACCOUNT_EMAIL_VERIFICATION, s.KBX_SIGNUP)"
)
GOOD = {
    "DATABASE_URL": "postgresql://kbx:a-password@db.internal:5432/kbx",
    "KBX_BROKER_URL": "redis://:a-password@broker.internal:6379/0",
    "KBX_SECRET_KEY": secrets.token_urlsafe(50),
    "KBX_ALLOWED_HOSTS": "kernelbench.example.org",
}


def tell(
    tmp_path: Path, program: str, kind: str = "production", **changes: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "KBX_STATE_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": f"kbx_site.settings.{kind}",
        **(GOOD if kind == "production" else {}),
        **changes,
    }
    command = [sys.executable, str(ROOT / "manage.py"), "shell", "-v0", "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("kind", "changes", "said"),
    [
        ("development", {}, "console none True"),
        ("production", {}, "console none False"),
        ("production", {"KBX_MAIL_URL": "smtp://u:p%40@m.org"}, "smtp mandatory True"),
        (
            "production",
            {"KBX_MAIL_URL": "smtps://m.org", "KBX_EMAIL_VERIFICATION": "optional"},
            "smtp optional True",
        ),
        ("production", {"KBX_MAIL_URL": "smtp://m.org", "KBX_SIGNUP": "0"}, "smtp mandatory False"),
    ],
)
def test_strangers_sign_up_where_their_address_can_be_verified(
    tmp_path: Path, kind: str, changes: dict[str, str], said: str
) -> None:
    done = tell(tmp_path, TELL, kind, **changes)
    assert done.stdout.strip() == said, done.stderr[-2000:]


def test_mails_password_is_read_and_never_repeated(tmp_path: Path) -> None:
    program = (
        "from django.conf import settings as s; "
        "print(s.EMAIL_HOST, s.EMAIL_PORT, s.EMAIL_HOST_PASSWORD, s.EMAIL_USE_TLS, s.EMAIL_USE_SSL)"
    )
    done = tell(tmp_path, program, KBX_MAIL_URL="smtp://u:p%40ss@m.org")
    assert done.stdout.split() == ["m.org", "587", "p@ss", "True", "False"]
    for wrong in ("m.org:25:hunter2", "ftp://u:hunter2@m.org", "smtp://u:hunter2@m.org:port"):
        done = tell(tmp_path, program, KBX_MAIL_URL=wrong)
        assert "KBX_MAIL_URL can't be read" in done.stderr
        assert "hunter2" not in done.stderr.splitlines()[-1]


def test_half_of_githubs_settings_are_refused(tmp_path: Path) -> None:
    done = tell(tmp_path, "", KBX_GITHUB_CLIENT_ID="x")
    assert done.returncode != 0
    assert "both" in done.stderr


GITHUB = """
from django.test import Client
from django.core.management import call_command
call_command("migrate", verbosity=0)
visitor = Client(enforce_csrf_checks=False)
page = visitor.get("/accounts/login/", headers={"host": "localhost"})
assert "Sign in with GitHub" in page.content.decode()
assert "form-action 'self' https://github.com" in page.headers["Content-Security-Policy"]
assert "<script src" in page.content.decode() and "<script>" not in page.content.decode()
away = visitor.post("/accounts/github/login/?process=login", headers={"host": "localhost"})
print(away.status_code, away.headers["Location"])
print(visitor.get("/accounts/github/login/", headers={"host": "localhost"}).status_code)
"""


def test_github_is_offered_where_it_is_configured_and_a_link_alone_leads_nowhere(
    tmp_path: Path,
) -> None:
    done = tell(
        tmp_path, GITHUB, "development", KBX_GITHUB_CLIENT_ID="theid", KBX_GITHUB_SECRET="hunter2"
    )
    assert done.returncode == 0, done.stderr[-2000:]
    away, page = done.stdout.strip().splitlines()
    assert away.startswith("302 https://github.com/login/oauth/authorize?")
    assert "client_id=theid" in away
    assert "code_challenge=" in away
    assert "hunter2" not in away
    assert page == "200"


@pytest.mark.django_db
def test_github_is_not_offered_where_it_is_not_configured(client: Client) -> None:
    assert "GitHub" not in client.get("/accounts/login/").content.decode()
    assert client.get("/accounts/github/login/").status_code == 404


@pytest.mark.django_db
def test_tokens_of_before_become_hashed_keys_that_expire(client: Client) -> None:
    ann = User.objects.create_user("ann")
    token = secrets.token_hex(20)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE authtoken_token (key varchar(40), created varchar(30), user_id integer)"
        )
        cursor.execute(
            "INSERT INTO authtoken_token VALUES (%s, %s, %s)", [token, "2026-01-01", ann.pk]
        )
    migration: Any = import_module("runner.migrations.0004_moderators_and_tokens")
    editor = _Editor()
    migration.hash_tokens(apps, editor)
    migration.hash_tokens(apps, editor)  # nothing is left to do
    row = ApiKey.objects.get()
    assert row.digest == hashlib.sha256(token.encode()).hexdigest()
    assert row.start == token[:4]
    assert "authtoken_token" not in connection.introspection.table_names()
    me = client.get("/api/v1/me/", headers={"Authorization": f"Token {token}"})
    assert me.json()["username"] == "ann"


class _Editor:
    """What the migration needs of a schema editor; SQLite's own refuses a test's transaction."""

    connection = connection

    def execute(self, statement: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)
