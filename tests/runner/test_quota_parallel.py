"""At once, on a real database: uploads stay within the quota, guesses within the throttle."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg2
import pytest

ROOT = Path(__file__).resolve().parents[2]
THREADS, EACH, PER_DAY = 8, 3, 10
PATIENCE = 240  # seconds; only a broken system needs them

# Threads of one process, each with a connection of its own, that begin together. Uploads differ in
# their label; every one is whole or refused.
UPLOAD = """
import sys, threading, django
django.setup()
from django.contrib.auth.models import User
from django.db import connection, transaction
from benchmark import curation
from benchmark.models import Gpu, Submission, Task, TaskVersion
from runner import submitting
from runner.accounts import keys
from runner.accounts.models import ApiKey, Quota
from runner.intake import Found, Intake
from runner.models import Job

threads, each, per_day = map(int, sys.argv[1:])
for slug in ("h200", "a100"):
    Gpu.objects.create(slug=slug, name=slug.upper(), is_judging=True)
for at in range(each):
    task = Task.objects.create(slug=f"task{at}", category="math", difficulty=1, digest="d" * 64)
    TaskVersion.objects.create(task=task, digest=task.digest)
user = User.objects.create_user("ann")
together = threading.Barrier(threads)
answers = []

def within(work):
    def run(at):
        together.wait()
        try:
            answers.append(work(at))
        finally:
            connection.close()
    started = [threading.Thread(target=run, args=(at,)) for at in range(threads)]
    [thread.start() for thread in started]
    [thread.join() for thread in started]

def upload(at):
    found = [Found(f"task{n}", 0, f"# {at} {n}", f"task{n}.py") for n in range(each)]
    try:
        intake = Intake(tuple(found), ())
        return submitting.accept(submitting.method_named("M"), f"set {at}", intake, user)
    except submitting.SubmissionRefused:
        return None

within(upload)
taken = [answer for answer in answers if answer]
assert len(answers) == threads, answers
used = sorted(Quota.objects.values_list("gpu__slug", "used"))
expected = per_day // each
assert len(taken) == expected == Submission.objects.count(), (len(taken), used)
assert used == [("a100", expected * each), ("h200", expected * each)], used
assert Job.objects.filter(quota__isnull=False).count() == 2 * expected * each

# Taken back by two at a time, each submission: nothing is given back twice.
within(lambda at: submitting.withdraw(Submission.objects.get(pk=taken[at % len(taken)].pk)))
assert sum(Quota.objects.values_list("used", flat=True)) == 0, list(Quota.objects.values())

def make_two(at):
    made = 0
    for _ in range(2):
        try:
            made += bool(keys.make(user, f"key {at}"))
        except keys.KeyRefused:
            pass
    return made

answers.clear()
within(make_two)
assert ApiKey.objects.count() == sum(answers) == keys.MOST_AN_HOUR, answers

# An upload that comes while its account is being banned waits for that, and is refused.
answers.clear()
begun = threading.Event()

def late():
    begun.set()
    answers.append(upload("late"))
    connection.close()

uploading = threading.Thread(target=late)
Quota.objects.update(used=0)
with transaction.atomic():
    curation.ban(user, None, "spam", hide=False)
    uploading.start()
    begun.wait()
    uploading.join(1)  # it can't come to an end before the ban does
uploading.join()
assert answers == [None], answers
print("ok")
"""

# The settings of a public site, whose throttles count in the database.
GUESS = """
import sys, threading, django
django.setup()
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

threads = int(sys.argv[1])
User.objects.create_user("ann", "ann@example.org", "long-enough-to-pass")
together = threading.Barrier(threads)
said = []

def guess():
    together.wait()
    form = {"login": "ann", "password": "wrong"}
    for _ in range(2):
        answer = Client().post("/accounts/login/", form, secure=True, headers={"host": "x.org"})
        page = answer.content.decode()
        said.append("tried" if "not correct" in page else "stopped" if "Too many" in page else page)
    connection.close()

started = [threading.Thread(target=guess) for _ in range(threads)]
[thread.start() for thread in started]
[thread.join() for thread in started]
assert set(said) == {"tried", "stopped"} and len(said) == 2 * threads, said
print(said.count("tried"))
"""

# Uploads by one account at once, of which so many an hour are taken.
SEND = """
import sys, threading, django
django.setup()
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from runner.accounts import keys

threads, allowed = map(int, sys.argv[1:])
settings.REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]["submissions"] = f"{allowed}/hour"
secret = keys.make(User.objects.create_user("ann"), "laptop").secret
together = threading.Barrier(threads)
said = []

def send():
    together.wait()
    for _ in range(3):
        form = {"file": SimpleUploadedFile("a.py", b"x = 1"), "method": "M", "label": "a"}
        headers = {"host": "x.org", "authorization": f"Bearer {secret}"}
        answer = Client().post("/api/v1/submissions/", form, secure=True, headers=headers)
        said.append((answer.status_code, answer.headers.get("Retry-After")))
    connection.close()

started = [threading.Thread(target=send) for _ in range(threads)]
[thread.start() for thread in started]
[thread.join() for thread in started]
statuses = [status for status, _ in said]
assert set(statuses) == {400, 429} and len(said) == 3 * threads, said
assert all(after for status, after in said if status == 429), said
print(statuses.count(400))
"""


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'kbx.sqlite3'}"


@pytest.fixture
def postgresql() -> Iterator[str]:
    server, name = os.environ["KBX_TEST_DATABASE_URL"], f"kbx_{uuid4().hex[:12]}"
    with closing(psycopg2.connect(server)) as connection:
        connection.autocommit = True
        connection.cursor().execute(f"CREATE DATABASE {name}")
        try:
            yield urlsplit(server)._replace(path=f"/{name}").geturl()
        finally:
            connection.cursor().execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    "database", ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)]
)
def test_uploads_at_once_are_charged_once_each_and_never_above_the_quota(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": request.getfixturevalue(database),
        "DJANGO_SETTINGS_MODULE": "kbx_site.settings.development",
        "KBX_STATE_DIR": str(tmp_path),
        "KBX_BROKER_URL": "filesystem://localhost//",
        "KBX_QUOTA_PER_DAY": str(PER_DAY),
        "PYTHONPATH": str(ROOT),
    }
    manage = [sys.executable, str(ROOT / "manage.py"), "migrate", "-v0"]
    subprocess.run(manage, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    program = [sys.executable, "-c", UPLOAD, str(THREADS), str(EACH), str(PER_DAY)]
    done = subprocess.run(
        program, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout.strip() == "ok", done.stderr[-3000:]


@pytest.mark.servers
def test_guesses_at_once_are_counted_together(postgresql: str, tmp_path: Path) -> None:
    # At most 5 in five minutes; a guess that waits too long for its turn is stopped, not let in.
    assert 1 <= in_production(postgresql, tmp_path, GUESS, THREADS) <= 5


@pytest.mark.servers
def test_uploads_at_once_are_counted_together(postgresql: str, tmp_path: Path) -> None:
    assert 1 <= in_production(postgresql, tmp_path, SEND, THREADS, 5) <= 5


def in_production(database: str, folder: Path, program: str, *arguments: int) -> int:
    """What the program prints, with the settings and the database of a public site."""
    environment = {
        **os.environ,
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "kbx_site.settings.production",
        "KBX_STATE_DIR": str(folder),
        "KBX_BROKER_URL": os.environ["KBX_TEST_BROKER_URL"],
        "KBX_SECRET_KEY": secrets.token_urlsafe(50),
        "KBX_ALLOWED_HOSTS": "x.org",
        "PYTHONPATH": str(ROOT),
    }
    for step in (("migrate", "-v0"), ("collectstatic", "--no-input", "-v0")):
        manage = [sys.executable, str(ROOT / "manage.py"), *step]
        subprocess.run(manage, env=environment, check=True, capture_output=True, timeout=PATIENCE)
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)
