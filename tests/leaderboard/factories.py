"""Rows for tests of pages: each function makes one thing, with defaults that make sense."""

import hashlib
from datetime import UTC, datetime, timedelta
from itertools import count

from django.db.models import QuerySet

from benchmark import aggregates, vocabulary
from benchmark.models import Candidate, Gpu, Measurement, Method, Run, Source, Submission, Task

SOURCE = "import triton\n\n\ndef relu(input):\n    return input.clamp(min=0)  # <b>&\n"
START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
_minutes = count()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def gpu(slug: str = "h200", **fields) -> Gpu:
    fields = {"name": slug.upper(), "vendor": "NVIDIA", "architecture": "sm_90", **fields}
    return Gpu.objects.create(slug=slug, is_judging=True, **fields)


def interpreter() -> Gpu:
    return gpu(vocabulary.CPU_INTERPRETER, name="CPU interpreter", architecture="", can_time=False)


def task(slug: str = "relu", category: str = "activation", **fields) -> Task:
    defaults = {
        "difficulty": 1,
        "dtypes": ["float32"],
        "signature": f"{slug}(input: Tensor) -> Tensor",
        "description": f"What {slug} computes, elementwise.",
        "tolerance": "Twice PyTorch's own error against float64.",
        "cases": [
            {"name": "small-odd", "kind": "small", "dtype": "float32", "family": "normal"}
            | {"shape": "rows=37 columns=781"}
        ],
        "reference_source": f"def {slug}(input):\n    return torch.{slug}(input)\n",
        "digest": digest(slug),
    }
    return Task.objects.create(slug=slug, category=category, **{**defaults, **fields})


def method(slug: str = "alpha", **fields) -> Method:
    return Method.objects.create(slug=slug, **{"name": slug.title(), **fields})


def submission(of: Method | None = None, label: str = "first", **fields) -> Submission:
    made = Submission.objects.create(method=of or method(), label=label, **fields)
    Submission.objects.filter(pk=made.pk).update(created_at=_next_moment())
    return made


def source(text: str = SOURCE) -> Source:
    found, _ = Source.objects.get_or_create(
        sha256=Source.digest(text), defaults={"text": text, "size": len(text.encode())}
    )
    return found


def candidate(of: Submission, on: Task, round: int = 0, text: str = SOURCE) -> Candidate:
    made, _ = Candidate.objects.get_or_create(
        submission=of, task=on, round=round, defaults={"source": source(text)}
    )
    return made


def run(
    of: Submission, on: Task, where: Gpu, speedup: float | None = None, round: int = 0, **fields
) -> Run:
    """A passed run, or with `verdict` another; a speedup gets an interval of 10 % either side."""
    times = {}
    if speedup is not None:
        times = {
            "speedup": speedup,
            "speedup_low": speedup * 0.9,
            "speedup_high": speedup * 1.1,
        }
    defaults = {
        "verdict": vocabulary.PASSED,
        "stage": "time" if where.can_time else "check",
        "task_digest": on.digest,
        "judge_version": "1",
    }
    made = Run.objects.create(
        candidate=candidate(of, on, round), gpu=where, **{**defaults, **times, **fields}
    )
    # Runs refuse changes; a test may still say when one happened.
    QuerySet(Run).filter(pk=made.pk).update(created_at=_next_moment())
    aggregates.refresh_run(made)
    return made


def measurement(of: Run, position: int = 0, speedup: float | None = None, **fields) -> Measurement:
    times = {}
    if speedup is not None:
        times = {
            "speedup": speedup,
            "speedup_low": speedup * 0.95,
            "speedup_high": speedup * 1.05,
            "candidate_ms": 0.05,
            "candidate_ms_low": 0.049,
            "candidate_ms_high": 0.051,
            "reference_ms": 0.05 * speedup,
            "reference_ms_low": 0.049 * speedup,
            "reference_ms_high": 0.051 * speedup,
        }
    defaults = {
        "case": f"case-{position}",
        "kind": "timed" if times else "small",
        "shape": "rows=37 columns=781",
        "dtype": "float32",
        "state": "passed",
        "error": 1.2e-7,
        "reference_error": 1.1e-7,
        "tolerance": 2.4e-7,
        "unit": "relative to the largest value",
    }
    return Measurement.objects.create(run=of, position=position, **{**defaults, **times, **fields})


def _next_moment() -> datetime:
    """Each row is later than the one before, so that "newest" never depends on the clock."""
    return START + timedelta(minutes=next(_minutes))
