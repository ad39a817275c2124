"""Recorded results: packed without sources, loaded once, labelled, replaced by what is newer."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from benchmark import aggregates
from benchmark.models import CountingRun, Gpu, Measurement, Method, Run, Source, Submission
from runner import dispatch, recorded, rejudging, submitting
from runner.models import Job

ROOT = Path(__file__).resolve().parents[2]
DIGEST, OTHER = "d" * 64, "e" * 64
CANARY = "canary_zq7"
TIMES = {
    "candidate_ms": 0.5, "candidate_ms_low": 0.49, "candidate_ms_high": 0.51, "reference_ms": 1.0,
    "reference_ms_low": 0.99, "reference_ms_high": 1.01, "speedup": 2.0, "speedup_low": 1.9,
    "speedup_high": 2.1, "flops": 1e9, "bytes": 1e6, "own_share": 1.0, "samples": 50,
    "samples_sha256": "f" * 64,
}  # fmt: skip


def case(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "case": name, "kind": "small", "shape": "n=3 float32", "dtype": "float32",
        "family": "normal", "state": "passed", "verdict": "passed", "error": 0.123456789,
        "reference_error": 0.25, "tolerance": 4.0, "unit": "ulp", "detail": "",
    } | changes  # fmt: skip


def run(task: str, round: int = 0, **changes: Any) -> dict[str, Any]:
    """An element of `runs` as `kbx evaluate --json` writes it on a GPU."""
    return {
        "task": task, "category": "Math", "round": round, "place": f"/home/someone/{task}.py",
        "source_sha256": Source.digest(f"{task} {round}"), "task_digest": DIGEST,
        "judge_version": "2", "device": "h200", "verdict": "passed", "stage": "time",
        "detail": "", "suspect": False, "speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.1,
        "cases": [case("small-1"), case("timed-1", kind="timed", **TIMES)],
        "kernels": [{"name": "k", "hash": "h", "calls": 2, "registers": 32}], "findings": [],
        "seconds": {"load": 0.1, "total": 1.0}, "peak_memory_bytes": 1000, "log_tail": CANARY,
        "environment": {"torch": "2.13", "clocks": {"sm": 1980 + round}, "device": DEVICE},
    } | changes  # fmt: skip


DEVICE = {"name": "NVIDIA H200", "architecture": "sm_90", "gpu": "h200"}
FAILED = {
    "verdict": "call-error", "stage": "call", "speedup": None, "speedup_low": None,
    "speedup_high": None, "cases": [case("small-1", state="failed", verdict="call-error")],
    "detail": f"CompilationError: at 3:4:\n    x = {CANARY}\n    ^\nname is not defined",
}  # fmt: skip


def evaluated(folder: Path, *runs: dict[str, Any], name: str = "report.json") -> Path:
    path = folder / name
    environment = {"torch": "2.13", "device": DEVICE}
    report = {"judge": {"version": "2", "suite_digest": "a" * 64}, "environment": environment}
    path.write_text(json.dumps({**report, "runs": list(runs), "declined": [], "refused": []}))
    return path


def pack(*reports: Path, out: Path, more: tuple[str, ...] = (), date: str = "2026-11-01") -> None:
    command = [
        sys.executable, str(ROOT / "benchmarks/pack_recorded.py"), *map(str, reports),
        "--method", "Some Model", "--kind", "model", "--organisation", "Some Lab",
        "--predictions", "the published file", "--round", "0=first try", "--date", date,
        "--out", str(out), *more,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def tasks(h200: Gpu, make: Any) -> list[Any]:
    return [make.task(slug) for slug in ("relu", "gelu")]


@pytest.fixture
def packed(tmp_path: Path, tasks: list[Any]) -> Path:
    """relu passes in both rounds, gelu fails in the first and passes in the second."""
    runs = [run("relu"), run("gelu", **FAILED), run("relu", 1), run("gelu", 1, speedup=1.95)]
    out = tmp_path / "some-model.json.gz"
    pack(evaluated(tmp_path, *runs), out=out)
    return out


def load(path: Path) -> None:
    call_command("import_recorded", str(path))


def test_a_recording_holds_no_source_no_log_and_no_path(packed: Path) -> None:
    text = gzip.decompress(packed.read_bytes()).decode()
    assert CANARY not in text
    assert "/home" not in text
    assert "CompilationError: at 3:4:" in text
    assert "name is not defined" in text
    assert "0.123457" in text  # rounded, and to more digits than pages show


def test_what_is_shipped_can_be_loaded_and_holds_no_path() -> None:
    shipped = recorded.recordings(ROOT / "samples" / "recorded")
    assert shipped
    for path in shipped:
        assert recorded.read(path).reports
        text = gzip.decompress(path.read_bytes()).decode()
        assert not re.search(r"/(?:home|root|work|tmp|site-packages)/", text)


def test_packing_again_gives_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json.gz"
    pack(tmp_path / "report.json", out=again)
    assert again.read_bytes() == packed.read_bytes()


def test_rounds_that_were_judged_apart_are_added(tmp_path: Path, tasks: list[Any]) -> None:
    out = tmp_path / "m.json.gz"
    pack(evaluated(tmp_path, run("relu"), name="a.json"), out=out)
    pack(evaluated(tmp_path, run("relu", verdict="passed"), name="b.json"), out=out,
         more=("--as-round", "1", "--add", "--round", "1=with feedback"))  # fmt: skip
    load(out)
    assert sorted(Run.objects.values_list("candidate__round", flat=True)) == [0, 1]
    assert {r.environment["clocks"]["sm"] for r in Run.objects.all()} == {1980}


def test_runs_count_on_the_board_like_any_other(packed: Path) -> None:
    load(packed)
    assert Run.objects.count() == 4
    assert Measurement.objects.count() == 7
    final = CountingRun.objects.filter(is_final=True)
    assert {(row.task.slug, row.round, row.verdict) for row in final} == {
        ("relu", 1, "passed"),
        ("gelu", 1, "passed"),
    }
    assert not aggregates.compare(Method.objects.get())
    found = Run.objects.get(candidate__task__slug="relu", candidate__round=0)
    assert found.environment == {"torch": "2.13", "clocks": {"sm": 1980}, "device": DEVICE}
    assert found.measurements.get(case="timed-1").samples == 50
    assert f"{found.created_at:%Y-%m-%d}" == "2026-11-01"


def test_pages_say_that_it_is_recorded(packed: Path, client: Client) -> None:
    load(packed)
    found = Run.objects.get(candidate__task__slug="gelu", candidate__round=0)
    page = " ".join(client.get(f"/runs/{found.uuid}/").content.decode().split())
    assert "Recorded." in page
    assert "judge (version 2) on NVIDIA H200 on 2026-11-01" in page
    assert "the published file" in page
    assert "first try" in page
    assert (
        f'Source not stored here: <span class="mono break">sha256 {found.candidate.source_id}'
        in page
    )
    assert client.get(f"/runs/{found.uuid}/source.py").status_code == 404
    assert (
        "recorded on NVIDIA H200, 2026-11-01" in client.get("/methods/some-model/").content.decode()
    )
    for url in ("/", "/leaderboard/"):
        board = " ".join(client.get(url).content.decode().split())
        assert "2 results here were measured with this judge (version 2) on NVIDIA H200" in board
    assert client.get(f"/submissions/{found.candidate.submission.uuid}/").status_code == 200


def test_loading_again_changes_nothing(packed: Path, capsys: Any) -> None:
    load(packed)
    (packed.parent / "report.json").unlink()
    load(packed.parent)
    assert Run.objects.count() == 4
    assert "loaded before" in capsys.readouterr().out


def test_a_newer_recording_replaces_the_older(packed: Path, tmp_path: Path) -> None:
    load(packed)
    pack(evaluated(tmp_path, run("relu", **FAILED)), out=packed, date="2026-11-02")
    load(packed)
    assert Submission.objects.filter(withdrawn_at=None).count() == 1
    final = CountingRun.objects.get(is_final=True)
    assert (final.task.slug, final.verdict) == ("relu", "call-error")


def test_what_is_judged_here_counts_instead(packed: Path, make: Any) -> None:
    load(packed)
    method = Method.objects.get()
    submission = submitting.accept(method, "live", make.intake("relu"))
    live = Run.objects.create(
        candidate=submission.candidates.get(), gpu=Gpu.objects.get(), task_digest=DIGEST,
        judge_version="2", verdict="timeout", stage="call",
    )  # fmt: skip
    aggregates.refresh_run(live)
    final = CountingRun.objects.get(is_final=True, task__slug="relu")
    assert final.run == live


def test_another_version_of_a_task_is_stale_and_an_unknown_task_left_out(
    tmp_path: Path, tasks: list[Any], client: Client, capsys: Any
) -> None:
    out = tmp_path / "m.json.gz"
    pack(evaluated(tmp_path, run("relu", task_digest=OTHER), run("gelu"), run("nope")), out=out)
    load(out)
    said = capsys.readouterr().out
    assert "2 recorded runs; 1 of an earlier version of their task" in said
    assert "no such task here: nope" in said
    found = Run.objects.get(candidate__task__slug="relu")
    assert (
        "Judged against an earlier version" in client.get(f"/runs/{found.uuid}/").content.decode()
    )


def test_recorded_candidates_are_never_sent_to_a_board(packed: Path, h200: Gpu) -> None:
    load(packed)
    other = Gpu.objects.create(slug="b200", name="B200", is_judging=True)
    assert dispatch.enqueue_missing(other) == 0
    every = tuple(Submission.objects.values_list("uuid", flat=True))
    asked = rejudging.preview(rejudging.Scope(submissions=every))
    assert asked.jobs == 0
    assert list(asked.left_out) == [rejudging.NOT_STORED]
    assert not Job.objects.exists()


def test_an_upload_of_the_same_source_completes_it(
    tmp_path: Path, tasks: list[Any], make: Any
) -> None:
    out = tmp_path / "m.json.gz"
    intake = make.intake("relu")
    text = intake.candidates[0].source
    pack(evaluated(tmp_path, run("relu", source_sha256=Source.digest(text))), out=out)
    load(out)
    assert not Source.objects.get().is_stored
    submission = submitting.accept(Method(slug="other", name="Other"), "first", intake)
    assert submission.candidates.get().source.text == text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 2}, "no recording of format 1"),
        ({"date": "yesterday"}, "does not match format"),
        ({"device": "H 200"}, "recording.device"),
        ({"runs": []}, "at least one run"),
        ({"runs": [run("relu"), run("relu")]}, r"recording.runs\[1\]"),
        ({"runs": [run("relu", device="b200")]}, "judged on h200"),
        ({"runs": [run("relu", verdict="fine")]}, "report.verdict"),
        ({"runs": [run("relu", speedup=1e999)]}, "report.speedup"),
        ({"method": {"name": "x", "kind": "oracle"}}, "recording.method.kind"),
        ({"judge": {}}, "judge"),
    ],
)
def test_a_bad_recording_is_refused_whole(packed: Path, change: dict, said: str) -> None:
    document = json.loads(gzip.decompress(packed.read_bytes()))
    packed.write_bytes(gzip.compress(json.dumps({**document, **change}).encode()))
    with pytest.raises(CommandError, match=said):
        load(packed)
    assert not Submission.objects.exists()


CUT_SHORT = gzip.compress(b"{", mtime=0)[:-4]  # without a time: workers must agree on its name


@pytest.mark.parametrize("content", [b"", b"not gzip", CUT_SHORT, b"\x1f\x8b"])
def test_a_broken_file_is_refused_by_name(packed: Path, content: bytes) -> None:
    packed.write_bytes(content)
    with pytest.raises(CommandError, match="some-model"):
        load(packed)


def test_a_file_that_unpacks_to_too_much_is_refused(packed: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(recorded, "MOST_BYTES", 1000)
    with pytest.raises(CommandError, match="more than 1,000 bytes"):
        load(packed)


def test_a_missing_path_is_named(tmp_path: Path, db: None) -> None:
    with pytest.raises(CommandError, match="no such file or folder"):
        load(tmp_path / "nowhere")
