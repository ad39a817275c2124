"""The commands of this package: what they refuse, in words, and what they leave behind."""

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from click.testing import CliRunner
from rich.console import Console

from runner import site_client
from runner.commands import demo, status, submit, worker
from runner.models import Job
from runner.watching import Tally

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def test_demo_names_the_port_that_is_in_use(taken: int, tmp_path: Path) -> None:
    done = CliRunner().invoke(demo.command, ["--port", str(taken), "--state", str(tmp_path / "x")])
    assert done.exit_code == 1
    assert f"port {taken} can't be used" in done.output
    assert "--port" in done.output
    assert not (tmp_path / "x").exists()


def test_edited_samples_are_another_submission(tmp_path: Path) -> None:
    (tmp_path / "relu.py").write_text("one")
    before = demo.label(tmp_path)
    assert demo.label(tmp_path) == before
    (tmp_path / "relu.py").write_text("two")
    assert demo.label(tmp_path) != before


def processes_of(state: Path) -> list[str]:
    """Command lines of living processes that were started for this state folder."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"KBX_STATE_DIR={state}".encode() in environ.read_bytes().split(b"\0"):
                found.append((environ.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def test_demo_serves_at_the_address_it_prints_and_ends_all_of_it(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        "timeout", "200", sys.executable, "-m", "runner", "demo", "--port", str(port),
        "--gpu", "cpu", "--state", str(tmp_path),
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}
    environment.pop("KBX_STATE_DIR", None)
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        said = []
        for line in running.stdout:
            said.append(line)
            if "http://127.0.0.1" in line:
                break
        assert f"http://127.0.0.1:{port}" in said[-1], "".join(said)
        assert httpx.get(f"http://127.0.0.1:{port}/", timeout=60).status_code == 200
        style = httpx.get(f"http://127.0.0.1:{port}/static/css/site.css", timeout=60)
        assert style.headers["content-type"].startswith("text/css")
        assert processes_of(tmp_path)
        running.send_signal(signal.SIGTERM)
        rest = running.stdout.read()
    assert "stopped" in rest
    assert processes_of(tmp_path) == []


@pytest.fixture
def signals_as_before():
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


class Wraps:
    """Before Python 3.12 what a class's making raises becomes a RuntimeError."""

    def __set_name__(self, owner: type, name: str) -> None:
        os.kill(os.getpid(), signal.SIGTERM)


def wrapping(*_: object) -> None:
    type("InTheMiddleOfAnImport", (), {"part": Wraps()})


def swallowing(*_: object) -> None:
    with contextlib.suppress(BaseException):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("busy", [wrapping, swallowing])
@pytest.mark.usefixtures("signals_as_before")
def test_demo_ends_wherever_the_word_to_end_strikes(monkeypatch, tmp_path, busy) -> None:
    went_on: list[object] = []
    monkeypatch.setattr(demo, "set_up", busy)
    monkeypatch.setattr(demo, "serve", lambda *given: went_on.append(given))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = ["--port", port, "--gpu", "cpu", "--state", str(tmp_path)]
    done = CliRunner().invoke(demo.command, options)
    assert done.exit_code == 0, done.output
    assert done.output.strip().endswith("stopped")
    assert went_on == []


def test_worker_says_which_devices_there_are(tmp_path: Path) -> None:
    done = CliRunner().invoke(worker.command, ["--devices", "cuda:7"])
    assert done.exit_code == 2
    assert "cuda:7" in done.output
    assert "cpu" in done.output


def test_worker_needs_something_to_do() -> None:
    done = CliRunner().invoke(worker.command, ["--no-devices"])
    assert done.exit_code == 2
    assert "--site-queue" in done.output


def test_several_interpreters_have_names_of_their_own() -> None:
    seats = worker.seats(["cpu", "cpu"])
    assert [seat.device for seat in seats] == ["cpu", "cpu"]
    assert len({seat.name for seat in seats}) == 2


@pytest.mark.parametrize("command", [submit.command, status.command])
def test_a_site_that_is_not_there_is_named(tmp_path: Path, command: Any) -> None:
    """Nobody listens on port 9 (discard) of this machine."""
    site = ["--site", "http://127.0.0.1:9"]
    (tmp_path / "relu.py").write_text("x")
    arguments = {
        submit.command: [str(tmp_path), "--method", "M"],
        status.command: ["00000000-0000-4000-8000-000000000000"],
    }[command]
    done = CliRunner().invoke(command, arguments + site)
    assert done.exit_code == 1
    assert "http://127.0.0.1:9 can't be reached" in done.output


def test_a_folder_is_sent_as_a_zip_of_what_sites_take(tmp_path: Path) -> None:
    import io
    import zipfile

    (tmp_path / "Math").mkdir()
    (tmp_path / "Math" / "add.py").write_text("x")
    (tmp_path / "Math" / "add.pyc").write_text("x")
    name, data = site_client.packed(tmp_path)
    assert name.endswith(".zip")
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == ["Math/add.py"]


REFUSED = {"reason": "the upload holds no candidate", "remedy": "send .py"}


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (httpx.Response(400, json=REFUSED), r"no candidate: send \.py"),
        (httpx.Response(400, json={"file": ["larger than 32 MiB"]}), "file: larger than 32 MiB"),
        (httpx.Response(401, json={"detail": "Unknown key."}), "Unknown key: make an API key at"),
        (httpx.Response(413, text="<html>nginx</html>"), "Too Large: .*send it in parts"),
        (httpx.Response(429, json={"detail": "Available in 9 s."}), "Available in 9 s: wait"),
        (httpx.Response(404, text="<html>"), "Not Found: check --site"),
        (httpx.Response(502, text="<html>"), "Bad Gateway: the site failed"),
        (httpx.Response(200, text="<html>"), "no KernelBench-X site"),
        (
            httpx.Response(301, headers={"location": "https://site.org/api/v1/x"}),
            "--site https://site.org$",
        ),
    ],
    ids=lambda value: str(getattr(value, "status_code", "")),
)
def test_what_a_site_answers_reaches_the_terminal_with_a_remedy(
    response: httpx.Response, said: str
) -> None:
    response.request = httpx.Request("POST", "http://site.org/api/v1/x")
    with pytest.raises(click.ClickException, match=said):
        site_client.answer(response)


@pytest.mark.parametrize("site", ["", "site.org", "ftp://site.org", "http://"])
def test_what_is_no_address_is_refused(tmp_path: Path, site: str) -> None:
    done = CliRunner().invoke(submit.command, [str(tmp_path), "--method", "M", "--site", site])
    assert done.exit_code == 2
    assert "--site" in done.output


@pytest.mark.django_db
def test_a_job_that_was_lost_and_asked_again_no_longer_counts_as_lost(job: Job) -> None:
    Job.objects.update(state="lost")
    assert (Tally.read().lost, Tally.read().is_over) == (1, True)
    Job.objects.create(candidate=job.candidate, gpu=job.gpu)
    tally = Tally.read()
    assert (tally.lost, tally.is_over, tally.total) == (0, False, 1)


def test_demo_loads_what_is_recorded_and_needs_nothing_where_nothing_is(tmp_path: Path) -> None:
    plan = demo.Plan(tmp_path / "state", 1, ("cpu",), ("cpu-interpreter",))
    out = io.StringIO()
    demo.load_recorded(plan, Console(file=out), tmp_path)
    assert out.getvalue() == ""
    (tmp_path / "broken.json.gz").write_bytes(b"no recording")
    plan.state.mkdir()
    with pytest.raises(click.ClickException, match=r"broken\.json\.gz"):
        demo.load_recorded(plan, Console(file=out), tmp_path)
