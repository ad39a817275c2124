"""A board's side of a job: what it tells the site, with the real broker in between."""

from collections.abc import Iterator
from typing import Any

import pytest

from benchmark.models import Source
from benchmark.vocabulary import MAX_SOURCE_BYTES
from runner import judging

SOURCE = "def relu(input):\n    return input\n"


@pytest.fixture(autouse=True)
def seat(monkeypatch: pytest.MonkeyPatch) -> Iterator[judging.Seat]:
    seat = judging.Seat()
    monkeypatch.setenv("KBX_DEVICE", "cpu")
    monkeypatch.setattr(judging, "seat", seat)
    yield seat
    seat.leave()


def message(**changes: Any) -> dict[str, Any]:
    """A job that no host can take: it is about a contract that nobody has."""
    return {
        "job": "00000000-0000-4000-8000-000000000000",
        "attempt": 1,
        "task": "relu",
        "task_digest": "0" * 64,
        "round": 0,
        "source": SOURCE,
        "source_sha256": Source.digest(SOURCE),
        "time_limit": 60,
    } | changes


def told(outbox: Any) -> list[dict[str, Any]]:
    """The messages to the site, without the heartbeats: a busy machine sends some."""
    sent = outbox.messages("site")
    return [message for message in sent if message["name"] != "runner.record_heartbeat"]


@pytest.mark.parametrize(
    ("changes", "answer", "said"),
    [
        ({}, "returned", "this host's contract of relu is"),
        ({"task": "no_such_task"}, "returned", "no_such_task"),
        ({"source": SOURCE + "#"}, "failure", "not the one that the message's SHA-256 names"),
        ({"source": "#" * (MAX_SOURCE_BYTES + 1)}, "failure", "the source is larger than"),
    ],
)
def test_what_a_host_must_not_judge_goes_back_in_words(
    outbox: Any, changes: dict[str, Any], answer: str, said: str
) -> None:
    """Unspent where only this host can't judge it."""
    judging.judge_job(message(**changes))
    started, failed = told(outbox)
    assert started["name"] == "runner.record_started"
    assert started["device"]["gpu"] == "cpu-interpreter"
    assert failed["name"] == f"runner.record_{answer}"
    assert said in failed["reason"]
    assert (failed["job"], failed["attempt"]) == (message()["job"], 1)


def test_a_message_that_comes_again_is_not_judged_again(outbox: Any) -> None:
    judging.judge_job(message())
    before = len(told(outbox))
    judging.judge_job(message())
    assert len(told(outbox)) == before
    judging.judge_job(message(attempt=2))
    assert len(told(outbox)) == 2 * before


def test_a_board_that_failed_gives_back_whatever_still_comes(
    outbox: Any, seat: judging.Seat
) -> None:
    seat.fault = "CUDA error: no power"
    judging.judge_job(message())
    [returned] = told(outbox)
    assert returned["name"] == "runner.record_returned"
    assert "no power" in returned["reason"]


def test_a_message_that_comes_again_while_it_is_in_hand_is_left_alone(
    outbox: Any, seat: judging.Seat
) -> None:
    """With several in hand another thread may get it."""
    identity = judging.Message.read(message()).identity
    assert seat.take(identity)
    judging.judge_job(message())
    assert told(outbox) == []
    seat.put_down(identity, is_answered=False)
    judging.judge_job(message())
    assert len(told(outbox)) == 2


def test_a_judgement_that_hangs_is_told_as_our_failure(outbox: Any) -> None:
    judging.give_up(message(attempt=2), "the judgement did not end within 1800 s")
    [failed] = told(outbox)
    assert failed["name"] == "runner.record_failure"
    assert (failed["job"], failed["attempt"]) == (message()["job"], 2)
    assert "did not end" in failed["reason"]
