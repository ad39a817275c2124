"""Every form that the field has for predictions and results, from files on a disk and in a zip."""

import hashlib
import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.intake import Intake, KnownTasks, TaskName, read_paths, read_upload

TASKS = KnownTasks(
    names={
        "relu": TaskName("relu", "Activation"),
        "abs": TaskName("abs", "Math"),
        "add": TaskName("add", "Math"),
        "fused_relu_sqrt": TaskName("fused_relu_sqrt", "Fusion"),
    },
    aliases={"absolute": "abs"},
)
TESTS = "\n" + "#" * 146 + "\n\ntest_results = relu(None)\n"


def source(entry: str, text: str = "") -> str:
    head = f"import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n{text}\n"
    return f"{head}\ndef {entry}(input):\n    return kernel[(1,)](input)\n"


def prediction(entry: str, **fields: object) -> str:
    return json.dumps({"file": f"Math/{entry}.py", "predict": source(entry), **fields})


def metrics(**records: dict) -> str:
    usual = {
        "call_ok": True, "exe_ok": True, "perf_ok": True, "dtype": "float32", "runtime_ms": 0.5,
        "gbs": 4.0, "tflops": 0.1, "speedup": 1.5, "maintainability": 80.0, "code_quality": {},
        "performance": [], "error": "", "code": "",
    }  # fmt: skip
    told = {
        f"Math/{name}.py": {"file": f"Math/{name}.py", **usual, **record}
        for name, record in records.items()
    }
    return json.dumps(told, indent=1)


FORMS: dict[str, dict[str, str]] = {
    "predictions by file": {"predictions.jsonl": prediction("relu") + "\n" + prediction("abs")},
    "predictions with every field": {
        "p.jsonl": "\n".join(
            prediction(name, instruction="?", prompt="?", label="x", round=0)
            for name in ("relu", "abs")
        )
    },
    "instructions": {
        "t.jsonl": "\n".join(
            json.dumps(
                {
                    "instruction": f"Wrapper Entry Information: {name}()",
                    "label": "ignored",
                    "predict": f"Here it is:\n```python\n{source(name)}```\nDone.",
                }
            )
            for name in ("relu", "absolute")
        )
    },
    "files": {"relu.py": source("relu"), "abs.py": source("abs")},
    "folders of categories": {
        "Activation/relu.py": source("relu"),
        "Math/abs.py": source("abs") + TESTS,
    },
    "a folder around it all": {"out/Math/abs.py": source("abs"), "out/relu.py": source("relu")},
    "folders named by task": {
        "relu/kernel.py": source("relu"),
        "abs/solution.py": source("abs"),
        "abs/__init__.py": "",
    },
}
ROUNDS: dict[str, dict[str, str]] = {
    "a field": {"p.jsonl": prediction("relu") + "\n" + prediction("relu", round=1)},
    "folders": {"round_0/relu.py": source("relu"), "round_1/Act/relu.py": source("relu", "# 1")},
    "folders of JSONL": {
        "round_0/p.jsonl": prediction("relu"),
        "round_1/p.jsonl": prediction("relu"),
    },
    "files of JSONL": {
        "predictions_round_0.jsonl": prediction("relu"),
        "predictions_round_1.jsonl": prediction("relu"),
    },
    "files named by round": {
        "round0.jsonl": prediction("relu"),
        "round1.jsonl": prediction("relu"),
    },
    "files of one task": {"relu_round_0.py": source("relu"), "relu_round_1.py": source("relu")},
    "a task's folder": {"relu/round_0.py": source("relu"), "relu/round_1.py": source("relu")},
}


def zipped(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / "sent" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / "sent"


def both_ways(files: dict[str, str], folder: Path) -> tuple[Intake, Intake]:
    """As a zip by upload, and as a folder on the command line."""
    return (
        read_upload("sent.zip", zipped(files), TASKS),
        read_paths([written(folder, files)], TASKS),
    )


def found(intake: Intake) -> list[tuple[str, int]]:
    assert intake.refusals == ()
    return sorted((one.task, one.round) for one in intake.candidates)


@pytest.mark.parametrize("files", FORMS.values(), ids=FORMS.keys())
def test_every_form_of_predictions_is_taken(files: dict[str, str], tmp_path: Path) -> None:
    for intake in both_ways(files, tmp_path):
        assert found(intake) == [("abs", 0), ("relu", 0)]
        assert all("test_results" not in one.source for one in intake.candidates)


@pytest.mark.parametrize("files", ROUNDS.values(), ids=ROUNDS.keys())
def test_every_form_of_rounds_is_taken(files: dict[str, str], tmp_path: Path) -> None:
    for intake in both_ways(files, tmp_path):
        assert found(intake) == [("relu", 0), ("relu", 1)]


def test_rounds_as_separate_uploads() -> None:
    files = {"relu.py": source("relu")}
    assert found(read_upload("round_3.zip", zipped(files), TASKS)) == [("relu", 3)]
    assert found(read_upload("sent.zip", zipped(files), TASKS, round=2)) == [("relu", 2)]
    assert found(read_upload("p.jsonl", prediction("relu").encode(), TASKS, round=2)) == [
        ("relu", 2)
    ]


def test_what_says_its_round_is_not_moved_by_the_uploads() -> None:
    files = {"round_1/relu.py": source("relu"), "p.jsonl": prediction("abs", round=0)}
    assert found(read_upload("sent.zip", zipped(files), TASKS, round=5)) == [
        ("abs", 0),
        ("relu", 1),
    ]


def test_metrics_of_upstream_are_claims_with_their_lines() -> None:
    text = metrics(
        relu={},
        abs={"exe_ok": False, "perf_ok": False, "speedup": None, "error": "x\nAssertionError: off"},
        add={"call_ok": False, "exe_ok": False, "perf_ok": False, "runtime_ms": "N/A"},
    )
    intake = read_upload("metrics.json", text.encode(), TASKS)
    assert intake.candidates == intake.refusals == ()
    told = {claim.task: claim for claim in intake.claims}
    assert (told["relu"].stage, told["relu"].ok, told["relu"].speedup) == ("time", True, 1.5)
    assert (told["abs"].stage, told["abs"].ok, told["abs"].speedup) == ("check", False, None)
    assert told["abs"].detail == "AssertionError: off"
    assert (told["add"].stage, told["add"].ok) == ("call", False)
    assert told["relu"].place == "metrics.json line 2"
    assert text.splitlines()[int(told["add"].place.split()[-1]) - 1].strip().startswith('"Math/add')


def test_results_of_three_stages_are_put_together() -> None:
    def line(name: str, ok: bool, **more: object) -> str:
        return json.dumps({"file": f"{name}.py", "ok": ok, **more})

    files = {
        "intermediate/results_call.jsonl": "\n".join(
            [line("relu", True), line("abs", True), line("add", False, stderr="boom")]
        ),
        "intermediate/results_exe.jsonl": "\n".join([line("relu", True), line("abs", False)]),
        "intermediate/results_eff.jsonl": line("relu", True, speedup=2.0, is_suspect=True),
        "intermediate/perf_logs/relu_perf.py.log": "noise",
        "intermediate/perf_results/relu.json": "[]",
    }
    intake = read_upload("out.zip", zipped(files), TASKS)
    assert intake.refusals == ()
    told = {claim.task: (claim.stage, claim.ok, claim.speedup) for claim in intake.claims}
    assert told == {
        "relu": ("time", True, 2.0),
        "abs": ("check", False, None),
        "add": ("call", False, None),
    }
    assert next(claim for claim in intake.claims if claim.task == "relu").is_suspect


def test_a_claim_names_the_source_that_it_is_about() -> None:
    text = metrics(relu={"code": source("relu") + TESTS})
    (claim,) = read_upload("metrics.json", text.encode(), TASKS).claims
    (candidate,) = read_upload("relu.py", source("relu").encode(), TASKS).candidates
    assert claim.sha256 == hashlib.sha256(candidate.source.encode()).hexdigest()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("metrics.json", "[1]", "no metrics.json"),
        ("metrics.json", '{"a": 1}', "no metrics.json"),
        ("metrics.json", '{\n"a": {"call_ok": tru', "line 2, column 18"),
        ("metrics.json", "[" * 100_000, "nested too deeply"),
        ("metrics.json", "\xff", "no metrics.json|not JSON"),
        ("metrics.json", metrics(nothing={}), "no task is called 'nothing'"),
        ("metrics.json", metrics(relu={"call_ok": "yes"}), "`call_ok` is 'yes'"),
        ("metrics.json", metrics(relu={"speedup": -1}), "no positive number"),
        ("metrics.json", metrics(relu={"speedup": float("nan")}), "no positive number"),
        ("metrics.json", metrics(relu={"speedup": 10**400}), "no positive number|too long"),
        ("summary.json", '{"method": "x"}', "a summary"),
        ("results_call.jsonl", '{"file": "relu.py", "ok": true}', "only that .* can be called"),
        ("results_exe.jsonl", '{"ok": true}', "without `file`"),
    ],
)
def test_results_that_can_not_be_read_are_said(name: str, text: str, said: str) -> None:
    intake = read_upload(name, text.encode(), TASKS)
    assert intake.is_empty
    (refusal,) = intake.refusals
    assert re.search(said, refusal.reason), refusal
    assert refusal.place.startswith(name)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["file", "ok", "call_ok", "exe_ok", "perf_ok", "speedup", "code", "round"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)
RECORDS = st.dictionaries(st.sampled_from(["relu.py", "Math/abs.py", "x", ""]), JSON, max_size=3)


@settings(max_examples=300, deadline=None)
@given(
    record=JSON | RECORDS, name=st.sampled_from(["metrics.json", "results_eff.jsonl", "p.jsonl"])
)
def test_whatever_results_hold_they_never_raise_and_are_told_of(record: object, name: str) -> None:
    intake = read_upload(name, json.dumps(record).encode(), TASKS)
    assert intake.claims or intake.refusals or record == {}
    for claim in intake.claims:
        assert claim.speedup is None or 0 < claim.speedup < float("inf")


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=300), name=st.sampled_from(["metrics.json", "results_exe.jsonl"]))
def test_arbitrary_bytes_as_results_never_raise(data: bytes, name: str) -> None:
    intake = read_upload(name, data, TASKS)
    assert intake.refusals or not data.strip() or intake.claims


def test_two_results_that_contradict_each_other_are_told_of() -> None:
    lines = '{"file": "relu.py", "ok": true}\n{"file": "relu.py", "ok": false}\n'
    intake = read_upload("results_exe.jsonl", lines.encode(), TASKS)
    assert [claim.ok for claim in intake.claims] == [True]
    assert intake.refusals[0].kind == "duplicate"
    assert intake.refusals[0].place == "results_exe.jsonl line 2"


def test_refusals_are_of_a_kind() -> None:
    lines = [
        prediction("relu"),
        json.dumps({"file": "relu.py", "predict": source("relu", "# other")}),
        prediction("relv"),
        "{",
    ]
    intake = read_upload("p.jsonl", "\n".join(lines).encode(), TASKS)
    kinds = {refusal.place: refusal.kind for refusal in intake.refusals}
    assert kinds == {
        "p.jsonl line 2": "duplicate",
        "p.jsonl line 3": "unknown task",
        "p.jsonl line 4": "unreadable",
    }
    assert "relu" in intake.refusals[1].remedy
