"""Who is sent when: windows, turns, leases, and what the sweeper does about silence."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone

from benchmark.models import Gpu, Run, Submission, Task
from runner import dispatch, recording
from runner.models import Device, Job

pytestmark = pytest.mark.django_db
BOARD = {"gpu": "h200", "serial": "abc", "host": "lab"}


@pytest.fixture(autouse=True)
def window(settings: Any) -> None:
    settings.KBX_DISPATCH_WINDOW = 4
    settings.KBX_MAX_ATTEMPTS = 3
    settings.KBX_RETRY_SECONDS = 0


def enqueue(submission: Submission, *gpus: Gpu) -> int:
    return dispatch.enqueue(submission.candidates.select_related("task"), gpus)


def past(**fields: Any) -> None:
    """Let the leases of all jobs run out."""
    Job.objects.filter(lease_expires_at__isnull=False).update(
        lease_expires_at=timezone.now() - timedelta(seconds=1), **fields
    )


def present(gpu: Gpu, at: datetime | None = None) -> Device:
    return Device.objects.create(
        gpu=gpu, serial="abc", host="lab", last_seen_at=at or timezone.now()
    )


def test_only_a_window_is_in_the_broker(h200: Gpu, make: Any, outbox: Any, committed: Any) -> None:
    with committed():
        assert enqueue(make.submission("a", tasks=10), h200) == 10
    assert len(outbox.jobs()) == 4
    assert Job.objects.waiting().count() == 6
    with committed():
        assert dispatch.fill(h200) == 0


def test_a_finished_job_lets_the_next_one_in(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    with committed():
        enqueue(make.submission("a", tasks=6), h200)
    job = Job.objects.sent().first()
    with committed():
        recording.record_report(str(job.uuid), 1, BOARD, make.report(job))
    assert Job.objects.sent().count() >= 4
    assert len(outbox.jobs()) >= 5


def test_the_message_carries_all_that_a_board_needs(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    with committed():
        enqueue(make.submission("a", tasks=1), h200)
    job = Job.objects.get()
    [message] = outbox.jobs()
    assert message.pop("time_limit") > 0
    assert message == {
        "name": "runner.judge_job",
        "job": str(job.uuid),
        "attempt": 1,
        "task": "task0",
        "task_digest": job.candidate.task.digest,
        "round": 0,
        "source": job.candidate.source.text,
        "source_sha256": job.candidate.source_id,
    }


def test_nothing_is_sent_for_a_transaction_that_fails(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    submission = make.submission("a", tasks=2)
    with committed(), transaction.atomic():
        enqueue(submission, h200)
        transaction.set_rollback(True)
    assert outbox.jobs() == []
    assert not Job.objects.exists()


def test_a_second_enqueue_adds_no_open_job(h200: Gpu, make: Any, committed: Any) -> None:
    submission = make.submission("a", tasks=2)
    with committed():
        enqueue(submission, h200)
        enqueue(submission, h200)
    assert Job.objects.count() == 2


def test_submissions_take_turns(h200: Gpu, make: Any, settings: Any, committed: Any) -> None:
    """A large submission that came first doesn't hold up a small one that came later."""
    settings.KBX_DISPATCH_WINDOW = 1
    large, small = make.submission("large", tasks=6), make.submission("small", tasks=2)
    with committed():
        enqueue(large, h200)
        enqueue(small, h200)
    order = []
    while job := Job.objects.sent().first():
        order.append(job.candidate.submission.label)
        with committed():
            recording.record_declined(str(job.uuid), 1, "next")
    assert order == ["large", "small", "large", "small", "large", "large", "large", "large"]


def test_one_window_is_shared_between_submissions(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    large, small = make.submission("large", tasks=6), make.submission("small", tasks=6)
    with committed():
        enqueue(large, h200)
        enqueue(small, h200)
    labels = Counter(Job.objects.sent().values_list("candidate__submission__label", flat=True))
    assert labels == {"large": 2, "small": 2}


def test_more_boards_widen_the_window(h200: Gpu, make: Any, outbox: Any, committed: Any) -> None:
    for serial in "ab":
        Device.objects.create(gpu=h200, serial=serial, host="x", last_seen_at=timezone.now())
    with committed():
        enqueue(make.submission("a", tasks=20), h200)
    assert len(outbox.jobs()) == 8


def test_the_interpreter_gets_only_what_it_can_compute(
    interpreter: Gpu, h200: Gpu, make: Any, committed: Any
) -> None:
    submission = make.submission("a", tasks=1)
    make.candidate(submission, make.task("bfloat16_only", interpretable=False))
    with committed():
        enqueue(submission, interpreter, h200)
    assert Job.objects.filter(gpu=h200).count() == 2
    assert [j.candidate.task.slug for j in Job.objects.filter(gpu=interpreter)] == ["task0"]


def test_a_running_job_that_fell_silent_is_sent_again(
    job: Job, outbox: Any, committed: Any
) -> None:
    recording.record_started(str(job.uuid), 1, BOARD)
    past()
    with committed():
        assert dispatch.sweep() == 1
    job.refresh_from_db()
    assert (job.state, job.attempt, job.device) == ("queued", 2, None)
    assert "fell silent" in job.reason
    assert [message["attempt"] for message in outbox.jobs()] == [2]


def test_a_failed_attempt_is_followed_by_a_pause(
    job: Job, settings: Any, outbox: Any, committed: Any
) -> None:
    """A broken host must not burn every job's attempts within seconds."""
    settings.KBX_RETRY_SECONDS = 60
    with committed():
        recording.record_failure(str(job.uuid), 1, "another version of the suite")
        dispatch.sweep()
    assert outbox.jobs() == []
    Job.objects.update(wait_until=timezone.now())
    with committed():
        dispatch.sweep()
    assert [message["attempt"] for message in outbox.jobs()] == [2]


def test_a_job_within_its_lease_is_left_alone(job: Job, outbox: Any, committed: Any) -> None:
    recording.record_started(str(job.uuid), 1, BOARD)
    with committed():
        assert dispatch.sweep() == 0
    assert outbox.jobs() == []


def test_a_job_is_lost_after_the_last_attempt(job: Job, committed: Any) -> None:
    for attempt in (1, 2, 3):
        recording.record_started(str(job.uuid), attempt, BOARD)
        past()
        with committed():
            dispatch.sweep()
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("lost", 3)
    assert job.reason.startswith("attempt 3: ")
    assert not Run.objects.exists()


def test_without_a_board_a_queued_job_waits_for_ever(job: Job, outbox: Any, committed: Any) -> None:
    """Nobody judges: the message is where it was put, and sending it again would only double it."""
    for _ in range(5):
        past()
        with committed():
            assert dispatch.sweep() == 0
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 1)
    assert job.lease_expires_at > timezone.now()


def test_what_an_idle_board_does_not_take_is_sent_again_and_costs_no_attempt(
    job: Job, h200: Gpu, outbox: Any, committed: Any
) -> None:
    """A board that says it is there and takes nothing, for hours, must not lose a job."""
    present(h200)
    for _ in range(5):
        past()
        with committed():
            assert dispatch.sweep() == 1
    assert [message["attempt"] for message in outbox.jobs()] == [1] * 5
    job.refresh_from_db()
    assert (job.state, job.attempt) == ("queued", 1)


def test_a_message_that_nobody_takes_is_looked_after_less_and_less(
    job: Job, h200: Gpu, committed: Any
) -> None:
    present(h200)
    made = timezone.now() - timedelta(hours=4)
    Job.objects.update(created_at=made, lease_expires_at=made)
    with committed():
        dispatch.sweep()
    job.refresh_from_db()
    assert job.lease_expires_at > timezone.now() + timedelta(hours=3)


def test_a_busy_board_takes_its_messages_in_turn(
    job: Job, h200: Gpu, make: Any, committed: Any
) -> None:
    present(h200)
    earlier = make.candidate(job.candidate.submission, make.task("earlier"))
    now = timezone.now()
    Job.objects.create(
        candidate=earlier, gpu=h200, state="running", started_at=now,
        sent_at=now - timedelta(hours=1), lease_expires_at=now + timedelta(minutes=1),
    )  # fmt: skip
    Job.objects.filter(pk=job.pk).update(lease_expires_at=now - timedelta(seconds=1))
    with committed():
        assert dispatch.sweep() == 0


def test_an_overtaken_message_is_gone(job: Job, h200: Gpu, make: Any, committed: Any) -> None:
    later = make.candidate(job.candidate.submission, make.task("later"))
    now = timezone.now() + timedelta(seconds=5)
    Job.objects.create(
        candidate=later, gpu=h200, state="running", sent_at=now, started_at=now,
        lease_expires_at=now + timedelta(minutes=1),
    )  # fmt: skip
    Job.objects.filter(pk=job.pk).update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    with committed():
        assert dispatch.sweep() == 1


def test_a_job_that_was_never_sent_is_sent_by_the_sweeper(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    candidate = make.submission("a", tasks=1).candidates.get()
    Job.objects.create(candidate=candidate, gpu=h200)
    with committed():
        dispatch.sweep()
    assert len(outbox.jobs()) == 1


def test_without_a_broker_jobs_wait_as_rows_and_go_out_later(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    outbox.folder.rename(away := outbox.folder.with_name("away"))
    try:
        with committed():
            enqueue(make.submission("a", tasks=2), h200)
    finally:
        away.rename(outbox.folder)
    assert Job.objects.waiting().count() == 2
    with committed():
        dispatch.sweep()
    assert len(outbox.jobs()) == 2


def test_cancelled_jobs_are_not_sent_and_not_recorded(
    h200: Gpu, make: Any, outbox: Any, committed: Any
) -> None:
    with committed():
        enqueue(make.submission("a", tasks=6), h200)
    assert dispatch.cancel(Job.objects.all()) == 6
    outbox.clear()
    with committed():
        dispatch.sweep()
    job = Job.objects.first()
    assert outbox.jobs() == []
    assert recording.record_report(str(job.uuid), 1, BOARD, make.report(job)) is None


def test_submitters_take_turns_whatever_they_submit(
    h200: Gpu, make: Any, outbox: Any, committed: Any, django_user_model: Any
) -> None:
    """One has many submissions and much in each, the other little: they alternate."""
    greedy, modest = (django_user_model.objects.create(username=name) for name in ("g", "m"))
    for label in "abc":
        enqueue(of(make.submission(label, tasks=4), greedy), h200)
    small = of(make.submission("d", tasks=2), modest)
    enqueue(small, h200)
    with committed():
        dispatch.fill(h200)
    sent = Job.objects.sent().values_list("candidate__submission__submitted_by__username")
    assert Counter(name for (name,) in sent) == {"g": 2, "m": 2}


def test_a_single_file_goes_before_its_submitters_large_submissions(
    h200: Gpu, make: Any, outbox: Any, committed: Any, django_user_model: Any
) -> None:
    user = django_user_model.objects.create(username="one")
    enqueue(of(make.submission("large", tasks=9), user), h200)
    single = of(make.submission("single", tasks=1), user)
    enqueue(single, h200)
    with committed():
        dispatch.fill(h200)
    assert outbox.jobs()[0]["job"] == str(Job.objects.get(candidate__submission=single).uuid)


def of(submission: Submission, user: Any) -> Submission:
    submission.submitted_by = user
    submission.save()
    return submission


def test_what_is_open_of_submissions_tasks_and_accounts_is_taken_back_with_a_reason(
    h200: Gpu, make: Any, committed: Any, django_user_model: Any
) -> None:
    user = django_user_model.objects.create(username="one")
    theirs, other = make.submission("a", tasks=2), make.submission("b", tasks=3)
    Submission.objects.filter(pk=theirs.pk).update(submitted_by=user)
    with committed():
        enqueue(theirs, h200)
        enqueue(other, h200)
    assert dispatch.cancel_of_user(user, "banned") == 2
    assert dispatch.cancel_of_tasks(Task.objects.filter(slug="task0"), "retired") == 1
    assert dispatch.cancel_of_submissions([other], "withdrawn") == 2
    reasons = Job.objects.filter(state="cancelled").values_list("reason", flat=True)
    assert Counter(reasons) == {"banned": 2, "retired": 1, "withdrawn": 2}


def test_missing_judgements_are_asked_for_once(
    job: Job, h200: Gpu, make: Any, committed: Callable[[], Any]
) -> None:
    recording.record_report(str(job.uuid), 1, BOARD, make.report(job))
    lost = make.candidate(job.candidate.submission, make.task("lost"))
    Job.objects.create(candidate=lost, gpu=h200, state="lost", attempt=3)
    declined = make.candidate(job.candidate.submission, make.task("declined"))
    Job.objects.create(candidate=declined, gpu=h200, state="declined")
    with committed():
        assert dispatch.enqueue_missing(h200) == 1
        assert dispatch.enqueue_missing(h200) == 0
    assert Job.objects.open().get().candidate == lost
