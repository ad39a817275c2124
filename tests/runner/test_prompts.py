"""Generation prompts: complete, and an answer finds its way back to its task."""

import json

import pytest
from click.testing import CliRunner

from benchmark import suite
from benchmark.suite import prompts
from runner.cli import main
from runner.intake import KnownTasks, TaskName, read_upload

TASKS = suite.all_tasks()
KNOWN = KnownTasks(
    names={task.name: TaskName(task.name, task.category, task.aliases) for task in TASKS},
    aliases={alias: task.name for task in TASKS for alias in task.aliases},
    descriptions={task.name: task.description for task in TASKS},
)
ANSWER = (
    "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n\n\ndef {name}(*args):\n    pass\n"
)


def kbx(*words: str):
    return CliRunner().invoke(main, ["prompts", *words])


@pytest.fixture(scope="module")
def records() -> list[dict[str, str]]:
    return [json.loads(line) for line in kbx().stdout.splitlines()]


def test_there_is_one_prompt_a_task(records):
    assert [record["task"] for record in records] == [task.name for task in TASKS]


@pytest.mark.parametrize("field", ["instruction", "prompt"])
def test_an_answer_finds_its_task_by_the_prompt_alone(records, field):
    lines = [
        json.dumps({field: record[field], "predict": ANSWER.format(name=record["task"])})
        for record in records
    ]
    intake = read_upload("predictions.jsonl", "\n".join(lines).encode(), KNOWN)
    assert intake.refusals == ()
    assert [found.task for found in intake.candidates] == [task.name for task in TASKS]
    assert {found.notes for found in intake.candidates} == {()}


def test_a_prompt_holds_the_contract(records):
    for record, task in zip(records, TASKS, strict=True):
        prompt = record["prompt"]
        assert f"{prompts.FUNCTIONAL}{task.description}\n" in prompt
        assert f"{prompts.WRAPPER}{task.signature}\n" in prompt
        assert task.tolerance in prompt
        assert all(difference in prompt for difference in task.differences)
        assert all(dtype in prompt for dtype in task.dtypes)
        assert (record["input"], record["output"]) == ("", "")


def test_a_prompt_says_shapes_and_settings_as_the_call_gives_them():
    prompt = prompts.contract(suite.get("fused_layer_norm_relu_linear"))
    assert "m 8192 x k 4096 x n 4096 (float32)" in prompt
    assert "`eps` is called with: 0.1" in prompt
    assert "`elementwise_affine` is called with: False" in prompt


def test_only_a_task_that_may_delegate_is_told_so():
    assert "A library may do linalg_eig, linalg_eigvals." in prompts.contract(suite.get("eig"))
    assert "A library may" not in prompts.contract(suite.get("relu"))


def test_one_task_to_a_file(tmp_path):
    out = tmp_path / "prompts.jsonl"
    assert kbx("--task", "gelu", "--out", str(out)).stdout == ""
    (line,) = out.read_text().splitlines()
    assert json.loads(line)["task"] == "gelu"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "matmull"), "did you mean matmul"),
        (("--out", "/no/such/folder/x"), "can't write"),
    ],
)
def test_unusable_arguments_end_with_2(words, said):
    result = kbx(*words)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())
