"""The driver's calls, where there is no driver, or one that is too old."""

import pytest

from runner.engine import driver


@pytest.fixture
def old_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """One without a call to record a whole context's work."""
    monkeypatch.setattr(driver, "_record_context", None)


@pytest.mark.usefixtures("old_driver")
def test_without_the_driver_s_call_nobody_is_told_that_a_stream_waits():
    gathering = driver.Gathering()
    assert not gathering.usable
    assert gathering.wait(0) is False


@pytest.mark.skipif(driver._library is not None, reason="this host has a driver")
def test_without_a_driver_nothing_is_reset_and_nothing_breaks():
    assert driver.reset_persisting() is None
    assert not driver.Gathering().usable


def test_a_driver_that_knows_the_call_and_refuses_it_is_of_no_use(monkeypatch):
    def succeeds(*_: object) -> int:
        return 0

    def context(place: object, _device: int) -> int:
        place._obj.value = 1  # type: ignore[attr-defined]
        return 0

    monkeypatch.setattr(driver, "_primary_context", context)
    monkeypatch.setattr(driver, "_create_event", succeeds)
    monkeypatch.setattr(driver, "_wait_for_event", succeeds)
    monkeypatch.setattr(driver, "_record_context", succeeds)
    assert driver.Gathering().usable
    monkeypatch.setattr(driver, "_record_context", lambda *_: 801)  # CUDA_ERROR_NOT_SUPPORTED
    assert not driver.Gathering().usable


def test_a_missing_function_is_told_from_one_that_exists(monkeypatch):
    monkeypatch.setattr(driver, "_library", driver.ctypes.CDLL(None))
    assert driver._function("cuNoSuchCall") is None
    assert driver._function("getpid")() > 0
