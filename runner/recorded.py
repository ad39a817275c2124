"""Loads recorded results: what this judge measured elsewhere, without the sources it judged.

A recording is a method's reports as `kbx evaluate --json` writes them, with a header that says
whose kernels they are, where the predictions come from, and when and on what they were judged
(`benchmarks/pack_recorded.py` makes them). It becomes a submission whose runs count like any other;
the submission says that they are recorded. Of each source only the SHA-256 is known.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from benchmark import aggregates, vocabulary
from benchmark.models import (
    Board,
    Candidate,
    Gpu,
    Measurement,
    Method,
    Run,
    Source,
    Submission,
    Task,
)
from runner import submitting
from runner.recording import RUN_FIELDS
from runner.reports import read_report
from runner.schema import Malformed, Optional, Prose, Record, Slug, Text, Word

FORMAT = 1
SUFFIXES = (".json", ".json.gz")
MOST_BYTES = 64 * 1024 * 1024  # of JSON: a method's three rounds have about 3 MB
BATCH = 1000
METHOD = Record(
    {
        "name": Text(120),
        "kind": Word(tuple(vocabulary.METHOD_KINDS)),
        "organisation": Optional(Text(120), ""),
        "url": Optional(Text(200), ""),
        "description": Optional(Prose(4000), ""),
    }
)
HEADER = Record(
    {
        "method": METHOD,
        "label": Text(60),
        "date": Text(10),
        "predictions": Prose(400),
        "device": Slug(40),
        "hardware": Prose(200),
        "architecture": Optional(Text(40), ""),
    }
)


class NotARecording(Exception):  # noqa: N818  says what the file is
    """The file can't be loaded; says where and why. Nothing of it was written."""


@dataclass(frozen=True)
class Recording:
    """A file that was read and checked. `fingerprint` names what it says."""

    header: dict[str, Any]
    rounds: Mapping[str, str]
    judge: str
    reports: tuple[dict[str, Any], ...]
    fingerprint: str

    @property
    def date(self) -> datetime:
        return datetime.fromisoformat(self.header["date"]).replace(tzinfo=UTC)

    @property
    def label(self) -> str:
        return f"{self.header['label']} {self.fingerprint[:8]}"

    def facts(self) -> dict[str, Any]:
        """What pages say of the submission."""
        names = ("label", "date", "predictions", "device", "hardware")
        return {name: self.header[name] for name in names} | {
            "judge": self.judge,
            "rounds": dict(self.rounds),
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True)
class Loaded:
    """What loading a recording did. `unknown`: tasks that this site does not have."""

    submission: Submission
    runs: int
    stale: int
    unknown: tuple[str, ...] = ()
    is_new: bool = True


def recordings(path: Path) -> list[Path]:
    """The file, or a folder's recordings in the order of their names."""
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.name.endswith(SUFFIXES))
    return [path]


def read(path: Path) -> Recording:
    """The recording in a file, checked like a report that a board sends. `NotARecording`."""
    try:
        content = _content(path)
        document = json.loads(content)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise NotARecording(f"{path}: no recording of format {FORMAT}")
        return _checked(document, hashlib.sha256(content).hexdigest())
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, ValueError, Malformed) as error:
        raise NotARecording(f"{path}: {error}") from error


@transaction.atomic
def load(recording: Recording) -> Loaded:
    """Write a recording's runs, once: what is there already is left alone.

    An earlier recording of the same method under the same name is withdrawn: this one replaces it.
    """
    method = _method(recording.header["method"])
    submissions = Submission.objects.select_for_update().filter(method=method)
    known = submissions.filter(label=recording.label).first()
    if known is not None:
        return Loaded(known, 0, 0, is_new=False)
    for earlier in submissions.filter(recorded__label=recording.header["label"]):
        submitting.withdraw(earlier)
    submission = _submission(method, recording)
    candidates, unknown = _candidates(submission, recording.reports)
    runs = _runs(candidates, recording)
    Board.bump()
    aggregates.refresh_submission(submission)
    stale = sum(run.task_digest != run.candidate.task.digest for run in runs)
    return Loaded(submission, len(runs), stale, unknown)


def _content(path: Path) -> bytes:
    data = path.read_bytes()
    if path.name.endswith(".gz"):
        decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        data = decompressor.decompress(data, MOST_BYTES)
        if decompressor.unconsumed_tail or not decompressor.eof:
            raise ValueError(f"cut short, or more than {MOST_BYTES:,} bytes")
    return data


def _checked(document: dict[str, Any], fingerprint: str) -> Recording:
    header = HEADER.read(document, "recording")
    datetime.strptime(header["date"], "%Y-%m-%d")  # only whether it is a date
    judge = document.get("judge")
    version = Text(40).read(judge.get("version") if isinstance(judge, dict) else None, "judge")
    shared = document.get("environment") or {}
    rounds = document.get("rounds") or {}
    if not isinstance(shared, dict) or not isinstance(rounds, dict):
        raise Malformed("recording", "an object as environment and as rounds")
    reports = tuple(_reports(document.get("runs"), shared, header["device"]))
    labels = {Text(5).read(key, "rounds"): Prose(80).read(rounds[key], "rounds") for key in rounds}
    return Recording(header, labels, version, reports, fingerprint)


def _reports(runs: Any, shared: dict[str, Any], device: str) -> Iterator[dict[str, Any]]:
    """Each run with what all of them share put back."""
    if not isinstance(runs, list) or not runs:
        raise Malformed("recording.runs", "at least one run")
    seen = set()
    for at, run in enumerate(runs):
        if not isinstance(run, dict):
            raise Malformed(f"recording.runs[{at}]", "an object")
        environment = {**shared, **(run.get("environment") or {})}
        try:
            report = read_report({**run, "environment": environment})
        except Malformed as error:
            raise Malformed(f"recording.runs[{at}]", str(error)) from error
        place = (report["task"], report["round"])
        if report["device"] != device or place in seen:
            raise Malformed(f"recording.runs[{at}]", f"{place} once, judged on {device}")
        seen.add(place)
        yield report


def _method(facts: dict[str, Any]) -> Method:
    method = submitting.method_named(facts["name"], facts["kind"])
    if method.pk is None:
        for name in ("organisation", "url", "description"):
            setattr(method, name, facts[name])
        method.save()
    return method


def _submission(method: Method, recording: Recording) -> Submission:
    """Dated like the judgement, so that what is judged later counts instead of it."""
    submission = Submission.objects.create(
        method=method, label=recording.label, recorded=recording.facts()
    )
    Submission.objects.filter(pk=submission.pk).update(created_at=recording.date)
    submission.refresh_from_db()
    return submission


def _candidates(
    submission: Submission, reports: Iterable[dict[str, Any]]
) -> tuple[list[tuple[Candidate, dict[str, Any]]], tuple[str, ...]]:
    """Each report with its candidate, and the tasks that this site does not have."""
    tasks = {task.slug: task for task in Task.objects.shown()}
    known = [report for report in reports if report["task"] in tasks]
    unknown = sorted({report["task"] for report in reports} - set(tasks))
    digests = {report["source_sha256"] for report in known}
    Source.objects.bulk_create(
        [Source(sha256=digest, text="", size=0) for digest in sorted(digests)],
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    candidates = Candidate.objects.bulk_create(
        [
            Candidate(
                submission=submission,
                task=tasks[report["task"]],
                round=report["round"],
                source_id=report["source_sha256"],
            )
            for report in known
        ],
        batch_size=BATCH,
    )
    return list(zip(candidates, known, strict=True)), tuple(unknown)


def _runs(
    candidates: Iterable[tuple[Candidate, dict[str, Any]]], recording: Recording
) -> list[Run]:
    gpu = _gpu(recording.header)
    pairs = list(candidates)
    runs = Run.objects.bulk_create(
        [
            Run(
                candidate=candidate,
                gpu=gpu,
                origin=vocabulary.MEASURED,
                is_suspect=report["suspect"] or any(f["suspect"] for f in report["findings"]),
                **{name: report[name] for name in RUN_FIELDS},
            )
            for candidate, report in pairs
        ],
        batch_size=BATCH,
    )
    # Not a change of the facts: a run that is inserted is always dated now, and this one was
    # judged earlier.
    keys = [run.pk for run in runs]
    QuerySet(Run).filter(pk__in=keys).update(created_at=recording.date)
    Measurement.objects.bulk_create(
        (
            Measurement(run=run, position=at, **case)
            for run, (_, report) in zip(runs, pairs, strict=True)
            for at, case in enumerate(report["cases"])
        ),
        batch_size=BATCH,
    )
    return runs


def _gpu(header: dict[str, Any]) -> Gpu:
    """The product; made when the site does not know it. It judges nothing by this."""
    facts = {
        "name": header["hardware"][:80],
        "architecture": header["architecture"],
        "can_time": header["device"] != vocabulary.CPU_INTERPRETER,
    }
    return Gpu.objects.get_or_create(slug=header["device"], defaults=facts)[0]
