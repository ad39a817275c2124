"""A public site does not start with an insecure value, and says which and what to do."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOOD = {
    "DJANGO_SETTINGS_MODULE": "kbx_site.settings.production",
    "DATABASE_URL": "postgresql://kbx:a-password@db.internal:5432/kbx",
    "KBX_BROKER_URL": "redis://:a-password@broker.internal:6379/0",
    "KBX_SECRET_KEY": secrets.token_urlsafe(50),
    "KBX_ALLOWED_HOSTS": "kernelbench.example.org",
}


def manage(tmp_path: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = {**kept, "KBX_STATE_DIR": str(tmp_path), **GOOD, **changes}
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip


def test_good_settings_pass_the_deployment_check(tmp_path: Path) -> None:
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("KBX_SECRET_KEY", "", "KBX_SECRET_KEY is not set"),
        ("KBX_SECRET_KEY", "short", "KBX_SECRET_KEY is weak"),
        ("KBX_SECRET_KEY", "a" * 60, "KBX_SECRET_KEY is weak"),
        ("KBX_SECRET_KEY", "development-only-and-public" * 3, "KBX_SECRET_KEY is weak"),
        ("KBX_ALLOWED_HOSTS", "", "KBX_ALLOWED_HOSTS must name"),
        ("KBX_ALLOWED_HOSTS", "*", "KBX_ALLOWED_HOSTS must name"),
        ("KBX_ALLOWED_HOSTS", "https://board.org", "leave https:// and the port out"),
        ("KBX_ALLOWED_HOSTS", "board.org:443", "leave https:// and the port out"),
        ("KBX_LOG_LEVEL", "loud", "use one of DEBUG, INFO"),
        ("KBX_MAX_ATTEMPTS", "0", "use 1 or more"),
        ("KBX_BEHIND_PROXY", "maybe", "use 1 or 0"),
        ("DATABASE_URL", "", "DATABASE_URL is not set"),
        ("DATABASE_URL", "db", "DATABASE_URL can't be read"),
        ("DATABASE_URL", "postgresql://u:p@h:x/db", "DATABASE_URL can't be read"),
        ("DATABASE_URL", "sqlite:////tmp/x.sqlite3", "DATABASE_URL must be PostgreSQL"),
        ("KBX_DEBUG", "1", "KBX_DEBUG=1 shows sources"),
        ("KBX_SENTRY_DSN", "https://nowhere", "KBX_SENTRY_DSN can't be read"),
        ("KBX_LOG_FORMAT", "xml", "use one of LINE, JSON"),
        ("KBX_BROKER_URL", "", "KBX_BROKER_URL is not set"),
        ("KBX_BROKER_URL", "filesystem://", "KBX_BROKER_URL must be Redis or RabbitMQ"),
    ],
)
def test_an_insecure_value_stops_the_start(
    tmp_path: Path, variable: str, value: str, said: str
) -> None:
    done = manage(tmp_path, "check", **{variable: value})
    assert done.returncode != 0
    assert said in done.stderr


def test_all_that_is_wrong_is_said_at_once_and_no_secret_with_it(tmp_path: Path) -> None:
    secret = "hush-hush"
    wrong = {
        "DATABASE_URL": f"mysql://kbx:{secret}@db.internal/kbx",
        "KBX_BROKER_URL": f"carrier://:{secret}@roof",
        "KBX_SECRET_KEY": secret,
        "KBX_ALLOWED_HOSTS": "*",
        "KBX_MAIL_URL": f"ftp://u:{secret}@host",
        "KBX_METRICS_TOKEN": secret,
        "KBX_MAX_ATTEMPTS": "many",
        "KBX_BEHIND_PROXY": "maybe",
        "KBX_GITHUB_CLIENT_ID": "one of two",
    }
    said = manage(tmp_path, "check", **wrong).stderr
    assert f"{len(wrong)} faults keep this site from starting:" in said
    for name in wrong:
        assert name in said
    assert secret not in said


def test_a_server_on_this_machine_may_know_who_asks(tmp_path: Path) -> None:
    here = {
        "DATABASE_URL": "postgresql://kbx@%2Frun%2Fpostgresql/kbx",
        "KBX_BROKER_URL": "redis://127.0.0.1:6379/0",
        "KBX_SENTRY_DSN": "https://key@sentry.example.org/1",
        "KBX_METRICS_ALLOW": "10.0.0.0/8",
    }
    done = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **here)
    assert done.returncode == 0, done.stderr


def test_who_signed_in_before_a_new_key_stays_signed_in(tmp_path: Path) -> None:
    """Old keys verify and the new one signs: the order of a rotation."""
    program = (
        "from django.core import signing; import os;"
        "old = signing.dumps('x', key=os.environ['KBX_SECRET_KEY_FALLBACKS']);"
        "print(signing.loads(old), signing.dumps('x').split(':')[0] == old.split(':')[0])"
    )
    done = manage(
        tmp_path, "shell", "-v0", "-c", program, KBX_SECRET_KEY_FALLBACKS=secrets.token_urlsafe(50)
    )
    assert done.stdout.split() == ["x", "True"], done.stderr


def test_strangers_may_not_submit_by_default(tmp_path: Path) -> None:
    done = manage(
        tmp_path, "shell", "-v0", "-c",
        "from django.conf import settings; print(settings.KBX_OPEN_SUBMISSIONS, settings.DEBUG)",
    )  # fmt: skip
    assert done.stdout.split() == ["False", "False"]


def test_static_files_can_be_collected_with_hashed_names(tmp_path: Path) -> None:
    done = manage(tmp_path, "collectstatic", "--no-input", "-v0")
    assert done.returncode == 0, done.stderr[-2000:]
    assert list((tmp_path / "static").rglob("plotly.min.*.js.gz"))


@pytest.mark.parametrize(
    ("url", "queue_type"),
    [("redis://broker/0", "classic"), ("amqp://broker//", "quorum"), ("filesystem://", "classic")],
)
def test_the_broker_decides_how_messages_are_kept(
    tmp_path: Path, url: str, queue_type: str
) -> None:
    from kbx_site.celery import HARD_LIMIT_SECONDS, configuration

    conf = configuration(url, tmp_path)
    assert conf["task_create_missing_queue_type"] == queue_type
    assert conf["accept_content"] == ["json"]
    assert conf["task_acks_late"]
    if url.startswith("redis"):
        visible = conf["broker_transport_options"]["visibility_timeout"]
        assert visible > HARD_LIMIT_SECONDS  # else a long job is handed out twice


def test_an_unknown_broker_is_refused(tmp_path: Path) -> None:
    from kbx_site.celery import configuration
    from kbx_site.env import Misconfigured

    with pytest.raises(Misconfigured, match="KBX_BROKER_URL"):
        configuration("carrier-pigeon://roof", tmp_path)


def test_messages_keep_their_order_and_appear_whole(tmp_path: Path) -> None:
    """Readers look for *.msg: a half-written message must not have that name."""
    from kombu import Connection

    from kbx_site.celery import configuration

    conf = configuration("filesystem://localhost//", tmp_path)
    with Connection(
        conf["broker_url"],
        transport=conf["broker_transport"],
        transport_options=conf["broker_transport_options"],
    ) as connection:
        # A name of its own: kombu remembers bindings per process, whatever the folder.
        queue = connection.SimpleQueue("ordered")
        for number in range(20):
            queue.put(number)
        assert len(list(tmp_path.rglob("*.ordered.msg"))) == 20
        for number in range(20):
            message = queue.get(timeout=5)
            message.ack()
            assert message.payload == number
    assert not list(tmp_path.rglob("*.part"))


def test_a_gpu_host_judges_without_django(tmp_path: Path) -> None:
    """Its worker loads the tasks and the judge; nothing of Django, no database, no secret."""
    code = (
        "import sys, kbx_site.celery, runner.tasks, runner.judging, runner.commands.worker; "
        "print('django.db' in sys.modules, 'torch' in sys.modules, "
        "kbx_site.celery.app.tasks['runner.judge_job'].name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True,
        env={"PATH": os.environ["PATH"], "KBX_STATE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["False", "False", "runner.judge_job"], done.stderr[-2000:]
