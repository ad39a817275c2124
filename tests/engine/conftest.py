"""A judge on the interpreter for all tests of a module's worker: real processes, short limits."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.engine import INTERPRETER, Candidate, Judge, Limits, Options
from tests.engine.played import Other

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """Stages end within seconds, so that an endless candidate doesn't hold the tests up."""
    limits = Limits(load=30, call=20, check=120, proof=60)
    with Judge(INTERPRETER, Options(limits=limits, trust_candidates=True)) as judge:
        yield judge


@pytest.fixture
def other() -> Iterator[Other]:
    """The timed side, played in a thread."""
    other = Other()
    yield other
    other.close()


@contextlib.contextmanager
def judging_with(judge: Judge, **changes: object) -> Iterator[Judge]:
    """The same judge with other options for a while: it reads them anew for each candidate, and
    another one takes seconds to start.
    """
    before = judge.options
    judge.options = replace(before, **changes)  # type: ignore[arg-type]
    try:
        yield judge
    finally:
        judge.options = before


def hurried(judge: Judge) -> contextlib.AbstractContextManager[Judge]:
    """For candidates that don't end: limits that they may as well reach soon."""
    return judging_with(judge, limits=replace(judge.options.limits, load=8, call=4))


def comes_true(condition: Callable[[], object], seconds: float = 30.0) -> bool:
    """Wait for something, and leave the core to whoever brings it about."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def candidate(path: Path, task: str) -> Candidate:
    return Candidate(task, path.read_text(encoding="utf-8"), name=path.name)
