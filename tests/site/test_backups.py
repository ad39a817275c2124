"""What was backed up comes back whole: each table's rows, and the ranking to the last digit."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    "database",
    ["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)],
    indirect=True,
)
def test_everything_comes_back(run: Run, database: str, tmp_path: Path) -> None:
    program = str(Path(__file__).with_name("lost_and_found.py"))
    done = run(database, program, str(tmp_path / "backups"))
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["before"]["rows"]["benchmark.Run"] == 9
    assert said["lost"]["rows"]["benchmark.Run"] == 0
    assert said["lost"]["ranking"] != said["before"]["ranking"]
    assert said["after"] == said["before"]
    assert said["still"] == said["before"], "a refused restore changes nothing"
    assert said["kept"], "the two newest of three stay"
    assert said["mode"] == "0o600", "accounts and private sources are in it"
    full, absent, damaged, other = said["refused"]
    assert "not empty: add --replace" in full
    assert "there is no file" in absent
    assert damaged
    assert "is no ." in other


def test_no_password_is_in_the_process_list(monkeypatch, tmp_path: Path) -> None:
    """The tools' arguments, as a program in their place sees them."""
    from benchmark import backups

    tool = tmp_path / "pg_dump"
    tool.write_text('#!/bin/sh\necho "$@" > "$0.arguments"\nenv > "$0.environment"\n')
    tool.chmod(0o755)
    said = {
        "HOST": "db", "PORT": 5432, "USER": "kbx", "PASSWORD": "hush-hush", "NAME": "board",
        "OPTIONS": {"sslmode": "require"},
    }  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(backups.connection, "settings_dict", said)
    backups.run("pg_dump", "--format=custom")
    assert "hush" not in Path(f"{tool}.arguments").read_text()
    environment = Path(f"{tool}.environment").read_text()
    for line in ("PGPASSWORD=hush-hush", "PGHOST=db", "PGDATABASE=board", "PGSSLMODE=require"):
        assert line in environment
