"""What boards report becomes at most one run, in whatever order and however often it arrives."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmark.models import Board, Gpu, Measurement, Run, Task, TaskVersion
from runner import dispatch, recording
from runner.models import Device, Job

pytestmark = pytest.mark.django_db
BOARD = {"gpu": "h200", "serial": "abc", "host": "lab"}


def report(job: Job, content: Any, attempt: int = 1) -> Run | None:
    return recording.record_report(str(job.uuid), attempt, BOARD, content)


def test_a_report_becomes_a_run_with_its_measurements(job: Job, make: Any) -> None:
    before = Board.current()
    run = report(job, make.report(job))
    job.refresh_from_db()
    assert (job.state, job.run, job.device.host) == ("done", run, "lab")
    assert list(run.measurements.values_list("case", "error")) == [("small-1", 0.5)]
    assert run.findings == []
    assert Board.current() == before + 1


def test_a_second_report_is_ignored(job: Job, make: Any) -> None:
    report(job, make.report(job))
    again = report(job, make.report(job, verdict="crashed", stage="call", cases=[]))
    assert again is None
    assert [run.verdict for run in Run.objects.all()] == ["passed"]
    assert Measurement.objects.count() == 1


def test_a_start_puts_the_job_on_a_lease_that_heartbeats_extend(job: Job) -> None:
    recording.record_started(str(job.uuid), 1, BOARD)
    Job.objects.update(lease_expires_at=timezone.now() - timedelta(seconds=1))
    progress = {"stage": "check", "done": 3, "total": 9}
    recording.record_heartbeat(str(job.uuid), 1, progress)
    job.refresh_from_db()
    assert job.state == "running"
    assert (job.stage, job.steps_done, job.steps_total) == ("check", 3, 9)
    assert job.lease_expires_at > timezone.now()
    assert job.device == Device.objects.get(serial="abc")


def test_a_given_up_attempt_no_longer_moves_the_job(job: Job) -> None:
    dispatch.retry(job, "silence")
    for tell in (
        lambda: recording.record_started(str(job.uuid), 1, BOARD),
        lambda: recording.record_heartbeat(str(job.uuid), 1, {"stage": "", "done": 0, "total": 0}),
        lambda: recording.record_declined(str(job.uuid), 1, "no"),
        lambda: recording.record_failure(str(job.uuid), 1, "oops"),
    ):
        tell()
        job.refresh_from_db()
        assert (job.state, job.attempt) == ("queued", 2)


def test_a_report_of_a_given_up_attempt_counts_while_the_job_is_open(job: Job, make: Any) -> None:
    dispatch.retry(job, "silence")
    assert report(job, make.report(job), attempt=1) is not None
    assert report(job, make.report(job), attempt=2) is None
    assert Run.objects.count() == 1


def test_a_report_that_comes_after_all_is_no_loss(job: Job, make: Any) -> None:
    Job.objects.update(state="lost", reason="attempt 3: the board fell silent")
    run = report(job, make.report(job))
    job.refresh_from_db()
    assert (job.state, job.run, job.reason) == ("done", run, "")


@pytest.mark.parametrize("state", ["cancelled", "declined"])
def test_a_report_for_a_closed_job_is_ignored(job: Job, make: Any, state: str) -> None:
    Job.objects.update(state=state)
    assert report(job, make.report(job)) is None
    assert not Run.objects.exists()


def test_declined_ends_without_a_run(job: Job) -> None:
    recording.record_declined(str(job.uuid), 1, "needs a GPU")
    job.refresh_from_db()
    assert (job.state, job.reason, job.run) == ("declined", "needs a GPU", None)


def test_failures_are_retried_and_then_lost(job: Job, settings: Any) -> None:
    settings.KBX_MAX_ATTEMPTS = 2
    recording.record_failure(str(job.uuid), 1, "no disk")
    job.refresh_from_db()
    assert (job.state, job.attempt, job.reason) == ("queued", 2, "attempt 1: no disk")
    recording.record_failure(str(job.uuid), 2, "no disk")
    job.refresh_from_db()
    assert job.state == "lost"
    assert not Run.objects.exists()


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no object": lambda r: None,
    "a verdict that is no word": lambda r: r | {"verdict": "fine"},
    "NaN": lambda r: r | {"speedup": float("nan")},
    "half an interval": lambda r: r | {"speedup": 2.0, "speedup_low": 1.0},
    "a value outside its interval": lambda r: (
        r | {"speedup": 3.0, "speedup_low": 1.0, "speedup_high": 2.0}
    ),
    "speed of a wrong candidate": lambda r: (
        r | {"verdict": "crashed", "speedup": 1.0, "speedup_low": 1.0, "speedup_high": 1.0}
    ),
    "a pass with a failed case": lambda r: r | {"cases": [r["cases"][0] | {"state": "failed"}]},
    "a pass without a case": lambda r: r | {"cases": []},
    "a case twice": lambda r: r | {"cases": r["cases"] * 2},
    "half a timing": lambda r: r | {"cases": [r["cases"][0] | {"candidate_ms": 1.0}]},
    "a time of zero": lambda r: r | {"cases": [r["cases"][0] | {"candidate_ms": 0}]},
    "a negative error": lambda r: r | {"cases": [r["cases"][0] | {"error": -1.0}]},
    "too many kernels": lambda r: r | {"kernels": [{"name": "k"}] * 401},
    "an endless environment": lambda r: r | {"environment": {str(n): n for n in range(3000)}},
    "another task": lambda r: r | {"task": "other"},
    "another source": lambda r: r | {"source_sha256": "0" * 64},
    "another round": lambda r: r | {"round": 1},
    "another GPU": lambda r: r | {"device": "a100"},
    "an unknown contract": lambda r: r | {"task_digest": "e" * 64},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_malformed_report_is_our_failure_and_no_run(job: Job, make: Any, change: str) -> None:
    assert report(job, CHANGES[change](make.report(job))) is None
    job.refresh_from_db()
    assert not Run.objects.exists()
    assert (job.state, job.attempt) == ("queued", 2)
    assert "report was refused" in job.reason


def test_a_report_from_a_board_of_another_gpu_is_refused(job: Job, make: Any) -> None:
    device = BOARD | {"gpu": "abacus"}
    assert recording.record_report(str(job.uuid), 1, device, make.report(job)) is None
    assert not Run.objects.exists()


def test_an_earlier_contract_of_the_task_is_recorded_as_what_it_is(job: Job, make: Any) -> None:
    """The task changed while the job was out: a run of the earlier digest, stale, but a fact."""
    Task.objects.update(digest="e" * 64)
    TaskVersion.objects.create(task=job.candidate.task, digest="e" * 64)
    assert report(job, make.report(job)) is not None
    assert not Run.objects.comparable().exists()


def test_what_a_candidate_printed_can_not_make_its_report_unusable(job: Job, make: Any) -> None:
    run = report(job, make.report(job, log_tail="a\0b\ud800c", detail="x" * 100_000))
    run.refresh_from_db()
    assert run.log_tail == "a\ufffdb?c"
    assert len(run.detail) == 8000


def test_the_interpreter_never_gives_a_speedup(interpreter: Gpu, make: Any) -> None:
    job = Job.objects.create(
        candidate=make.submission("a", tasks=1).candidates.get(), gpu=interpreter
    )
    fast = make.report(job, speedup=2.0, speedup_low=1.0, speedup_high=3.0)
    assert (
        recording.record_report(str(job.uuid), 1, BOARD | {"gpu": "cpu-interpreter"}, fast) is None
    )
    assert not Run.objects.exists()


def test_a_suspicion_of_the_judge_is_kept(job: Job, make: Any) -> None:
    assert report(job, make.report(job, suspect=True)).is_suspect
    assert not Run.objects.trusted().exists()


def test_messages_about_nothing_are_ignored(db: None) -> None:
    for name in ("", "no-uuid", None, 7, "00000000-0000-4000-8000-000000000000"):
        recording.record_started(name, 1, BOARD)
        assert recording.record_report(name, 1, BOARD, {}) is None


def test_a_product_that_the_site_meets_becomes_a_row_that_judges_nothing(db: None) -> None:
    facts = {"name": "NVIDIA H20-3e", "architecture": "sm_90", "memory": 2**37}
    device = recording.record_board(BOARD | {"gpu": "h20-3e"} | facts)
    gpu = Gpu.objects.get()
    assert device.gpu == gpu
    assert (gpu.slug, gpu.name, gpu.architecture) == ("h20-3e", "NVIDIA H20-3e", "sm_90")
    assert (gpu.is_judging, gpu.can_time, gpu.memory_bytes) == (False, True, 2**37)
    assert (gpu.peak_flops, gpu.peak_bandwidth) == ({}, None)


def test_what_a_board_says_of_its_product_changes_nothing_that_is_known(h200: Gpu) -> None:
    recording.record_board(BOARD | {"name": "Abacus", "memory": 1})
    assert Gpu.objects.get().name == "H200"


@pytest.mark.parametrize("slug", ["", "H200", "a b", "../site", "h200-", "x" * 41])
def test_a_product_that_can_name_no_queue_is_refused(db: None, slug: str) -> None:
    assert recording.record_board(BOARD | {"gpu": slug}) is None
    assert not Gpu.objects.exists()


def test_a_board_is_one_row_however_often_it_says_hello(h200: Gpu) -> None:
    first, again = recording.record_board(BOARD), recording.record_board(BOARD)
    assert first == again
    assert recording.record_board({"gpu": "h200"}) is None
    assert Device.objects.count() == 1


MESSAGES = ("started", "heartbeat", "report", "report", "failure", "declined", "started of 2")


def deliver(name: str, job: Job, content: dict[str, Any]) -> None:
    uuid = str(job.uuid)
    match name:
        case "started":
            recording.record_started(uuid, 1, BOARD)
        case "started of 2":
            recording.record_started(uuid, 2, BOARD)
        case "heartbeat":
            recording.record_heartbeat(uuid, 1, {"stage": "check", "done": 1, "total": 2})
        case "report":
            recording.record_report(uuid, 1, BOARD, content)
        case "failure":
            recording.record_failure(uuid, 1, "oops")
        case "declined":
            recording.record_declined(uuid, 1, "needs a GPU")


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(order=st.permutations(MESSAGES))
def test_any_order_of_messages_leaves_at_most_one_run(
    job: Job, make: Any, order: list[str]
) -> None:
    Job.objects.all().delete()
    Run.objects.all().delete()
    now = timezone.now()
    fresh = Job.objects.create(
        candidate=job.candidate, gpu=job.gpu, sent_at=now, lease_expires_at=now
    )
    content = make.report(fresh)
    for name in order:
        deliver(name, fresh, content)
    fresh.refresh_from_db()
    ended = [name for name in order if name in ("report", "declined", "failure")]
    declined_first = ended.index("declined") < ended.index("report")
    failed_before = "failure" in ended[: ended.index("declined")]
    if declined_first and not failed_before:
        assert (fresh.state, Run.objects.count()) == ("declined", 0)
    else:
        assert (fresh.state, Run.objects.count()) == ("done", 1)
    assert Measurement.objects.count() == Run.objects.count()
