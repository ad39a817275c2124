"""How quickly the site writes down what boards report: messages a second of one site worker.

    DATABASE_URL=postgresql://... python benchmarks/recording.py

The database must be one of its own, migrated; tasks are made here and synthetic results of other
methods seeded, so that boards have something to be compared with. Each judgement is recorded as
its messages ask for it: started, a heartbeat, a report of twelve cases; beside them a board's
announcement with the digests of all tasks. No broker: what a message costs in the database and in
the worker is measured, by wall time and the worker's own processor time, not its way there. Writes
`docs/measurements/recording.{md,json}`.
"""

import hashlib
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import django

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kbx_site.settings.development")
os.environ.setdefault("KBX_LOG_LEVEL", "ERROR")
django.setup()

import records  # noqa: E402  beside this file
from django.core.management import call_command  # noqa: E402  needs the settings
from django.db import connection  # noqa: E402  as above

from benchmark.models import Candidate, Gpu, Method, Run, Source, Submission, Task  # noqa: E402
from runner import dispatch, recording  # noqa: E402
from runner.models import Job  # noqa: E402

JUDGEMENTS, WARM_UP = 300, 20
CASES = 12
STEPS = {"stage": "check", "done": 1, "total": CASES}
VERSION = "bench"


def main() -> None:
    call_command("sync_tasks", verbosity=0)
    if not Run.objects.exists():
        call_command("seed", methods=20, gpus=2, rounds=1, cases=3, verbosity=0)
    gpu = Gpu.objects.get_or_create(slug="bench", defaults={"name": "Bench", "is_judging": True})[0]
    tasks = list(Task.objects.judged_on(gpu))
    board = {"gpu": "bench", "serial": "a", "host": "one", "name": "Bench", "architecture": "sm_90"}
    contracts = board | {
        "judge_version": VERSION, "tasks": {task.slug: task.digest for task in tasks},
    }  # fmt: skip
    recording.record_board(contracts, judge_version=VERSION)
    spent: dict[str, list[tuple[float, float]]] = {}
    for job in jobs(gpu, tasks):
        key = (str(job.uuid), job.attempt)
        timed(spent, "started", lambda k=key: recording.record_started(*k, board))
        timed(spent, "heartbeat", lambda k=key: recording.record_heartbeat(*k, STEPS))
        report = report_on(job)
        timed(spent, "report", lambda k=key, r=report: recording.record_report(*k, board, r))
        timed(spent, "board", lambda: recording.record_board(contracts, judge_version=VERSION))
    recorded = Run.objects.filter(gpu=gpu).count()
    assert recorded >= JUDGEMENTS + WARM_UP, recorded
    write({name: figures(pairs[WARM_UP:]) for name, pairs in spent.items()})


def jobs(gpu: Gpu, tasks: list[Task]) -> list[Job]:
    """Of one new method, round after round, running as the dispatcher has them sent."""
    method = Method.objects.create(slug=f"bench-{time.time_ns()}", name="Bench")
    submission = Submission.objects.create(method=method, label="bench")
    made = []
    for at in range(JUDGEMENTS + WARM_UP):
        text = f"# {submission.pk} {at}\n"
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        source = Source.objects.create(sha256=sha256, text=text, size=len(text))
        candidate = Candidate.objects.create(
            submission=submission,
            task=tasks[at % len(tasks)],
            round=at // len(tasks),
            source=source,
        )
        made.append(candidate)
    dispatch.enqueue(made, [gpu])
    return list(Job.objects.filter(gpu=gpu, candidate__submission=submission).select_related(
        "candidate__task", "gpu"
    ))  # fmt: skip


def report_on(job: Job) -> dict[str, Any]:
    """As a board sends it: three timed cases of twelve, a passed verdict, an environment."""
    times = {
        "candidate_ms": 1.0, "candidate_ms_low": 0.99, "candidate_ms_high": 1.01,
        "reference_ms": 1.5, "reference_ms_low": 1.49, "reference_ms_high": 1.51,
        "speedup": 1.5, "speedup_low": 1.45, "speedup_high": 1.55, "flops": 1e9, "bytes": 1e8,
        "own_share": 1.0, "samples": 100,
    }  # fmt: skip
    cases = [
        {
            "case": f"case-{at}", "kind": "timed" if at < 3 else "small", "shape": "n=3 float32",
            "dtype": "float32", "family": "normal", "state": "passed", "verdict": "passed",
            "error": 0.5, "reference_error": 0.25, "tolerance": 4.0, "unit": "ulp", "detail": "",
            **(times if at < 3 else {}),
        }
        for at in range(CASES)
    ]  # fmt: skip
    return {
        "task": job.candidate.task.slug, "category": "Math", "round": job.candidate.round,
        "source_sha256": job.candidate.source_id, "task_digest": job.candidate.task.digest,
        "judge_version": VERSION, "device": job.gpu.slug, "verdict": "passed", "stage": "time",
        "detail": "", "speedup": 1.5, "speedup_low": 1.45, "speedup_high": 1.55, "cases": cases,
        "kernels": [{"name": "k", "calls": 2}], "findings": [],
        "seconds": {"load": 0.1, "total": 5.0}, "peak_memory_bytes": 10**9, "log_tail": "",
        "environment": {"torch": "2.13", "driver": "580"},
    }  # fmt: skip


def timed(
    spent: dict[str, list[tuple[float, float]]], name: str, work: Callable[[], object]
) -> None:
    wall, own = time.perf_counter(), time.process_time()
    work()
    pair = (time.perf_counter() - wall, time.process_time() - own)
    spent.setdefault(name, []).append(pair)


def figures(pairs: list[tuple[float, float]]) -> dict[str, float]:
    """Milliseconds a message."""
    wall = [1000 * seconds for seconds, _ in pairs]
    own = statistics.mean(1000 * seconds for _, seconds in pairs)
    return {
        "p50_ms": round(statistics.median(wall), 2),
        "p95_ms": round(statistics.quantiles(wall, n=20)[-1], 2),
        "cpu_ms": round(own, 2),
    }


def write(found: dict[str, dict[str, float]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        version = cursor.fetchone()[0].split()[0]
        cursor.execute("SELECT pg_database_size(current_database())")
        size = cursor.fetchone()[0]
    bare = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "environment": {
            "cores": os.cpu_count(), "python": platform.python_version(),
            "django": django.__version__, "postgresql": version,
            "load_average": os.getloadavg()[0],
        },
        "judgements": JUDGEMENTS, "cases": CASES, "runs": Run.objects.count(),
        "database_bytes": size, "messages": found,
    }  # fmt: skip
    rows = "".join(
        f"| {name} | {f['p50_ms']} | {f['p95_ms']} | {f['cpu_ms']} |\n" for name, f in found.items()
    )
    records.write(
        "recording",
        bare,
        f"""# What it costs the site to write a report down

Date: {bare["date"]}. {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} with other work
meanwhile. Python {platform.python_version()}, Django {django.__version__}, PostgreSQL
{version}, {bare["runs"]} runs in it.

```
DATABASE_URL=postgresql://... python benchmarks/recording.py
```

{JUDGEMENTS} judgements of {CASES} cases, one after another in one process, as the site's worker
does it. `cpu` is that process's own processor time, the mean; the database's comes on top.

| message | p50 ms | p95 ms | cpu ms |
|---|---:|---:|---:|
{rows}
Not in it: the broker and the message's way through Celery, other workers that wait for the same
rows, a disk that is slower than this machine's.
""",
    )


if __name__ == "__main__":
    main()
