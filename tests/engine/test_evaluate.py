"""`kbx evaluate` from outside: exit status, JSON, what is shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.conftest import ROOT

RELU = ROOT / "samples" / "plain" / "Activation" / "relu.py"


def evaluate(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runner", "evaluate", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )


def test_a_folder_is_judged_and_written(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "relu.py").write_text(RELU.read_text())
    (folder / "gelu_bf16.py").write_text(RELU.read_text().replace("def relu(", "def gelu_bf16("))
    (folder / "no_such_task.py").write_text("x = 1\n")
    out = tmp_path / "out" / "report.json"
    done = evaluate(folder, "--device", "cpu", "--trust-candidates", "--json", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert [(run["task"], run["verdict"], run["device"]) for run in found["runs"]] == [
        ("relu", "passed", "cpu-interpreter")
    ]
    assert [row["task"] for row in found["declined"]] == ["gelu_bf16"]
    assert "needs a GPU" in found["declined"][0]["reason"]
    assert any("no_such_task" in row["place"] for row in found["refused"])
    assert found["judge"]["version"]
    assert len(found["judge"]["suite_digest"]) == 64
    assert found["environment"]["trusted_candidates"] is True
    assert "passed" in done.stdout
    assert [path.name for path in out.parent.iterdir()] == ["report.json"]


def test_a_file_of_any_name_can_be_for_a_named_task(tmp_path: Path) -> None:
    source = tmp_path / "attempt-7.py"
    source.write_text(RELU.read_text())
    out = tmp_path / "report.json"
    arguments = ("--task", "relu", "--device", "cpu", "--stages", "load,call", "--trust-candidates")
    done = evaluate(source, *arguments, "--json", out)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads(out.read_text())["runs"]
    assert (run["task"], run["verdict"], run["stage"]) == ("relu", "passed", "call")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.py",), "nowhere.py"),
        ((RELU, "--device", "cuda:99"), "no device 'cuda:99'"),
        ((RELU, "--device", "tpu"), "no device 'tpu'"),
        ((RELU, "--stages", "load,guess"), "guess"),
    ],
)
def test_unusable_arguments_end_with_2_and_say_what(arguments: tuple, words: str) -> None:
    done = evaluate(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
