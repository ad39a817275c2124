"""Rows to judge, and what lies in the broker: the real filesystem broker in a folder of the run."""

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from benchmark.models import Candidate, Gpu, Method, Source, Submission, Task, TaskVersion
from runner.intake import Found, Intake
from runner.models import Job

DIGEST = "d" * 64


def make_task(slug: str, interpretable: bool = True) -> Task:
    task = Task.objects.create(
        slug=slug, category="math", difficulty=1, digest=DIGEST, interpretable=interpretable
    )
    TaskVersion.objects.create(task=task, digest=DIGEST)
    return task


def make_candidate(submission: Submission, task: Task, round: int = 0) -> Candidate:
    text = f"# {submission.pk} {task.slug} {round}"
    source, _ = Source.objects.get_or_create(
        sha256=Source.digest(text), defaults={"text": text, "size": len(text)}
    )
    return Candidate.objects.create(submission=submission, task=task, round=round, source=source)


def make_submission(label: str, tasks: int = 0) -> Submission:
    """A submission with candidates for `tasks` tasks, without jobs."""
    method, _ = Method.objects.get_or_create(slug="m", defaults={"name": "M"})
    submission = Submission.objects.create(method=method, label=label)
    for at in range(tasks):
        task = Task.objects.filter(slug=f"task{at}").first() or make_task(f"task{at}")
        make_candidate(submission, task)
    return submission


def report_on(job: Job, **changes: Any) -> dict[str, Any]:
    """A report as the engine sends it, about this job."""
    case = {
        "case": "small-1", "kind": "small", "shape": "n=3 float32", "dtype": "float32",
        "family": "normal", "state": "passed", "verdict": "passed", "error": 0.5,
        "reference_error": 0.25, "tolerance": 4.0, "unit": "ulp", "detail": "",
    }  # fmt: skip
    return {
        "task": job.candidate.task.slug,
        "category": "Math",
        "round": job.candidate.round,
        "source_sha256": job.candidate.source_id,
        "task_digest": DIGEST,
        "judge_version": "1",
        "device": job.gpu.slug,
        "verdict": "passed",
        "stage": "proof",
        "detail": "",
        "speedup": None,
        "speedup_low": None,
        "speedup_high": None,
        "cases": [case],
        "kernels": [{"name": "k", "calls": 2}],
        "findings": [],
        "seconds": {"load": 0.1, "total": 1.0},
        "peak_memory_bytes": None,
        "log_tail": "",
        "environment": {"torch": "2.13"},
    } | changes


@dataclass
class Outbox:
    """The messages in the broker, oldest first."""

    folder: Path
    seen: list[Path] = field(default_factory=list)

    def messages(self, queue: str) -> list[dict[str, Any]]:
        found = []
        for path in sorted(self.folder.glob(f"*.{queue}.msg")):
            payload = json.loads(path.read_text())
            _, kwargs, _ = json.loads(base64.b64decode(payload["body"]))
            found.append({"name": payload["headers"]["task"], **kwargs})
        return found

    def jobs(self, gpu: str = "h200") -> list[dict[str, Any]]:
        return [m for m in self.messages(f"gpu.{gpu}") if m["name"] == "runner.judge_job"]

    def clear(self) -> None:
        for path in self.folder.glob("*.msg"):
            path.unlink()


@pytest.fixture
def outbox() -> Iterator[Outbox]:
    from kbx_site.celery import app

    box = Outbox(Path(app.conf.broker_transport_options["data_folder_out"]))
    box.clear()
    yield box
    box.clear()


@pytest.fixture
def committed(
    django_capture_on_commit_callbacks: Callable[..., AbstractContextManager[Any]],
    outbox: Outbox,
) -> Callable[[], AbstractContextManager[Any]]:
    """`with committed():` runs what its body left for the commit, as a commit would."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def h200(db: None) -> Gpu:
    return Gpu.objects.create(slug="h200", name="H200", is_judging=True)


@pytest.fixture
def interpreter(db: None) -> Gpu:
    return Gpu.objects.create(slug="cpu-interpreter", name="CPU", can_time=False, is_judging=True)


@pytest.fixture
def job(h200: Gpu) -> Job:
    """One job, sent on its first attempt."""
    from django.utils import timezone

    candidate = make_submission("one", tasks=1).candidates.get()
    now = timezone.now()
    return Job.objects.create(candidate=candidate, gpu=h200, sent_at=now, lease_expires_at=now)


def intake_of(*names: str, round: int = 0, text: str = "") -> Intake:
    return Intake(tuple(Found(name, round, f"# {name}{text}", f"{name}.py") for name in names))


@pytest.fixture
def make() -> Any:
    """The factories, by name: test modules are imported apart from one another."""
    from types import SimpleNamespace

    return SimpleNamespace(
        task=make_task,
        candidate=make_candidate,
        submission=make_submission,
        report=report_on,
        intake=intake_of,
    )
