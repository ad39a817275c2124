"""The whole database in a file, and back: PostgreSQL's own tools, or SQLite's.

A backup is one moment, taken while the site works. The broker needs none: jobs are rows, and what
was under way at that moment is sent again.
"""

import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from django.db import connection
from django.utils import timezone

DUMP, SQLITE = ".dump", ".sqlite3"


class BackupFailed(Exception):  # noqa: N818  what happened, as elsewhere
    """No backup was written, or nothing was restored; the message says why."""


def write(folder: Path, keep: int) -> Path:
    """Write a backup into the folder, readable by its owner only; the `keep` newest stay."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ending = SQLITE if is_sqlite() else DUMP
    path = folder / f"kbx-{timezone.now():%Y%m%dT%H%M%S.%fZ}{ending}"
    unfinished = path.with_suffix(".part")
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        if is_sqlite():
            copy_sqlite(database(), unfinished)
        else:
            run(
                "pg_dump",
                "--format=custom",
                "--no-owner",
                "--no-privileges",
                f"--file={unfinished}",
            )
            run("pg_restore", "--list", str(unfinished))  # that it can be read
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    for old in backups(folder)[:-keep]:
        old.unlink()
    return path


def backups(folder: Path) -> list[Path]:
    """Those in the folder, the oldest first."""
    return sorted(path for path in folder.glob("kbx-*") if path.suffix in (DUMP, SQLITE))


def restore(path: Path, replace: bool) -> None:
    """Make the database what the backup is. Where there are tables already, only to `replace` them;
    the site must be stopped.
    """
    expected = SQLITE if is_sqlite() else DUMP
    if path.suffix != expected:
        raise BackupFailed(f"{path.name} is no {expected} file, which this database is kept in")
    if not path.is_file():
        raise BackupFailed(f"there is no file {path}")
    if connection.introspection.table_names() and not replace:
        raise BackupFailed("the database is not empty: add --replace to lose what is in it")
    if is_sqlite():
        check_sqlite(path)
        connection.close()
        copy_sqlite(path, database())
        return
    run("pg_restore", "--list", str(path))
    with connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE")
        cursor.execute("CREATE SCHEMA public")
    connection.close()
    name = str(connection.settings_dict["NAME"])
    options = ("--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction")
    run("pg_restore", *options, f"--dbname={name}", str(path))


def is_sqlite() -> bool:
    return connection.vendor == "sqlite"


def database() -> Path:
    return Path(str(connection.settings_dict["NAME"]))


def copy_sqlite(source: Path, target: Path) -> None:
    """Page by page, as one moment, whoever writes meanwhile."""
    try:
        # `mode=ro`: a source that is not there must not be made.
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=30)) as read,
            closing(sqlite3.connect(target, timeout=30)) as written,
        ):
            read.backup(written)
    except sqlite3.Error as error:
        raise BackupFailed(f"{source} could not be copied to {target}: {error}") from error


def check_sqlite(path: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as opened:
            (found,) = opened.execute("PRAGMA integrity_check").fetchone()
    except sqlite3.Error as error:
        raise BackupFailed(f"{path} can't be read: {error}") from error
    if found != "ok":
        raise BackupFailed(f"{path} is damaged: {found}")


def run(tool: str, *arguments: str) -> None:
    """One of PostgreSQL's tools; a password in its arguments would be in the process list."""
    try:
        done = subprocess.run(
            [tool, *arguments],
            env=credentials(connection.settings_dict),
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise BackupFailed(f"{tool} is not here: apt-get install postgresql-client") from None
    if done.returncode:
        raise BackupFailed(f"{tool} failed: {done.stderr.strip()[-1000:]}")


def credentials(said: Mapping[str, Any]) -> dict[str, str]:
    """The environment of PostgreSQL's tools for these settings of a database."""
    named = {
        "PGHOST": said["HOST"],
        "PGPORT": said["PORT"],
        "PGUSER": said["USER"],
        "PGPASSWORD": said["PASSWORD"],
        "PGDATABASE": said["NAME"],
        "PGSSLMODE": said.get("OPTIONS", {}).get("sslmode"),
        "PGSSLROOTCERT": said.get("OPTIONS", {}).get("sslrootcert"),
    }
    return dict(os.environ) | {name: str(value) for name, value in named.items() if value}
