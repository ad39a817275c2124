"""`kbx compile` from outside: exit status, JSON, what is shown."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RELU = ROOT / "samples" / "plain" / "Activation" / "relu.py"
COMMAND = [sys.executable, "-m", "runner", "compile"]


def compile_(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )


def test_a_folder_is_compiled_and_written(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "relu.py").write_text(RELU.read_text())
    (folder / "gelu.py").write_text("import triton\n@triton.jit\ndef k(x):\n    pass\n")
    (folder / "no_such_task.py").write_text("x = 1\n")
    out = tmp_path / "out" / "report.json"
    done = compile_(
        folder, "--arch", "gfx942, sm_89", "--trust-candidates", "--jobs", "2", "--json", out
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert [one["slug"] for one in found["architectures"]] == ["gfx942", "sm_89"]
    gelu, relu = found["compiled"]
    assert [(build["architecture"], build["state"]) for build in relu["builds"]] == [
        ("gfx942", "built"),
        ("sm_89", "built"),
    ]
    assert all(build["registers"] > 0 for build in relu["builds"])
    assert relu["builds"][1]["shared_limit"] == 99 * 1024
    assert relu["case"].startswith("timed")
    assert {build["state"] for build in gelu["builds"]} == {"untraced"}
    assert "no top-level function `gelu`" in done.stderr
    assert any("no_such_task" in row["place"] for row in found["refused"])
    assert found["environment"]["trusted_candidates"] is True
    assert found["environment"]["triton"]
    assert found["limits"] == {"launches": 16, "configurations": 4}
    assert "reg" in done.stdout
    assert [path.name for path in out.parent.iterdir()] == ["report.json"]


def test_a_file_of_any_name_can_be_for_a_named_task(tmp_path: Path) -> None:
    source = tmp_path / "attempt-7.py"
    source.write_text(RELU.read_text())
    out = tmp_path / "report.json"
    arguments = ("--task", "relu", "--arch", "sm_90", "--trust-candidates", "--json", out)
    assert compile_(source, *arguments).returncode == 0
    [row] = json.loads(out.read_text())["compiled"]
    assert (row["task"], row["builds"][0]["state"]) == ("relu", "built")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((RELU, "--arch", "sm_42"), "sm_80, sm_89"),
        ((RELU, "--arch", ","), "no architecture"),
        ((RELU, "--task", "no_such"), "no task 'no_such'"),
        (("/nowhere/relu.py",), "does not exist"),
        ((RELU, "--json", "/proc/report.json"), "can't write"),
        ((), "PATH..."),
    ],
)
def test_unusable_arguments_end_with_2_and_say_why(arguments: tuple, words: str) -> None:
    done = compile_(*arguments, "--trust-candidates")
    assert done.returncode == 2, done.stderr
    assert words in done.stderr


def test_nothing_but_refusals_ends_with_2(tmp_path: Path) -> None:
    (tmp_path / "no_such_task.py").write_text("x = 1\n")
    done = compile_(tmp_path, "--trust-candidates")
    assert done.returncode == 2
    assert "refused" in done.stderr


def test_ctrl_c_ends_with_130_and_leaves_a_report(tmp_path: Path) -> None:
    source = tmp_path / "relu.py"
    source.write_text(
        "import triton\n@triton.jit\ndef k(x):\n    pass\n"
        "print('here', flush=True)\ndef relu(input):\n    while True: pass\n"
    )
    out = tmp_path / "report.json"
    process = subprocess.Popen(
        [*COMMAND, str(source), "--trust-candidates", "--json", str(out)],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        until = time.monotonic() + 120
        while not out.exists() and time.monotonic() < until:
            os.sched_yield()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, said
    assert "Stopped" in said
    assert json.loads(out.read_text())["compiled"] == []
