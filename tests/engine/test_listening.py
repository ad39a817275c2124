"""What the audit hook minds, and what it must not: words are about the candidate's own doing."""

import json
from pathlib import Path

from runner.engine.listening import CODE, word_for

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
