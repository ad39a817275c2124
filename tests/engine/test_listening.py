"""What the audit hook minds, and what it must not: words are about the candidate's own doing."""

import json
import sys
import types
from collections import namedtuple
from pathlib import Path

import pytest

from runner.engine import listening
from runner.engine.listening import CODE, NATIVE, is_strangers, watch_writers, word_for

LIBRARY = json.__file__


def test_importing_a_library_module_without_cached_code_is_no_word():
    assert word_for("compile", (Path(LIBRARY).read_bytes(), LIBRARY)) is None


def test_code_under_a_librarys_name_that_is_not_its_own_is_told():
    assert word_for("compile", (b"import os", LIBRARY)) == CODE
    assert word_for("compile", ("import os", LIBRARY)) == CODE
    assert word_for("compile", (None, LIBRARY)) == CODE  # a syntax tree
    assert word_for("compile", (b"import os", "<frozen zipimport>")) == CODE


def test_code_under_a_name_of_ones_own_is_no_word():
    assert word_for("compile", (b"x = 1", "<string>")) is None


FOREIGN = "def say(call, *args):\n    return call(*args)\n"


def strangers(text: str = FOREIGN, name: str = "/tmp/candidate/candidate.py", **scope) -> dict:
    """The names of a module that is no file of ours, Python's, or a library's."""
    exec(compile(text, name, "exec"), scope)
    return scope


def test_a_kernel_in_cudas_own_language_is_told_when_the_candidate_asks_for_it(monkeypatch):
    asked = types.SimpleNamespace(_compile_kernel=lambda *_: None)
    monkeypatch.setattr(listening, "COMPILERS", ((asked, "_compile_kernel"),))
    monkeypatch.setattr(listening, "WRITERS", ())
    told = []
    watch_writers(lambda *words: told.append(words))
    asked._compile_kernel("source", "name")
    assert told == []
    strangers()["say"](asked._compile_kernel, "source", "name")
    assert told == [(NATIVE, "_compile_kernel")]


def test_torch_has_what_is_listened_to():
    for owner, name in (*listening.COMPILERS, *listening.WRITERS):
        assert callable(getattr(owner, name)), name


@pytest.mark.parametrize("name", ["/tmp/candidate/candidate.py", "<string>", "<made up>"])
def test_code_of_a_strangers_text_is_a_strangers(name):
    frame = strangers("import sys\nframe = sys._getframe()\n", name)["frame"]
    assert is_strangers(frame)


def test_what_python_writes_for_a_named_tuple_is_no_strangers():
    Pair = namedtuple("Pair", "a b")
    seen = []

    def see(frame, event, _argument):
        if event == "call":
            seen.append((frame.f_code.co_name, is_strangers(frame)))

    sys.setprofile(see)
    Pair(1, 2)
    sys.setprofile(None)
    assert seen
    assert not any(stranger for _, stranger in seen)
