"""Which boards take jobs: let in by version, kept out with reason and remedy, back after a good
probe; and the jobs that they give back or that were set aside.
"""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from benchmark.models import Gpu, Run
from runner import boards, dispatch, recording, selectors
from runner.models import Device, Job

pytestmark = pytest.mark.django_db
OURS = "2"
BOARD = {"gpu": "h200", "serial": "abc", "host": "lab", "judge_version": OURS}


@pytest.fixture(autouse=True)
def limits(settings: Any) -> None:
    settings.KBX_MAX_ATTEMPTS = 3
    settings.KBX_RETRY_SECONDS = 0


@pytest.fixture
def tasks(make: Any) -> dict[str, str]:
    """The contracts that the site judges by."""
    return {task.slug: task.digest for task in (make.task("relu"), make.task("gelu"))}


def announce(state: str = "starting", reason: str = "", **changes: Any) -> Device | None:
    return recording.record_board({**BOARD, **changes}, state, reason, OURS)


def test_a_board_of_the_sites_version_is_let_in(h200: Gpu, tasks: dict[str, str]) -> None:
    board = announce(tasks={**tasks, "new_in_its_version": "0" * 64})
    assert board is not None
    assert (board.state, board.reason, board.judge_version) == ("starting", "", OURS)
    announce("serving", tasks=tasks)
    assert list(Device.objects.serving()) == [board]


def test_a_drained_board_is_online_no_more(h200: Gpu, tasks: dict[str, str]) -> None:
    """Its host said that it ends: until its announcement was old, the queue counted it."""
    announce("serving", tasks=tasks)
    assert [(row.devices, row.serving) for row in selectors.queues()] == [(1, 1)]
    announce("draining", tasks=tasks)
    assert [(row.devices, row.serving) for row in selectors.queues()] == [(1, 0)]
    announce("gone", tasks=tasks)
    assert not Device.objects.online().exists()
    assert sum(row.devices for row in selectors.queues()) == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"judge_version": "1"}, "its judge's version is 1, the site's 2"),
        ({"judge_version": None}, "its judge's version is unknown"),
        ({"tasks": {"relu": "0" * 64}}, "contracts of 2 of 2 tasks are not the site's: gelu, relu"),
    ],
)
@pytest.mark.parametrize("state", ["starting", "serving"])
def test_a_board_of_another_version_is_refused_with_a_remedy(
    h200: Gpu, tasks: dict[str, str], client: Client, changes: Any, said: str, state: str
) -> None:
    board = announce(state, **{"tasks": tasks, **changes})
    assert board is not None
    assert board.state == "refused"
    assert said in board.reason
    assert "sync_tasks" in board.remedy
    assert not Device.objects.serving().exists()
    page = client.get("/queue/").content.decode()
    assert "refused" in page
    assert board.remedy in page
    announce(state, tasks=tasks)
    assert "refused" not in client.get("/queue/").content.decode()


def test_a_board_says_of_itself_only_what_it_may(h200: Gpu) -> None:
    assert announce("refused", "I say so") is None
    assert not Device.objects.exists()


def test_only_a_broken_board_has_a_reason_of_its_own(h200: Gpu) -> None:
    for state, told, kept in (("broken", "", "its host did not say why"), ("serving", "x", "")):
        board = announce(state, told)
        assert board is not None
        assert (board.state, board.reason) == (state, kept)


def test_the_broker_holds_what_a_board_has_in_hand_and_a_few_more(h200: Gpu) -> None:
    announce("serving")
    room = dispatch.window(h200)
    announce("serving", jobs=8)
    assert dispatch.window(h200) == room + 7
    assert announce("serving", jobs=0) is None  # as unusable as a message without a host
    assert announce("serving", jobs=10_000) is None


def test_a_broken_board_is_shown_and_gets_nothing(h200: Gpu, make: Any, client: Client) -> None:
    announce("serving")
    room = dispatch.window(h200)
    announce("broken", "CUDA error: an illegal <memory> access")
    assert dispatch.window(h200) == room - 2
    page = client.get("/queue/").content.decode()
    assert "CUDA error: an illegal &lt;memory&gt; access" in page
    announce("serving")
    assert "CUDA error" not in client.get("/queue/").content.decode()


def test_what_a_board_gives_back_is_not_spent(job: Job, committed: Any, outbox: Any) -> None:
    for attempt in range(1, 6):
        recording.record_returned(str(job.uuid), attempt, "the board failed: no power")
    job.refresh_from_db()
    assert (job.state, job.attempt, job.failures) == ("queued", 6, 0)
    assert "no power" in job.reason
    recording.record_returned(str(job.uuid), 1, "late")
    assert "no power" in Job.objects.get().reason
    with committed():
        dispatch.fill(job.gpu)
    assert [sent["attempt"] for sent in outbox.jobs()] == [6]


def test_boards_can_not_give_a_job_back_for_ever(job: Job) -> None:
    for attempt in range(1, dispatch.MOST_ATTEMPTS + 1):
        recording.record_returned(str(job.uuid), attempt, "the board failed")
    assert Job.objects.get().state == "lost"


def test_a_late_report_of_an_older_judge_is_refused_where_it_can_be_seen(
    job: Job, make: Any
) -> None:
    older = make.report(job, judge_version="1")
    assert recording.record_report(str(job.uuid), 1, BOARD, older, OURS) is None
    job.refresh_from_db()
    assert (job.state, job.attempt, job.failures, job.run) == ("queued", 2, 0, None)
    assert "version 1 of the judge" in job.reason
    assert [board.reason for board in selectors.troubles()] == [
        "it reported with version 1 of the judge, the site's is 2"
    ]
    newer = make.report(job, judge_version=OURS)
    assert recording.record_report(str(job.uuid), 2, BOARD, newer, OURS) is not None
    assert recording.record_report(str(job.uuid), 1, BOARD, older, OURS) is None
    assert [run.judge_version for run in Run.objects.all()] == [OURS]


def set_aside(job: Job) -> None:
    for attempt in (1, 2, 3):
        recording.record_failure(str(job.uuid), attempt, "its worker died")
    job.refresh_from_db()
    assert job.state == "lost"


def test_a_job_that_fails_again_and_again_is_set_aside_and_can_be_put_back(
    job: Job, client: Client, admin_client: Client, committed: Any, outbox: Any
) -> None:
    set_aside(job)
    [row] = selectors.queues()
    assert row.set_aside == 1
    with committed():
        admin_client.post(
            "/admin/runner/job/", {"action": "put_back", "_selected_action": [job.pk]}
        )
    job.refresh_from_db()
    assert (job.state, job.attempt, job.failures, job.ended_at) == ("queued", 4, 0, None)
    assert [sent["attempt"] for sent in outbox.jobs()] == [4]
    assert selectors.queues()[0].set_aside == 0


def test_what_is_asked_for_again_already_is_not_put_back(job: Job) -> None:
    set_aside(job)
    again = Job.objects.create(candidate=job.candidate, gpu=job.gpu)
    assert dispatch.put_back(Job.objects.all()) == 0
    assert list(Job.objects.open()) == [again]
    assert not Job.objects.set_aside().exists()


def test_the_estimated_wait_is_what_was_measured_times_what_is_ahead(
    job: Job, h200: Gpu, make: Any
) -> None:
    assert selectors.queues()[0].estimate is None
    now = timezone.now()
    recording.record_report(str(job.uuid), 1, BOARD, make.report(job))
    Job.objects.update(started_at=now - timedelta(seconds=30), ended_at=now)
    for slug in ("a", "b", "c"):
        candidate = make.candidate(job.candidate.submission, make.task(slug))
        Job.objects.create(candidate=candidate, gpu=h200)
    Device.objects.all().delete()
    assert selectors.queues()[0].estimate is None  # no board takes jobs
    for host in ("one", "two"):
        recording.record_board({**BOARD, "host": host})
    estimate = selectors.queues()[0].estimate
    assert estimate is not None
    assert (estimate.ahead, estimate.boards, estimate.measured) == (3, 2, 1)
    assert estimate.wait == timedelta(seconds=45)
    recording.record_board({**BOARD, "host": "two", "jobs": 5})
    estimate = selectors.queues()[0].estimate
    assert estimate is not None
    assert (estimate.boards, estimate.at_once) == (2, 6)
    assert estimate.wait == timedelta(seconds=15)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("true", ""),
        ("sh -c 'echo fell off the bus; exit 3'", "ended with 3: fell off the bus"),
        ("/no/such/program", "KBX_PROBE can't be run"),
    ],
)
def test_the_hosts_own_probe_is_asked(
    monkeypatch: pytest.MonkeyPatch, command: str, said: str
) -> None:
    monkeypatch.setenv("KBX_PROBE", command)
    assert said in boards._hosts_own_fault(command)
    assert bool(boards._hosts_own_fault(command)) == bool(said)
