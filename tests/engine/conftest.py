"""A judge on the interpreter for all tests of a module's worker: real processes, short limits."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.engine import INTERPRETER, Candidate, Judge, Limits, Options

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """Stages end within seconds, so that an endless candidate doesn't hold the tests up."""
    limits = Limits(load=30, call=20, check=120, proof=60)
    with Judge(INTERPRETER, Options(limits=limits, trust_candidates=True)) as judge:
        yield judge


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
