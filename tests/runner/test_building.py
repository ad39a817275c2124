"""Static builds at the site: who is asked for, when it is sent, and what is stored."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.utils import timezone

from benchmark.architectures import ARCHITECTURES
from benchmark.models import Board, Candidate, Gpu, Method, Source, StaticBuild
from runner import building, submitting
from runner.models import BuildRequest, Job

pytestmark = pytest.mark.django_db


def report_on(sha256: str, **changes: Any) -> dict[str, Any]:
    """A report as a compiling worker sends it: everything builds."""
    kernel = {"name": "k", "registers": 32, "spills": 0, "shared_bytes": 0, "seconds": 0.25}
    builds = [
        {
            "architecture": one.slug,
            "state": "built",
            "reason": "",
            "kernel_count": 1,
            "registers": 32,
            "spills": 0,
            "shared_bytes": 0,
            "shared_limit": one.shared_limit,
            "kernels": [kernel],
        }
        | changes
        for one in ARCHITECTURES
    ]
    return {
        "source_sha256": sha256,
        "triton_version": "3.7.1",
        "case": "timed-half",
        "builds": builds,
    }


@pytest.fixture
def candidates(make: Any) -> list[Candidate]:
    return list(make.submission("one", tasks=6).candidates.select_related("task", "source"))


def messages(outbox: Any) -> list[dict[str, Any]]:
    return outbox.messages("builds")


def test_an_accepted_upload_is_asked_for_and_sent_by_the_sweeper(make: Any, outbox: Any) -> None:
    make.task("relu")
    method = Method.objects.create(slug="m", name="M")
    submitting.accept(method, "a", make.intake("relu"), gpus=[])
    assert messages(outbox) == []
    assert building.sweep() == 1
    [message] = messages(outbox)
    assert (message["name"], message["task"]) == ("runner.compile_source", "relu")
    assert Source.digest(message["source"]) == message["source_sha256"]
    assert building.sweep() == 0


def test_a_source_is_asked_for_once(candidates: list[Candidate]) -> None:
    building.request(candidates)
    building.request(candidates)
    assert BuildRequest.objects.count() == len(candidates)


def test_only_a_window_is_in_the_broker(candidates: list[Candidate], outbox: Any) -> None:
    building.request(candidates)
    building.sweep()
    building.sweep()
    assert len(messages(outbox)) == building.WINDOW


def test_builds_give_way_to_judging_but_not_for_ever(
    candidates: list[Candidate], h200: Gpu, outbox: Any
) -> None:
    Job.objects.create(candidate=candidates[0], gpu=h200)
    building.request(candidates)
    assert building.sweep() == 0
    before = timezone.now() - building.PATIENCE - timedelta(seconds=1)
    BuildRequest.objects.filter(source=candidates[0].source).update(created_at=before)
    assert building.sweep() == 1
    [message] = messages(outbox)
    assert message["source_sha256"] == candidates[0].source_id


def sent(candidate: Candidate) -> BuildRequest:
    building.request([candidate])
    building.fill()
    return BuildRequest.objects.get(source=candidate.source)


def test_builds_are_stored_once_and_the_request_goes(
    candidates: list[Candidate], outbox: Any
) -> None:
    row = sent(candidates[0])
    before = Board.current()
    assert building.record_builds(report_on(row.source_id), 1) == len(ARCHITECTURES)
    assert Board.current() > before
    assert not BuildRequest.objects.exists()
    assert building.record_builds(report_on(row.source_id, registers=64), 1) == len(ARCHITECTURES)
    builds = StaticBuild.objects.filter(source=row.source)
    assert builds.count() == len(ARCHITECTURES)
    assert set(builds.values_list("registers", "traced_case")) == {(64, "timed-half")}
    building.request([candidates[0]])
    assert not BuildRequest.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"architecture": "sm_1"},
        {"state": "fine"},
        {"state": "untraced"},  # without a reason: the database refuses it
        {"shared_bytes": 2**30},  # built, and yet more than there is
        {"registers": -1},
    ],
)
def test_an_unusable_report_stores_nothing_and_is_our_failure(
    candidates: list[Candidate], outbox: Any, changes: dict[str, Any]
) -> None:
    row = sent(candidates[0])
    assert building.record_builds(report_on(row.source_id, **changes), 1) == 0
    assert not StaticBuild.objects.exists()
    row.refresh_from_db()
    assert (row.attempt, "refused" in row.reason) == (2, True)


def test_failures_are_tried_again_then_given_up(
    candidates: list[Candidate], outbox: Any, settings: Any
) -> None:
    row = sent(candidates[0])
    for attempt in range(1, settings.KBX_MAX_ATTEMPTS + 1):
        building.record_failure(row.source_id, attempt, "no walls")
        building.record_failure(row.source_id, attempt, "came twice")
    row.refresh_from_db()
    assert row.gave_up_at is not None
    assert row.reason == f"attempt {settings.KBX_MAX_ATTEMPTS}: no walls"
    assert len(messages(outbox)) == settings.KBX_MAX_ATTEMPTS
    assert building.sweep() == 0
    assert not StaticBuild.objects.exists()
    call_command("compile_missing")
    row = BuildRequest.objects.get(source=row.source)
    assert (row.attempt, row.gave_up_at) == (1, None)


def silent(row: BuildRequest, **fields: Any) -> None:
    long_ago = timezone.now() - building.LEASE - timedelta(seconds=1)
    BuildRequest.objects.filter(pk=row.pk).update(
        sent_at=long_ago, **dict.fromkeys(fields, long_ago)
    )


def test_a_worker_that_died_costs_an_attempt(candidates: list[Candidate], outbox: Any) -> None:
    row = sent(candidates[0])
    building.record_started(row.source_id, 1)
    silent(row, started_at=True)
    assert building.sweep() == 1
    row.refresh_from_db()
    assert row.attempt == 2
    assert [m["attempt"] for m in messages(outbox)] == [1, 2]


def test_without_a_worker_a_request_waits(candidates: list[Candidate], outbox: Any) -> None:
    row = sent(candidates[0])
    silent(row)
    assert building.sweep() == 0
    assert len(messages(outbox)) == 1


def test_a_message_that_was_overtaken_is_sent_again(
    candidates: list[Candidate], outbox: Any
) -> None:
    lost, later = sent(candidates[0]), sent(candidates[1])
    silent(lost)
    building.record_started(later.source_id, 1)
    assert building.sweep() == 1
    lost.refresh_from_db()
    assert lost.attempt == 1
    assert [m["source_sha256"] for m in messages(outbox)].count(lost.source_id) == 2


def test_the_newest_build_of_each_architecture_is_kept_apart(candidates: list[Candidate]) -> None:
    source = candidates[0].source
    facts = {"source": source, "state": "failed", "reason": "r", "shared_limit": 1}
    for architecture, version in (("sm_90", "3.7.1"), ("sm_80", "3.7.1"), ("sm_90", "3.8.0")):
        StaticBuild.objects.create(**facts, architecture=architecture, triton_version=version)
    newest = StaticBuild.objects.of(candidates[:1]).newest()
    assert set(newest.values_list("architecture", "triton_version")) == {
        ("sm_90", "3.8.0"),
        ("sm_80", "3.7.1"),
    }
