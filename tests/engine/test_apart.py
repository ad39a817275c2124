"""A judge in another process: the same reports and refusals, and an end that leaves nothing."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark.vocabulary import PASSED
from runner.engine import (
    INTERPRETER,
    BoardFailure,
    Candidate,
    Declined,
    JudgeApart,
    JudgeFailure,
    Limits,
    Options,
)
from runner.engine.apart import read_options
from runner.engine.model import DeviceSpec
from tests.engine.conftest import comes_true

PLAIN = Path(__file__).parents[2] / "samples" / "plain"
RELU = Candidate("relu", (PLAIN / "Activation" / "relu.py").read_text(encoding="utf-8"))
ENDLESS = RELU.source.replace(
    "    x = input", "    print('here', flush=True)\n    while True: pass\n"
)
OPTIONS = Options(limits=Limits(load=30, call=60), stages=("load", "call"), trust_candidates=True)


@pytest.fixture(scope="module")
def apart() -> Iterator[JudgeApart]:
    with JudgeApart(INTERPRETER, OPTIONS) as judge:
        yield judge


def test_its_reports_are_those_of_a_judge(apart, judge):
    report = apart.judge(RELU).to_json()
    assert (report["verdict"], report["task"]) == (PASSED, "relu")
    assert report["environment"]["stages"] == ["load", "call"]
    assert apart.environment["device"] == judge.environment["device"]
    assert report["task_digest"] == apart.task_digest("relu") == judge.task_digest("relu")
    assert apart.tasks() == judge.tasks()


def test_several_threads_get_each_its_own_answer(apart):
    digests = {name: apart.task_digest(name) for name in ("relu", "gelu", "matmul")}
    found: dict[str, str] = {}
    threads = [
        threading.Thread(target=lambda n=name: found.__setitem__(n, apart.task_digest(n)))
        for name in digests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == digests
    assert len(set(digests.values())) == 3


def test_what_is_declined_there_is_declined_here(apart):
    with pytest.raises(Declined, match="no task 'nonsense'"):
        apart.judge(Candidate("nonsense", RELU.source))
    with pytest.raises(Declined, match="no task 'nonsense'"):
        apart.task_digest("nonsense")


def test_a_board_that_does_not_start_is_named_as_what_failed():
    missing = DeviceSpec("cuda", 63, "h200", "a board that is not there")
    with pytest.raises(BoardFailure, match="doesn't start"), JudgeApart(missing, OPTIONS):
        pass


@pytest.mark.parametrize("how", ["closed", "killed"])
def test_its_end_ends_what_it_has_in_hand(how):
    said: list[str] = []

    def judge_one(judge: JudgeApart) -> None:
        try:
            said.append(str(judge.judge(Candidate("relu", ENDLESS)).to_json()["verdict"]))
        except JudgeFailure as failure:
            said.append(str(failure))

    with JudgeApart(INTERPRETER, OPTIONS) as judge:
        thread = threading.Thread(target=judge_one, args=(judge,))
        thread.start()
        assert comes_true(lambda: judge._waiting)
        if how == "closed":
            judge.close()
        else:
            os.kill(judge._process.pid, signal.SIGKILL)
        thread.join(60)
    assert len(said) == 1
    assert "is gone" in said[0]
    assert judge.closed
    assert judge._process.returncode is not None
    with pytest.raises(JudgeFailure, match="was closed"):
        judge.task_digest("relu")


def test_options_arrive_as_they_were_sent():
    import dataclasses
    import json

    sent = Options(limits=Limits(call=1.5), stages=("load",), overlap=False, seed=3)
    assert read_options(json.loads(json.dumps(dataclasses.asdict(sent)))) == sent
