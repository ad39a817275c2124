"""What a digest follows and what it leaves alone."""

import ast
import dataclasses
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from benchmark import suite
from benchmark.suite import digest
from benchmark.suite.checks import Close
from benchmark.suite.inputs import with_options

SOURCE = '''
from benchmark.suite.inputs import one_tensor

SLOPE = 0.1

def helper(x):
    return x * SLOPE

def relu(input, inplace=False):
    """{doc}"""
    # {comment}
    return helper(input){extra}
'''


@pytest.fixture
def digest_of(tmp_path):
    """Digest of `relu` with its function taken from a source text."""

    def digest(text: str, name: str = "variant") -> str:
        path = tmp_path / f"{name}{abs(hash(text))}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        module.relu.__module__ = module.helper.__module__ = "benchmark.suite.variant"
        return dataclasses.replace(suite.get("relu"), function=module.relu).digest

    return digest


def text(doc="One.", comment="one", extra=""):
    return SOURCE.format(doc=doc, comment=comment, extra=extra)


def test_prose_and_layout_do_not_count(digest_of):
    base = digest_of(text())
    assert digest_of(text(doc="Quite another.", comment="another")) == base
    assert digest_of(text().replace("helper(input)", "helper(\n        input\n    )")) == base


def test_code_counts(digest_of):
    assert digest_of(text(extra=" + 1")) != digest_of(text())


def test_a_helper_and_a_constant_it_uses_count(digest_of):
    base = digest_of(text())
    assert digest_of(text().replace("x * SLOPE", "SLOPE * x")) != base
    assert digest_of(text().replace("SLOPE = 0.1", "SLOPE = 0.2")) != base


def test_cases_and_tolerances_count():
    task = suite.get("gelu")
    other_case = with_options(task.cases[0], approximate="tanh")
    assert dataclasses.replace(task, cases=(other_case, *task.cases[1:])).digest != task.digest
    looser = dataclasses.replace(task.check, k=9.0)
    assert isinstance(looser, Close)
    assert dataclasses.replace(task, check=looser).digest != task.digest


def test_difficulty_and_prose_around_a_task_do_not_count():
    task = suite.get("gelu")
    described = dataclasses.replace(task, difficulty=1, differences=("none to speak of",))
    assert described.digest == task.digest


def test_a_lambda_is_refused():
    task = dataclasses.replace(suite.get("relu"), flops_model=lambda case: 1.0)
    with pytest.raises(TypeError, match="frozen dataclass"):
        _ = task.digest


def test_the_releases_digests_are_written_down() -> None:
    """Sites compare their database with this file, and a change in it shows what becomes stale."""
    written = json.loads((Path(suite.__file__).parent / "digests.json").read_text())
    assert written == {task.name: task.digest for task in suite.all_tasks()}, (
        "contracts changed, and results of the former ones will be stale: when that is meant, "
        ".venv/bin/kbx tasks --digests > benchmark/suite/digests.json"
    )


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (
            """f"[{a:g}, {b.c}{')' if d else ']'}]\"""",
            """f"[{a:g}, {b.c}{(')' if d else ']')}]\"""",
        ),
        ("""f"{a!r} of {{b}} {c:{width}}\"""", """f'{a!r} of {{b}} {c:{width}}'"""),
        ("""f"{x['k']} is {{1}}, {({1: 2})}\"""", """f"{x['k']} is {{1}}, { {1: 2}}\""""),
    ],
)
def test_every_python_writes_an_f_string_alike(expression, text):
    """Later ones than 3.11 write them otherwise: hosts of 3.12 had two contracts of their own."""
    assert digest._text_of(ast.parse(expression)) == text


def test_an_f_string_without_one_text_is_refused():
    with pytest.raises(TypeError, match="take it apart"):
        digest._text_of(ast.parse("""f'{a} \\' "'"""))
