"""`kbx tasks` and `kbx task`, as a shell would call them."""

import json

import pytest
from click.testing import CliRunner

from benchmark import suite
from runner.cli import main


def kbx(*words: str):
    return CliRunner().invoke(main, list(words))


def test_tasks_lists_every_task_as_json():
    rows = json.loads(kbx("tasks", "--json").stdout)
    assert [(row["name"], row["digest"]) for row in rows] == [
        (task.name, task.digest) for task in suite.all_tasks()
    ]


@pytest.mark.parametrize("word", ["LinearAlgebra", "linear-algebra"])
def test_tasks_of_one_category_by_name_or_slug(word):
    rows = json.loads(kbx("tasks", "--category", word, "--json").stdout)
    assert "cholesky" in [row["name"] for row in rows]
    assert {row["category"] for row in rows} == {"LinearAlgebra"}


def test_an_unknown_category_names_the_known_ones():
    result = kbx("tasks", "--category", "fussion")
    assert result.exit_code == 2
    assert "Fusion" in result.stderr


def test_a_contract_says_cases_and_cost():
    contract = json.loads(kbx("task", "matmul", "--json").stdout)
    assert contract["signature"] == "matmul(tensor1, tensor2)"
    large = next(case for case in contract["cases"] if case["name"] == "timed-large")
    assert large["flops"] == 2 * 4096**3
    assert large["bytes"] == 3 * 4096**2 * 4


def test_a_contract_for_people_shows_tolerance_and_reference():
    shown = kbx("task", "gelu").stdout
    assert "def gelu(" in shown
    assert "Tolerance: Each element's error" in shown.replace("\n", " ")


def test_an_unknown_task_ends_with_near_misses():
    result = kbx("task", "matmull")
    assert result.exit_code == 2
    assert "did you mean matmul" in result.stderr
