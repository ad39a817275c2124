"""`kbx login` against a real site, and where it keeps a key."""

import json
import stat
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from benchmark.models import Submission
from runner import site_client, site_keys
from runner.accounts import keys
from runner.commands import login, status

SITE = "https://board.example.org"


@pytest.fixture(autouse=True)
def configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("KBX_TOKEN", raising=False)
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def sent_key(site: str) -> str | None:
    with site_client.client(site) as http:
        return http.headers.get("Authorization")


def test_a_key_is_kept_for_its_owner_alone_and_for_its_site_alone(configuration: Path) -> None:
    path = site_keys.keep(SITE, "kbx_one")
    assert path == configuration / "kbx" / "keys.json"
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert sent_key(SITE) == "Bearer kbx_one"
    for other in ("http://board.example.org", f"{SITE}:8443", "https://board.example.org.evil.org"):
        assert sent_key(other) is None
    site_keys.keep("http://127.0.0.1:8000", "kbx_two")
    assert sent_key(SITE) == "Bearer kbx_one"
    assert site_keys.forget(SITE)
    assert sent_key(SITE) is None
    assert list(path.parent.iterdir()) == [path]


def test_the_environment_goes_before_a_kept_key(monkeypatch: pytest.MonkeyPatch) -> None:
    site_keys.keep(SITE, "kbx_kept")
    monkeypatch.setenv("KBX_TOKEN", "kbx_given")
    assert sent_key(SITE) == "Bearer kbx_given"


def test_a_file_that_others_can_read_is_refused_with_the_remedy() -> None:
    path = site_keys.keep(SITE, "kbx_one")
    path.chmod(0o644)
    with pytest.raises(click.ClickException, match="chmod 600"):
        site_keys.kept(SITE)


@pytest.mark.parametrize("text", ["no json", "[1]"])
def test_a_broken_file_is_named(text: str) -> None:
    path = site_keys.keep(SITE, "kbx_one")
    path.write_text(text)
    with pytest.raises(click.ClickException, match=r"keys\.json.*remove it"):
        site_keys.kept(SITE)


@pytest.mark.django_db(transaction=True)
def test_login_tries_the_key_keeps_it_and_later_commands_use_it(
    live_server: Any, make: Any
) -> None:
    ann = User.objects.create_user("ann")
    submission = make.submission("hers")
    Submission.objects.update(submitted_by=ann, visibility="private")
    site = ["--site", live_server.url]
    secret = keys.make(ann, "laptop").secret
    asked = CliRunner().invoke(status.command, [str(submission.uuid), *site])
    assert asked.exit_code == 1
    done = CliRunner().invoke(login.command, site, input=f"{secret}\n")
    assert done.exit_code == 0, done.output
    assert "signed in as ann until 20" in done.output
    assert secret not in done.output  # typed unseen
    assert json.loads(site_keys.file().read_text()) == {live_server.url: secret}
    asked = CliRunner().invoke(status.command, [str(submission.uuid), *site])
    assert asked.exit_code == 0, asked.output
    assert CliRunner().invoke(login.command, [*site, "--forget"]).exit_code == 0
    assert CliRunner().invoke(status.command, [str(submission.uuid), *site]).exit_code == 1
    assert CliRunner().invoke(login.command, [*site, "--forget"]).exit_code == 1


@pytest.mark.django_db(transaction=True)
def test_a_key_that_the_site_refuses_is_not_kept(live_server: Any) -> None:
    done = CliRunner().invoke(
        login.command, ["--site", live_server.url, "--stdin"], input="kbx_wrong\n"
    )
    assert done.exit_code == 1
    assert "unknown" in done.output
    assert not site_keys.file().exists()


def test_login_warns_where_the_key_would_travel_in_the_clear() -> None:
    assert site_keys.is_in_the_clear("http://board.example.org")
    assert not site_keys.is_in_the_clear(SITE)
    assert not site_keys.is_in_the_clear("http://127.0.0.1:8000")


@pytest.mark.django_db
def test_moderators_are_made_and_unmade_by_name_or_address() -> None:
    Group.objects.get_or_create(name="Moderators")
    User.objects.create_user("ann", "ann@example.org")
    call_command("moderator", "ANN@example.org", verbosity=0)
    ann = User.objects.get()
    assert ann.is_staff
    assert ann.groups.get().name == "Moderators"
    call_command("moderator", "ann", "--remove", verbosity=0)
    assert not User.objects.get().is_staff
    assert not User.objects.get().groups.exists()
    with pytest.raises(CommandError, match="0 accounts"):
        call_command("moderator", "nobody")
