"""The database refuses each wrong row: one refusal for every constraint there is."""

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from benchmark.models import (
    Audit,
    Ban,
    Board,
    Candidate,
    CountingRun,
    Draft,
    Gpu,
    Measurement,
    Method,
    Run,
    RunTally,
    Source,
    StaticBuild,
    Submission,
    Task,
    TaskVersion,
)
from runner.accounts.models import Allowance, ApiKey, Quota
from runner.models import BuildRequest, Device, Job

DIGEST = "0" * 64


def task(**changes: Any) -> Task:
    facts = {"slug": "relu", "category": "math", "difficulty": 1, "digest": DIGEST}
    return Task.objects.create(**facts | changes)


def gpu() -> Gpu:
    return Gpu.objects.get_or_create(slug="h200", defaults={"name": "H200"})[0]


def method(**changes: Any) -> Method:
    return Method.objects.create(**{"slug": "m", "name": "M"} | changes)


def submission(**changes: Any) -> Submission:
    owner = changes.pop("method", None) or method()
    return Submission.objects.create(**{"method": owner, "label": "a"} | changes)


def draft(**changes: Any) -> Draft:
    facts = {"method": "M", "kind": "model", "label": "a", "visibility": "public"}
    return Draft.objects.create(**facts | changes)


def source(size: int = 1) -> Source:
    return Source.objects.create(sha256=DIGEST, text="x", size=size)


def candidate() -> Candidate:
    return Candidate.objects.create(submission=submission(), task=task(), source=source())


def run(**changes: Any) -> Run:
    facts = {"gpu": gpu(), "task_digest": DIGEST, "verdict": "passed", "stage": "time"}
    owner = changes.pop("candidate", None) or candidate()
    return Run.objects.create(candidate=owner, **facts | changes)


def speed(value: float, low: float | None, high: float | None, **changes: Any) -> Run:
    return run(speedup=value, speedup_low=low, speedup_high=high, **changes)


def measurement(**changes: Any) -> Measurement:
    facts = {"position": 0, "case": "a", "kind": "small", "shape": "", "state": "passed"}
    owner = changes.pop("run", None) or run()
    return Measurement.objects.create(run=owner, **facts | changes)


def job(**changes: Any) -> Job:
    owner = changes.pop("candidate", None) or candidate()
    return Job.objects.create(candidate=owner, gpu=gpu(), **changes)


def build(**changes: Any) -> StaticBuild:
    figures = {"kernel_count": 1, "shared_bytes": 100, "shared_limit": 100}
    facts = {"architecture": "sm_90", "state": "built", "triton_version": "3.7.1"} | figures
    owner = changes.pop("source", None) or source()
    return StaticBuild.objects.create(source=owner, **facts | changes)


def counting(**changes: Any) -> CountingRun:
    of = changes.pop("run", None) or run()
    facts = {
        "uuid": of.uuid, "submission": of.candidate.submission, "task": of.candidate.task,
        "method": of.candidate.submission.method, "gpu": of.gpu, "origin": of.origin, "round": 0,
        "is_final": False, "verdict": of.verdict, "stage": of.stage, "is_suspect": False,
    }  # fmt: skip
    return CountingRun.objects.create(run=of, **facts | changes)


def counting_twice(**of_second: Any) -> None:
    first = run()
    counting(run=first, is_final=True)
    counting(run=run(candidate=first.candidate), **of_second)


def tally_twice() -> None:
    owner, where = submission(), gpu()
    for _ in range(2):
        RunTally.objects.create(submission=owner, gpu=where, origin="measured", runs=1)


def build_request(**changes: Any) -> BuildRequest:
    return BuildRequest.objects.create(source=source(), task=task(), **changes)


def twice(make: Callable[..., Any], **owner: Callable[[], Any]) -> None:
    shared = {name: value() for name, value in owner.items()}
    make(**shared)
    make(**shared)


def task_version_twice() -> None:
    TaskVersion.objects.bulk_create([TaskVersion(task=t, digest=DIGEST) for t in [task()] * 2])


def candidate_twice() -> None:
    first = candidate()
    Candidate.objects.create(
        submission=first.submission, task=first.task, source=first.source, round=first.round
    )


def device(**changes: Any) -> Device:
    facts = {"serial": "1", "host": "a", "last_seen_at": timezone.now()}
    return Device.objects.create(gpu=gpu(), **facts | changes)


def device_twice() -> None:
    for _ in range(2):
        device()


def account() -> User:
    return User.objects.get_or_create(username="u")[0]


def allowance(**changes: Any) -> Allowance:
    return Allowance.objects.create(**{"user": account(), "per_day": 1} | changes)


def quota(**changes: Any) -> Quota:
    facts = {"user": account(), "gpu": gpu(), "day": timezone.now().date()}
    return Quota.objects.create(**facts | changes)


def api_key(**changes: Any) -> ApiKey:
    return ApiKey.objects.create(user=account(), expires_at=timezone.now(), **changes)


def ban(**changes: Any) -> Ban:
    user = changes.pop("user", None) or User.objects.create_user("u")
    return Ban.objects.create(**{"user": user, "reason": "r"} | changes)


REFUSALS: dict[str, Callable[[], Any]] = {
    "task_category_is_known": lambda: task(category="poetry"),
    "task_difficulty_is_1_to_5": lambda: task(difficulty=6),
    "task_digest_is_64_hex": lambda: task(digest="0" * 63 + "G"),
    "task_version_is_unique": task_version_twice,
    "method_kind_is_known": lambda: method(kind="oracle"),
    "source_size_is_within_the_limit": lambda: source(size=256 * 1024 + 1),
    "submission_label_is_unique_per_method": lambda: twice(submission, method=method),
    "submission_visibility_is_known": lambda: submission(visibility="secret"),
    "submission_source_visibility_is_known": lambda: submission(source_visibility="secret"),
    "draft_method_kind_is_known": lambda: draft(kind="oracle"),
    "draft_visibility_is_known": lambda: draft(visibility="secret"),
    "draft_source_visibility_is_known": lambda: draft(source_visibility="secret"),
    "candidate_is_unique_per_round": candidate_twice,
    "run_origin_is_known": lambda: run(origin="guessed"),
    "run_verdict_is_known": lambda: run(verdict="fine"),
    "run_stage_is_known": lambda: run(stage="lunch"),
    "run_speedup_comes_with_its_interval": lambda: speed(1.0, 0.9, None),
    "run_speedup_is_positive": lambda: speed(0.0, 0.0, 0.0),
    "run_speedup_is_inside_its_interval": lambda: speed(2.0, 0.5, 1.0),
    "run_speedup_needs_a_correct_candidate": lambda: speed(1, 1, 1, verdict="wrong-values"),
    "measurement_is_unique_per_case": lambda: twice(measurement, run=run),
    "measurement_kind_is_known": lambda: measurement(kind="huge"),
    "measurement_state_is_known": lambda: measurement(state="odd"),
    "measurement_times_come_in_pairs": lambda: measurement(candidate_ms=1.0),
    "measurement_times_are_positive": lambda: measurement(
        candidate_ms=0.0, reference_ms=1.0, speedup=1.0
    ),
    "audit_verdict_is_known": lambda: Audit.objects.create(run=run(), verdict="ok", reason="r"),
    "audit_has_a_reason": lambda: Audit.objects.create(run=run(), verdict="clean", reason=""),
    "device_state_is_known": lambda: device(state="tired"),
    "device_in_trouble_has_a_reason": lambda: device(state="broken", reason=""),
    "job_fails_once_an_attempt": lambda: job(attempt=1, failures=2),
    "ban_stands_once": lambda: twice(ban, user=lambda: User.objects.create_user("u")),
    "ban_has_a_reason": lambda: ban(reason=""),
    "api_key_scopes_are_known": lambda: api_key(scopes="everything"),
    "allowance_is_one_per_gpu": lambda: twice(allowance, gpu=gpu),
    "allowance_for_all_is_one": lambda: twice(allowance),
    "quota_is_one_a_day": lambda: twice(quota),
    "quota_used_is_not_negative": lambda: quota(used=-1),
    "static_build_is_unique_per_triton": lambda: twice(build, source=source),
    "static_build_state_is_known": lambda: build(state="perhaps", reason="r"),
    "static_build_says_why_not": lambda: build(state="untraced"),
    "static_build_built_fits": lambda: build(shared_bytes=101),
    "counting_run_is_one_per_round": counting_twice,
    "counting_run_is_final_once": lambda: counting_twice(round=1, is_final=True),
    "counting_run_verdict_is_known": lambda: counting(verdict="fine"),
    "counting_run_origin_is_known": lambda: counting(origin="guessed"),
    "run_tally_is_one_per_lane": tally_twice,
    "build_request_started_was_sent": lambda: build_request(started_at=timezone.now()),
    "build_request_given_up_is_not_sent": lambda: build_request(
        sent_at=timezone.now(), gave_up_at=timezone.now()
    ),
    "board_is_one_row": lambda: Board.objects.create(pk=2),
    "device_is_unique_per_host": device_twice,
    "job_state_is_known": lambda: job(state="napping"),
    "job_is_open_once_per_candidate_and_gpu": lambda: twice(job, candidate=candidate),
    "job_running_has_a_lease": lambda: job(state="running"),
    "job_sent_has_a_lease": lambda: job(sent_at=timezone.now()),
    "job_has_a_run_when_done": lambda: job(state="done"),
    "job_attempt_counts_from_1": lambda: job(attempt=0),
}


# Django gives a positive column a check of its own, which some databases name first.
ALSO_OF_THE_COLUMN = ("quota_used_is_not_negative",)


def constraints() -> dict[str, models.BaseConstraint]:
    ours = [m for app in ("benchmark", "runner") for m in apps.get_app_config(app).get_models()]
    return {c.name: c for model in ours for c in model._meta.constraints}


def test_every_constraint_has_a_refusal() -> None:
    assert set(REFUSALS) == set(constraints())


@pytest.mark.django_db
@pytest.mark.parametrize("name", REFUSALS)
def test_the_database_refuses(name: str) -> None:
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        REFUSALS[name]()
    constraint = constraints()[name]
    if name in ALSO_OF_THE_COLUMN:
        assert "used" in str(caught.value)
    elif isinstance(constraint, models.CheckConstraint):
        assert name in str(caught.value)
    else:
        assert "unique" in str(caught.value).lower()


@pytest.mark.django_db
@pytest.mark.parametrize(("text", "size"), [("", 1), ("x", 0)])
def test_a_source_has_a_text_and_its_size_or_neither(text: str, size: int) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Source.objects.create(sha256=DIGEST, text=text, size=size)


@pytest.mark.django_db
def test_the_rows_that_the_refusals_start_from_are_accepted() -> None:
    """Otherwise a refusal above could be of something else."""
    made = run()
    draft()
    measurement(run=made)
    speed(1.0, 0.9, 1.1, candidate=made.candidate)
    job(candidate=made.candidate)
    job(candidate=made.candidate, state="done", run=made)
    counting(run=made, is_final=True)
    counting(run=run(candidate=made.candidate), round=1)
    Source.objects.create(sha256="1" * 64, text="", size=0)
    build(source=made.candidate.source)
    build(source=made.candidate.source, architecture="sm_80", state="failed", reason="r")
