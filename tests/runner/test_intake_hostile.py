"""Hostile uploads, one and all: read in memory, nothing run, nothing written, all of it told."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from benchmark.models import Candidate, Draft, Method, Source, Submission, Task
from runner.intake import KnownTasks, TaskName, read_upload
from runner.models import Job

TASKS = KnownTasks({name: TaskName(name) for name in ("relu", "gelu", "abs", "softmax")})
WATCHED = ("exec", "os.", "subprocess.", "shutil.", "socket.", "import", "pickle.", "ctypes.")
FREE = ("os.listdir", "os.scandir")


def _corpus() -> ModuleType:
    """By path: pytest's importlib mode has no package to import it from."""
    path = Path(__file__).with_name("hostile_uploads.py")
    spec = importlib.util.spec_from_file_location("hostile_uploads", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


corpus = _corpus()
_seen: list[str] | None = None


def _watch(event: str, details: tuple[Any, ...]) -> None:
    """What the interpreter is about to do, where somebody listens."""
    if _seen is None:
        return
    opens = event == "open" and (len(details) < 2 or str(details[1] or "r") not in ("r", "rb"))
    if opens or (event.startswith(WATCHED) and event not in FREE):
        _seen.append(f"{event} {str(details)[:80]}")


sys.addaudithook(_watch)  # for good: a hook can't be taken away, it only listens in `listening`


@contextmanager
def listening() -> Iterator[list[str]]:
    global _seen
    _seen = found = []
    try:
        yield found
    finally:
        _seen = None


def test_reading_lives_runs_nothing_writes_nothing_and_tells_everything() -> None:
    read_upload("warm.zip", corpus.packed(("relu.py", corpus.GOOD)), TASKS)  # imports what it needs
    wrong = []
    for one in corpus.everything():
        with listening() as done:
            intake = read_upload(one.filename, one.data, TASKS)
        taken = len(intake.candidates)
        wrong += [f"{one.kind}, {one.name}: {event}" for event in done]
        if not (taken or intake.refusals or intake.claims):
            wrong.append(f"{one.kind}, {one.name}: nothing was told")
        if one.candidates is not None and taken != one.candidates:
            wrong.append(f"{one.kind}, {one.name}: {taken} taken, not {one.candidates}")
        json.dumps([refusal.to_json() for refusal in intake.refusals]).encode()
    assert wrong == []
    assert not any(Path(mark).exists() for mark in corpus.MARKS)


def rows() -> tuple[int, ...]:
    return tuple(m.objects.count() for m in (Method, Submission, Candidate, Source, Job, Draft))


@pytest.mark.django_db
def test_what_is_refused_leaves_nothing_behind_and_what_is_taken_is_whole(client: Client) -> None:
    for slug in TASKS.names:
        Task.objects.create(slug=slug, category="activation", difficulty=1, digest="d" * 64)
    wrong = []
    travelling = (one for one in corpus.everything() if "\ud800" not in one.filename)
    for number, one in enumerate(travelling):
        before = rows()
        file = SimpleUploadedFile("x", one.data)
        file._name = one.filename  # as it is: Django would make a tame one of it
        sent = {"file": file, "method": f"M{number}", "label": "first"}
        answer = client.post("/api/v1/submissions/", sent)
        where = f"{one.kind}, {one.name}: {answer.status_code}"
        if answer.status_code == 201:
            taken = answer.json()["candidates"]
            stored = Candidate.objects.filter(submission__method__name=f"M{number}")
            if not taken or stored.count() != taken:
                wrong.append(f"{where}: {taken} told, {stored.count()} stored")
        elif answer.status_code != 400 or rows() != before:
            wrong.append(f"{where}: {before} became {rows()}: {answer.content[:200]!r}")
        elif not answer.json()["reason"]:
            wrong.append(f"{where}: no reason")
    assert wrong == []
    assert not any(Path(mark).exists() for mark in corpus.MARKS)
