"""The way back from GitHub, against a server of our own that talks as GitHub does, over HTTP."""

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest

ROOT = Path(__file__).resolve().parents[2]
SECRET = "hunter2"
# What people there are, by the code that each comes back with.
PEOPLE: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "new": (
        {"id": 1, "login": "octo-cat"},
        [{"email": "octo@example.org", "primary": True, "verified": True}],
    ),
    "thief": (
        {"id": 2, "login": "thief"},
        [{"email": "ann@example.org", "primary": True, "verified": True}],
    ),
    "unverified": (
        {"id": 3, "login": "nobody"},
        [{"email": "new@example.org", "primary": True, "verified": False}],
    ),
    "taken": ({"id": 4, "login": "ann"}, [{"email": "a@b.org", "primary": True, "verified": True}]),
    "reserved": ({"id": 5, "login": "admin"}, []),
}
# The site's side, in a process of its own: whether GitHub is offered is decided at its start.
PROGRAM = """
import json, sys
from urllib.parse import parse_qs, urlsplit
given = json.loads(sys.stdin.read())
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
call_command("migrate", verbosity=0)
ann = User.objects.create_user("ann", "ann@example.org", "a long enough phrase")
EmailAddress.objects.create(user=ann, email=ann.email, primary=True, verified=True)
HERE = {"host": "localhost"}

def back(code, visitor=None, state=None, **more):
    visitor = visitor or Client()
    away = visitor.post("/accounts/github/login/?process=login", headers=HERE)
    asked = {key: value[0] for key, value in parse_qs(urlsplit(away["Location"]).query).items()}
    open(given["challenge"], "w").write(asked["code_challenge"])
    query = {"code": code, "state": state or asked["state"], **more}
    answer = visitor.get("/accounts/github/login/callback/", query, headers=HERE, follow=True)
    key = visitor.session.get("_auth_user_id")
    return {
        "status": answer.status_code,
        "path": answer.request["PATH_INFO"],
        "who": User.objects.get(pk=key).username if key else "",
        "says": " ".join(answer.content.decode().split()),
    }

found = {}
for code in given["codes"]:
    found[code] = back(code)
found["again"] = back("new")
found["forged"] = back("new", state="forged")
found["denied"] = back("new", error="access_denied")
found["accounts"] = {
    user.username: [[a.email, a.verified] for a in EmailAddress.objects.filter(user=user)]
    for user in User.objects.order_by("username")
}
found["passwords"] = {user.username: user.has_usable_password() for user in User.objects.all()}
print(json.dumps(found))
"""


@pytest.fixture
def github(tmp_path: Path) -> Iterator[str]:
    """Gives a token for a code, if client, secret and PKCE's verifier are right; then a person."""

    class GitHub(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            asked = {name: values[0] for name, values in sent.items()}
            hashed = hashlib.sha256(asked["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
            right = (
                self.path == "/login/oauth/access_token"
                and asked["client_secret"] == SECRET
                and challenge == (tmp_path / "challenge").read_text()
            )
            if asked["code"] == "broken":
                self.answer(500, {})
            elif right and asked["code"] != "refused":
                self.answer(200, {"access_token": asked["code"], "token_type": "bearer"})
            else:
                self.answer(200, {"error": "bad_verification_code"})

        def do_GET(self) -> None:
            person = PEOPLE.get(self.headers["Authorization"].split()[-1])
            if person is None:
                self.answer(401, {"message": "Bad credentials"})
            elif self.path == "/api/v3/user":
                self.answer(200, person[0])
            else:
                self.answer(200, person[1])

        def answer(self, status: int, body: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), GitHub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def walked(tmp_path: Path, github: str, *codes: str, **changes: str) -> dict[str, Any]:
    """What the site does about each code, in a process of its own."""
    (tmp_path / "elsewhere.py").write_text(
        "from kbx_site.settings.development import *\n"
        f"SOCIALACCOUNT_PROVIDERS['github']['GITHUB_URL'] = {github!r}\n"
    )
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT}:{tmp_path}",
        "KBX_STATE_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "elsewhere",
        "KBX_GITHUB_CLIENT_ID": "theid",
        "KBX_GITHUB_SECRET": SECRET,
        **changes,
    }
    given = {"codes": codes, "challenge": str(tmp_path / "challenge")}
    command = [sys.executable, str(ROOT / "manage.py"), "shell", "-v0", "-c", PROGRAM]
    done = subprocess.run(
        command, env=environment, input=json.dumps(given), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_who_comes_back_from_github_is_who_they_are_there_and_nobody_else(
    tmp_path: Path, github: str
) -> None:
    failing = ("refused", "broken", "revoked")
    found = walked(tmp_path, github, *PEOPLE, *failing, KBX_EMAIL_VERIFICATION="mandatory")
    assert found["new"]["who"] == "octo-cat"
    assert found["taken"]["who"] not in ("", "ann")  # under a name that is free
    assert {found[code]["who"] for code in ("thief", "unverified", "reserved")} == {""}
    assert found["again"]["who"] == "octo-cat"
    for code in ("thief", "unverified"):  # who has an account is told by mail, not on a page
        assert found[code]["path"] == "/accounts/confirm-email/"
    assert "choose how you are called" in found["reserved"]["says"]
    for code in (*failing, "forged"):
        assert (found[code]["status"], found[code]["who"]) == (401, "")
        assert "try again" in found[code]["says"]
    assert (found["denied"]["status"], found["denied"]["who"]) == (200, "")
    assert sorted(found["accounts"].values()) == [
        [["a@b.org", True]],
        [["ann@example.org", True]],
        [["new@example.org", False]],
        [["octo@example.org", True]],
    ]
    assert [name for name, has_one in found["passwords"].items() if has_one] == ["ann"]


def test_where_sign_up_is_closed_github_lets_nobody_new_in(tmp_path: Path, github: str) -> None:
    found = walked(tmp_path, github, "new", KBX_SIGNUP="0")
    assert found["new"]["who"] == ""
    assert "closed" in found["new"]["says"].lower()
    assert list(found["accounts"]) == ["ann"]
