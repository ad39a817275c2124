"""A database of an earlier release with what one held, brought up to date: run by test_migrations.

Prints what the pages' selectors say then, as JSON.
"""

import hashlib
import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import django

django.setup()

from django.core.management import call_command  # noqa: E402  needs the apps
from django.db import connection  # noqa: E402
from django.db.migrations.executor import MigrationExecutor  # noqa: E402

LONG_AGO = datetime(2026, 6, 1, tzinfo=UTC)
TEXT = "def relu(x):\n    return x\n"


def migrate(targets: list[tuple[str, str]]) -> Any:
    """The historical models at these migrations."""
    executor = MigrationExecutor(connection)
    executor.migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


def newest() -> list[tuple[str, str]]:
    return MigrationExecutor(connection).loader.graph.leaf_nodes()


def fill(apps: Any) -> None:
    """What a site of the first release wrote: two methods on two tasks, each kind of job, an audit,
    a token of its API.
    """
    of = {
        name: apps.get_model("benchmark", name).objects
        for name in ("Task", "TaskVersion", "Gpu", "Method", "Submission", "Source", "Candidate",
                     "Run", "Measurement", "Audit", "Board")
    }  # fmt: skip
    user = apps.get_model("auth", "User").objects.create(username="ann", email="ann@example.org")
    gpu = of["Gpu"].create(slug="h200", name="H200", is_judging=True)
    sha = hashlib.sha256(TEXT.encode()).hexdigest()
    source = of["Source"].create(sha256=sha, text=TEXT, size=len(TEXT))
    tasks = []
    for slug in ("relu", "gelu"):
        digest = hashlib.sha256(slug.encode()).hexdigest()
        facts = {"category": "activation", "difficulty": 1, "digest": digest, "signature": slug}
        tasks.append(of["Task"].create(slug=slug, reference_source="def f(): ...", **facts))
        of["TaskVersion"].create(task=tasks[-1], digest=digest, reference_source="def f(): ...")
    board = apps.get_model("runner", "Device").objects.create(
        gpu=gpu, serial="a", host="one", last_seen_at=LONG_AGO
    )
    jobs = apps.get_model("runner", "Job").objects
    for at, (slug, visibility) in enumerate(
        (("alpha", "public"), ("beta", "public"), ("gamma", "private"))
    ):
        method = of["Method"].create(slug=slug, name=slug.title())
        submission = of["Submission"].create(
            method=method, label="first", visibility=visibility, submitted_by=user
        )
        for task in tasks:
            candidate = of["Candidate"].create(submission=submission, task=task, source=source)
            if slug == "beta" and task.slug == "gelu":
                jobs.create(candidate=candidate, gpu=gpu, state="queued")
                continue
            speedup = 2.0 - at / 2
            run = of["Run"].create(
                candidate=candidate, gpu=gpu, task_digest=task.digest, judge_version="1",
                verdict="passed", stage="time", speedup=speedup, speedup_low=speedup * 0.9,
                speedup_high=speedup * 1.1, seconds={"total": 3.0},
            )  # fmt: skip
            of["Measurement"].create(
                run=run, position=0, case="timed", kind="timed", shape="n=3", dtype="float32",
                state="passed", candidate_ms=1.0, reference_ms=speedup, speedup=speedup,
            )  # fmt: skip
            jobs.create(candidate=candidate, gpu=gpu, state="done", run=run, device=board)
    suspect = of["Run"].get(
        candidate__submission__method__slug="alpha", candidate__task__slug="gelu"
    )
    of["Audit"].create(run=suspect, verdict="cheat", reason="It prints the answer.")
    lost = of["Candidate"].get(submission__method__slug="beta", task__slug="gelu")
    jobs.create(candidate=lost, gpu=gpu, state="lost", attempt=3, reason="attempt 3: silent")
    of["Board"].create(id=1, generation=7)


def say() -> dict[str, Any]:
    """What pages, the API and the sweeper find."""
    from django.contrib.auth.models import Group, User
    from django.test import Client
    from django.utils import timezone

    from benchmark.models import Board, Measurement, Run, Submission, TaskVersion
    from runner.models import Device, Job

    client = Client(headers={"host": "localhost"})
    pages = (
        "/",
        "/leaderboard/",
        "/tasks/relu/",
        "/methods/alpha/",
        "/queue/",
        "/data/",
        "/changes/",
    )
    standings = client.get("/api/v1/leaderboard/").json()
    return {
        "pages": sorted({client.get(page).status_code for page in pages}),
        "run": client.get(Run.objects.order_by("pk")[0].get_absolute_url()).status_code,
        "ranked": [row["method"]["slug"] for row in standings["standings"]],
        "solved": [row["funnel"]["correct"] for row in standings["standings"]],
        "rows": [Run.objects.count(), Measurement.objects.count(), Job.objects.count()],
        "owner": sorted(set(Submission.objects.values_list("submitted_by__username", flat=True))),
        "sources": sorted(set(Submission.objects.values_list("source_visibility", flat=True))),
        "contracts": sorted(v.contract.get("signature", "") for v in TaskVersion.objects.all()),
        "moderators": Group.objects.filter(name="Moderators").count(),
        "generation": Board.current() >= 7,
        "waits": Job.objects.waiting().count(),
        "silent": Device.objects.filter(
            last_seen_at__lt=timezone.now() - timedelta(days=1)
        ).count(),
        "user": User.objects.get().email,
    }


def main(first: list[tuple[str, str]]) -> None:
    apps = migrate(first)
    fill(apps)
    migrate(newest())
    call_command("rebuild_aggregates", "--check", verbosity=0)
    said = say()
    migrate(first)
    migrate(newest())
    assert say()["rows"] == said["rows"], "what a site had before is there after going back"
    print(json.dumps(said))  # noqa: T201  to whoever runs it


if __name__ == "__main__":
    main([tuple(one.split(".")) for one in sys.argv[1:]])  # type: ignore[misc]
