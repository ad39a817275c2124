"""What a host must tell the site outlasts a broker that is away, and the host's own death."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from celery.exceptions import Reject
from django.db import InterfaceError, OperationalError

from runner import outbox, patience
from runner.outbox import Outbox


class Broker:
    """Takes messages while it is there."""

    def __init__(self) -> None:
        self.is_there = True
        self.taken: list[tuple[str, dict[str, Any]]] = []

    def publish(self, name: str, facts: dict[str, Any]) -> None:
        if not self.is_there:
            raise OSError("connection refused")
        self.taken.append((name, facts))


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def box(tmp_path: Path, broker: Broker) -> Outbox:
    return Outbox(tmp_path / "outbox", broker.publish)


def test_what_is_sent_is_kept_no_longer(box: Outbox, broker: Broker) -> None:
    assert box.post("record_report", {"job": "a"})
    assert broker.taken == [("record_report", {"job": "a"})]
    assert list(box.folder.iterdir()) == []


def test_what_can_not_be_sent_is_kept_and_delivered_in_order(
    box: Outbox, broker: Broker, tmp_path: Path
) -> None:
    broker.is_there = False
    for job in "abc":
        assert not box.post("record_report", {"job": job})
    assert box.deliver() == 0
    broker.is_there = True
    after_a_restart = Outbox(tmp_path / "outbox", broker.publish)
    assert after_a_restart.deliver() == 3
    assert [facts["job"] for _, facts in broker.taken] == ["a", "b", "c"]
    assert after_a_restart.deliver() == 0


def test_what_is_being_sent_is_left_to_its_sender(box: Outbox, broker: Broker) -> None:
    broker.is_there = False
    box.post("record_report", {"job": "a"})
    broker.is_there = True
    assert box.deliver(older_than=60) == 0
    assert broker.taken == []


def test_what_is_kept_is_bounded(
    box: Outbox, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MOST_KEPT", 2)
    broker.is_there = False
    for job in "abc":
        box.post("record_report", {"job": job})
    broker.is_there = True
    assert box.deliver() == 2
    assert [facts["job"] for _, facts in broker.taken] == ["b", "c"]


def test_what_is_too_old_is_given_up(box: Outbox, broker: Broker) -> None:
    broker.is_there = False
    box.post("record_report", {"job": "a"})
    [kept] = box.folder.iterdir()
    old = time.time_ns() - (outbox.KEPT_SECONDS + 60) * 10**9
    kept.rename(kept.with_name(f"{old:020d}-a.json"))
    broker.is_there = True
    assert box.deliver() == 0
    assert list(box.folder.iterdir()) == []


@pytest.fixture
def away() -> Iterator[Exception]:
    """What the database answers before it is back."""
    return iter([OperationalError("terminating connection"), InterfaceError("closed")])


@pytest.mark.django_db(transaction=True)
def test_the_sites_worker_outlasts_its_database(away: Iterator[Exception]) -> None:
    written = []

    def write() -> None:
        for error in away:
            raise error
        written.append(True)

    patience.outlast(write)
    assert written == [True]


@pytest.mark.django_db(transaction=True)
def test_a_message_goes_back_to_the_broker_when_the_database_stays_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "WAIT_SECONDS", 0)

    def write() -> None:
        raise OperationalError("the database system is starting up")

    with pytest.raises(Reject) as refused:
        patience.outlast(write)
    assert refused.value.requeue
