"""`kbx evaluate` from outside: exit status, JSON, what is shown."""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine.conftest import ROOT, comes_true

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
        ((RELU, "--json", "/proc/no/report.json"), "can't write /proc/no/report.json"),
        ((RELU, "--json", ROOT), "is a directory"),
        ((RELU, "--task", "rellu", "--device", "cpu", "--trust-candidates"), "no task 'rellu'"),
    ],
)
def test_unusable_arguments_end_with_2_and_say_what(arguments: tuple, words: str) -> None:
    done = evaluate(*arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_when_nothing_can_be_judged_each_place_is_named_and_the_status_is_2(tmp_path: Path) -> None:
    (tmp_path / "no_such_task.py").write_text("x = 1\n")
    (tmp_path / "empty").mkdir()
    done = evaluate(tmp_path / "no_such_task.py", "--device", "cpu", "--trust-candidates")
    assert done.returncode == 2
    assert f"refused {tmp_path / 'no_such_task.py'}: no task is called" in done.stderr
    done = evaluate(tmp_path / "empty", "--device", "cpu", "--trust-candidates")
    assert done.returncode == 2
    assert "nothing in it" in done.stderr
    assert "Traceback" not in done.stderr


def test_several_files_for_one_task_are_its_rounds(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(RELU.read_text())
    (tmp_path / "third.py").write_bytes(b"\xff\xfe")
    out = tmp_path / "report.json"
    arguments = ("--task", "relu", "--device", "cpu", "--stages", "load", "--trust-candidates")
    files = [tmp_path / f"{name}.py" for name in ("first", "second", "third")]
    done = evaluate(*files, *arguments, "--json", out)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())
    assert [(run["round"], Path(run["place"]).name) for run in found["runs"]] == [
        (0, "first.py"),
        (1, "second.py"),
    ]
    assert [Path(row["place"]).name for row in found["refused"]] == ["third.py"]
    lines = [line for line in done.stderr.splitlines() if "relu: passed" in line]
    assert [line.partition(" ")[0] for line in lines] == ["1/2", "2/2"]
    assert "\x1b" not in done.stderr


def descendants(pid: int) -> list[int]:
    found = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread or a process may end while we look
            children = map(int, path.read_text().split())
            found += [one for child in children for one in (child, *descendants(child))]
    return found


def test_ctrl_c_leaves_what_was_judged_and_no_process(tmp_path: Path) -> None:
    endless = (ROOT / "tests" / "exploits" / "endless.py").read_text()
    (tmp_path / "a.py").write_text(RELU.read_text())
    (tmp_path / "b.py").write_text(endless)
    (tmp_path / "c.py").write_text(endless + "\n")
    out = tmp_path / "out.json"
    command = [sys.executable, "-m", "runner", "evaluate", "--task", "relu", "--device", "cpu"]
    command += ["--trust-candidates", "--jobs", "1", "--json", str(out)]
    command += [str(tmp_path / f"{name}.py") for name in "abc"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stderr
        for line in process.stderr:
            if line.startswith("1/3"):
                break
        started = descendants(process.pid)
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(120) == 130
    assert len(started) >= 2
    assert "Stopped with 1 judged" in said
    assert "Traceback" not in said
    assert [run["verdict"] for run in json.loads(out.read_text())["runs"]] == ["passed"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.py", "b.py", "c.py", "out.json"]
    assert comes_true(lambda: not [pid for pid in started if is_running(pid)])


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_resuming_keeps_what_was_judged_and_judges_the_rest(tmp_path: Path) -> None:
    first, out = tmp_path / "first.py", tmp_path / "out.json"
    first.write_text(RELU.read_text())
    (tmp_path / "other.py").write_text("# another\n" + RELU.read_text())
    usual = ("--task", "relu", "--device", "cpu", "--trust-candidates", "--json", out)
    assert evaluate(first, *usual).returncode == 0
    (before,) = json.loads(out.read_text())["runs"]
    done = evaluate(first, tmp_path / "other.py", *usual, "--resume")
    assert done.returncode == 0, done.stderr
    assert "1 were judged before, 1 are left" in done.stderr
    found = json.loads(out.read_text())
    assert len(found["runs"]) == 2
    assert before in found["runs"]
    assert found["took"]["judged"] == 1


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"runs": [{"task": "relu"}]}'])
def test_resuming_what_is_no_report_is_refused_and_the_file_is_kept(tmp_path, text) -> None:
    out = tmp_path / "notes.json"
    out.write_text(text)
    done = evaluate(RELU, "--device", "cpu", "--json", out, "--resume")
    assert done.returncode == 2
    assert "is no report of kbx evaluate" in done.stderr
    assert out.read_text() == text


def test_resuming_needs_a_report_to_continue() -> None:
    done = evaluate(RELU, "--device", "cpu", "--resume")
    assert done.returncode == 2
    assert "--json" in done.stderr
