"""What Prometheus reads: who may, what is counted, and that it is what the database says."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from benchmark import vocabulary
from kbx_site import gauges, readiness
from runner.models import BuildRequest, Device, Job

TOKEN = "a-long-token-of-a-test"
QUERIES = 13  # of a scrape


def scrape(client: Client, **headers: str) -> dict[str, dict[tuple[str, ...], float]]:
    """By metric, the value of each set of labels."""
    answer = client.get("/metrics", headers=headers)
    assert answer.status_code == 200
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
    return found


@pytest.fixture
def busy(db, make) -> SimpleNamespace:
    """A GPU with jobs in each state, one overdue, and a board of each health."""
    now = timezone.now()
    gpu, idle = make.gpu("h200"), make.gpu("b200")
    submission = make.submission()
    states = [
        {"state": vocabulary.QUEUED},
        {
            "state": vocabulary.QUEUED,
            "attempt": 2,
            "failures": 1,
            "reason": "1: the board fell silent",
        },
        {"state": vocabulary.RUNNING, "sent_at": now, "lease_expires_at": now + timedelta(hours=1)},
        {"state": vocabulary.RUNNING, "sent_at": now, "lease_expires_at": now - timedelta(hours=1)},
        {
            "state": vocabulary.LOST,
            "attempt": 3,
            "failures": 3,
            "ended_at": now,
            "reason": "attempt 3: OSError",
        },
        {"state": vocabulary.QUEUED, "attempt": 2, "reason": "attempt 1: given back, unspent"},
        {"state": vocabulary.DECLINED, "ended_at": now, "reason": "not here"},
    ]
    for at, fields in enumerate(states):
        candidate = make.candidate(submission, make.task(f"task{at}"))
        Job.objects.create(candidate=candidate, gpu=gpu, **fields)
    oldest = Job.objects.order_by("pk").first()
    Job.objects.filter(pk=oldest.pk).update(created_at=now - timedelta(hours=2))
    boards = {
        "a": (now, {}),
        "b": (now - timedelta(hours=1), {}),
        "c": (now, {"state": vocabulary.BROKEN, "reason": "it fell off the bus"}),
        "d": (now, {"state": vocabulary.GONE}),
    }
    for serial, (seen, facts) in boards.items():
        Device.objects.create(gpu=gpu, serial=serial, host="one", last_seen_at=seen, **facts)
    task = make.task("relu")
    run = make.run(submission, task, gpu, speedup=2.0, seconds={"load": 1.0, "total": 12.5})
    return SimpleNamespace(gpu=gpu, idle=idle, run=run, submission=submission)


def test_metrics_are_not_public(db, settings) -> None:
    settings.KBX_METRICS_ALLOW, settings.KBX_METRICS_TOKEN = [], ""
    client = Client()
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"authorization": "Bearer "}).status_code == 404
    settings.KBX_METRICS_TOKEN = TOKEN
    assert client.get("/metrics").status_code == 404
    assert client.get("/metrics", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 404
    assert scrape(client, authorization=f"Bearer {TOKEN}")


def test_an_address_counts_as_far_as_a_proxy_of_ours_tells_it(db, settings) -> None:
    settings.KBX_METRICS_ALLOW = ["10.0.0.0/8"]
    client = Client(REMOTE_ADDR="10.1.2.3")
    assert client.get("/metrics").status_code == 200
    forged = {"x-forwarded-for": "10.1.2.3"}
    assert Client(REMOTE_ADDR="203.0.113.9").get("/metrics", headers=forged).status_code == 404
    assert Client(REMOTE_ADDR="").get("/metrics").status_code == 404
    settings.REST_FRAMEWORK = {**settings.REST_FRAMEWORK, "NUM_PROXIES": 1}
    proxied = Client(REMOTE_ADDR="127.0.0.1")
    assert proxied.get("/metrics", headers=forged).status_code == 200
    longer = {"x-forwarded-for": "10.1.2.3, 203.0.113.9"}  # what a visitor sent, then the proxy
    assert proxied.get("/metrics", headers=longer).status_code == 404


def test_jobs_boards_and_failures_are_those_of_the_database(busy) -> None:
    found = scrape(Client())
    assert found["kbx_open_jobs"] == {
        ("h200", "queued"): 3, ("h200", "running"): 2,
        ("b200", "queued"): 0, ("b200", "running"): 0,
    }  # fmt: skip
    assert found["kbx_overdue_jobs"] == {("h200",): 1, ("b200",): 0}
    assert found["kbx_oldest_queued_seconds"][("h200",)] == pytest.approx(7200, abs=60)
    assert found["kbx_oldest_queued_seconds"][("b200",)] == 0
    assert found["kbx_boards"] == {
        ("h200", "serving"): 1, ("h200", "silent"): 1, ("h200", "broken"): 1,
        ("b200", "serving"): 0, ("b200", "silent"): 0,
    }  # fmt: skip
    assert found["kbx_jobs_last_day"] == {
        ("h200", "queued"): 3, ("h200", "running"): 2, ("h200", "lost"): 1, ("h200", "declined"): 1,
    }  # fmt: skip
    assert found["kbx_retried_jobs_last_day"][("h200", "lost")] == 1
    assert found["kbx_retried_jobs_last_day"][("h200", "queued")] == 1
    assert found["kbx_failed_jobs"] == {("h200", "silent"): 1, ("h200", "judge"): 2}
    assert found["kbx_build_requests"] == {("waiting",): 0, ("given_up",): 0}


def test_runs_are_counted_with_the_seconds_that_boards_spent(busy, make) -> None:
    from django.db.models import QuerySet

    old = make.run(busy.submission, make.task("old"), busy.gpu, speedup=1.0)
    QuerySet(type(old)).filter(pk=busy.run.pk).update(created_at=timezone.now())
    found = scrape(Client())
    assert found["kbx_runs_last_hour"] == {("h200", "passed"): 1}
    assert found["kbx_judge_seconds_last_hour"] == {("h200", "passed"): 12.5}


def test_builds_that_wait_and_that_were_given_up_are_counted(db, make) -> None:
    for text, gave_up in (("a", None), ("b", timezone.now()), ("c", None)):
        BuildRequest.objects.create(
            source=make.source(text), task=make.task(f"t{text}"), gave_up_at=gave_up
        )
    assert scrape(Client())["kbx_build_requests"] == {("waiting",): 2, ("given_up",): 1}


def test_messages_in_the_broker_are_counted_by_queue(busy) -> None:
    from kbx_site.celery import app

    before = scrape(Client())["kbx_broker_messages"]
    assert before[("gpu.h200",)] == 0
    app.send_task("runner.judge_job", kwargs={"job": "x"}, queue="gpu.h200")
    after = scrape(Client())["kbx_broker_messages"]
    assert after[("gpu.h200",)] == 1
    assert {queue for (queue,) in after} == {"site", "builds", "gpu.h200", "gpu.b200"}


def test_requests_are_counted_by_view_and_never_by_path(site_of_one_task) -> None:
    client = Client()
    key = ("GET", "200", "leaderboard:task")  # labels come sorted by name
    before = scrape(client).get("kbx_requests_total", {}).get(key, 0)
    client.get("/tasks/relu/?secret=in-the-query")
    client.get("/nothing/of/that/name/")
    client.generic("MADE-UP-7", "/healthz")
    found = scrape(client)
    assert found["kbx_requests_total"][key] == before + 1
    assert found["kbx_requests_total"][("GET", "404", "none")] >= 1
    assert found["kbx_request_seconds_count"][("leaderboard:task",)] >= 1
    assert found["kbx_requests_total"][("other", "405", "healthz")] >= 1
    assert "MADE-UP-7" not in str(found)
    assert not [labels for rows in found.values() for labels in rows if "secret" in str(labels)]


@pytest.fixture
def site_of_one_task(db, make) -> None:
    make.gpu()
    make.task()


def test_the_cost_of_a_scrape_does_not_grow_with_what_is_there(
    busy, make, django_assert_num_queries
) -> None:
    client = Client()
    scrape(client)
    with django_assert_num_queries(QUERIES):
        scrape(client)
    for at in range(5):
        make.run(busy.submission, make.task(f"more{at}"), make.gpu(f"gpu{at}"), speedup=1.0)
    with django_assert_num_queries(QUERIES):
        scrape(client)


def test_a_database_that_is_away_is_said_and_the_rest_still_answers(db) -> None:
    with connection.execute_wrapper(gone):
        found = scrape(Client())
        ready = Client().get("/readyz")
    assert found["kbx_check"][("database",)] == 0
    assert "kbx_open_jobs" not in found
    assert found["kbx_check"][("broker",)] == 1
    assert ready.status_code == 503
    assert ready.json()["database"] == "the database does not answer"
    assert "secret" not in ready.content.decode()


def gone(*_: object) -> None:
    """What a driver raises when its server went away."""
    raise OperationalError('connection to "db.internal" as "secret" failed')


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("attempt 2: the board fell silent during check", "silent"),
        ("attempt 1: the judge's report was refused: report.task: ...", "report-refused"),
        ("attempt 1: this host's contract of relu is 12, the site's is 34: bring both to the "
         "same version and run sync_tasks", "other-version"),
        ("attempt 1: no task is named x: bring this host and the site to the same version of "
         "KernelBench-X", "other-version"),
        ("attempt 1: the source is larger than 65536 bytes", "damaged"),
        ("attempt 3: JudgeFailure: the referee died", "judge"),
    ],
)  # fmt: skip
def test_our_failures_are_told_apart(reason: str, kind: str) -> None:
    assert gauges.kind_of(reason) == kind


def test_reasons_are_written_where_they_are_looked_for() -> None:
    """The words by which failures are told apart are those that the code writes."""
    root = readiness.DIGESTS.parents[2] / "runner"
    written = " ".join(
        (root / name).read_text() for name in ("dispatch.py", "recording.py", "judging.py")
    )
    for kind, words in gauges.REASONS:
        assert words in written, kind
