"""What a CUDA graph does at each replay counts for the call that replays it."""

import types

import pytest
import torch

from runner.engine.child import Process
from runner.engine.observer import Observer, Record

TENSOR = torch.ones(64)


def scale(x):
    return x


KERNEL = types.SimpleNamespace(__name__="scale", fn=scale)


def captured(observer: Observer) -> Record:
    observer.begin_capture()
    assert observer.launch(KERNEL, (TENSOR,), {})
    torch.add(TENSOR, 1)
    torch.empty(8)
    return observer.end_capture()


class TestGraphs:
    def test_what_is_captured_is_not_done_yet(self):
        observer = Observer()
        with observer.watching() as record:
            captured(observer)
        assert (record.launches, record.operators, record.kernel_bytes) == ({}, {}, 0)

    def test_a_replay_does_it_all_again(self):
        observer = Observer()
        with observer.watching():
            graph = captured(observer)
        with observer.watching() as record:
            assert observer.replay(graph)
            assert observer.replay(graph)
        assert record.launches == {"scale": 2}
        assert record.kernel_bytes == 2 * 64 * 4
        assert record.operators["aten::add.Tensor"] == [2, 64, 2 * 2 * 64 * 4, 2 * 64]

    def test_a_replay_is_left_out_while_kernels_are_switched_off(self):
        observer = Observer()
        with observer.watching():
            graph = captured(observer)
        with observer.watching(suppressed=True):
            assert not observer.replay(graph)

    def test_a_graph_captured_meanwhile_is_whole(self):
        observer = Observer()
        with observer.watching(suppressed=True):
            graph = captured(observer)
            assert not observer.launch(KERNEL, (TENSOR,), {})
        assert graph.launches == {"scale": 1}

    def test_a_capture_holds_no_poison_that_each_replay_would_fill_in(self, monkeypatch):
        filled = []
        monkeypatch.setattr("runner.engine.observer.poison", filled.append)
        observer = Observer()
        with observer.watching():
            captured(observer)
            assert filled == []
            torch.empty(4)
        assert [tensor.numel() for tensor in filled] == [4]


class TestApart:
    def test_what_is_timed_is_not_added_to_the_last_call(self):
        observer = Observer()
        with observer.watching() as record:
            observer.launch(KERNEL, (TENSOR,), {})
        told = record.to_json()
        with observer.apart():
            observer.launch(KERNEL, (TENSOR,), {})
            observer.event("thread")
        assert record.to_json() == told

    def test_what_comes_after_it_is_the_last_call_s_again(self):
        observer = Observer()
        with observer.watching() as record:
            pass
        with observer.apart():
            pass
        observer.launch(KERNEL, (TENSOR,), {})
        assert record.launches == {"scale": 1}


class TestOnlyTimed:
    """Nobody watches the timed calls; what begins in them alone has something to hide."""

    @pytest.fixture
    def process(self):
        process = Process.__new__(Process)
        process.observer = Observer()
        process.told = []
        process.tell = lambda *told: process.told.append(told)
        return process

    def test_a_thread_that_only_a_timed_call_starts_is_told_once(self, process):
        timed = process._unwatched(lambda _message: process.observer.event("thread"))
        timed({})
        timed({})
        assert process.told == [("only-timed", "thread")]

    def test_it_is_told_where_the_call_fails_too(self, process):
        def fails(_message):
            process.observer.event("thread")
            raise ValueError

        with pytest.raises(ValueError):
            process._unwatched(fails)({})
        assert process.told == [("only-timed", "thread")]

    def test_what_watched_calls_do_too_says_nothing(self, process):
        with process.observer.watching():
            process.observer.event("thread")
        process._unwatched(lambda _message: process.observer.event("thread"))({})
        assert process.told == []
