"""Synthetic results for trying the site at size: plausible in shape, and made up from end to end.

Everything is named so: methods, their organisation, the label, the judge's version, and the GPUs.
The GPUs are synthetic too, so that nothing made up can stand in a ranking beside something real.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from benchmark import aggregates, vocabulary
from benchmark.models import (
    Board,
    Candidate,
    CountingRun,
    Gpu,
    Measurement,
    Method,
    Run,
    RunTally,
    Source,
    Submission,
    Task,
)

ORGANISATION = "Synthetic data (manage.py seed)"
JUDGE_VERSION = "synthetic"
SEED = 176
BATCH = 2000
TEXT = "# Synthetic: written by manage.py seed, never judged.\n"
SUSPECT_SHARE = 0.01
# The made-up GPUs' roof, and how much of it a made-up PyTorch reaches, at most and at least.
BANDWIDTH, PEAK = 2e12, 6e13  # bytes/s; FLOP/s in every dtype
REACHED = (0.1, 0.8)
COMPUTE_SHARE = 0.2  # of cases that computing bounds and not memory
RIDGE = PEAK / BANDWIDTH  # FLOP per byte at which both take as long
FAILURES = {  # (verdict, stage): weight, about as published candidates fail
    (vocabulary.CALL_ERROR, "call"): 36,
    (vocabulary.WRONG_VALUES, "check"): 30,
    (vocabulary.LOAD_ERROR, "load"): 10,
    (vocabulary.WRONG_SHAPE, "check"): 6,
    (vocabulary.FORBIDDEN, "proof"): 6,
    (vocabulary.NON_FINITE, "check"): 4,
    (vocabulary.WRONG_DTYPE, "check"): 3,
    (vocabulary.TIMEOUT, "call"): 2,
    (vocabulary.CRASHED, "call"): 1,
    (vocabulary.OUT_OF_MEMORY, "call"): 1,
    (vocabulary.UNSTABLE, "time"): 1,
}


@dataclass(frozen=True, slots=True)
class Size:
    """How much: every method offers every task in every round and is judged on every GPU."""

    methods: int = 50
    gpus: int = 6
    rounds: int = 5
    cases: int | None = None  # of a task, None: all

    def runs(self, tasks: int) -> int:
        return self.methods * self.gpus * self.rounds * tasks


@dataclass(frozen=True, slots=True)
class Seeded:
    """A method's part, as it was written."""

    method: str
    runs: int
    measurements: int


def real_submissions() -> int:
    """How many submissions are no synthetic ones."""
    return Submission.objects.exclude(method__organisation=ORGANISATION).count()


def synthetic_methods() -> int:
    return Method.objects.filter(organisation=ORGANISATION).count()


def seed(size: Size) -> Iterator[Seeded]:
    """Write `size`, a method and a transaction at a time. The tasks must be there."""
    draw = random.Random(SEED)  # noqa: S311  made-up results, no secret
    tasks = list(Task.objects.current().order_by("slug"))
    hardness = {task.pk: draw.gauss(0, 1) for task in tasks}
    gpus = [_gpu(number) for number in range(1, size.gpus + 1)]
    source = _source()
    with connection.cursor() as cursor:
        cases = _cases(cursor, tasks, size.cases, draw)
    for number in range(1, size.methods + 1):
        with transaction.atomic():
            submission = _submission(number)
            candidates = _candidates(submission, tasks, range(size.rounds), source)
            skill = 2.2 * number / size.methods - 1.1 + draw.gauss(0, 0.2)
            runs = Run.objects.bulk_create(
                _runs(candidates, gpus, hardness, skill, draw), batch_size=BATCH
            )
            measurements = _measure(submission)
            Board.bump()
            aggregates.refresh_submission(submission)
        yield Seeded(submission.method.name, len(runs), measurements if cases else 0)
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE seed_case")
        cursor.execute("ANALYZE")  # or the first pages would be planned for empty tables


def remove() -> Iterator[str]:
    """Take everything synthetic out again, a method and a transaction at a time."""
    for method in Method.objects.filter(organisation=ORGANISATION).order_by("id"):
        with transaction.atomic():
            Board.bump()
            candidates = Candidate.objects.filter(submission__method=method)
            runs = Run.objects.filter(candidate__in=candidates)
            CountingRun.objects.filter(method=method).delete()
            RunTally.objects.filter(submission__method=method).delete()
            Measurement.objects.filter(run__in=runs)._raw_delete(connection.alias)
            runs.order_by().delete()
            candidates.order_by().delete()
            Submission.objects.filter(method=method).delete()
            method.delete()
        yield method.name
    Gpu.objects.filter(slug__startswith=f"{vocabulary.SYNTHETIC}gpu-", runs__isnull=True).delete()


def _gpu(number: int) -> Gpu:
    facts = {
        "name": f"Synthetic GPU {number}",
        "vendor": "none",
        "peak_bandwidth": BANDWIDTH,
        "peak_flops": dict.fromkeys(vocabulary.DTYPES, PEAK),
        "peak_source": ORGANISATION,
    }
    return Gpu.objects.get_or_create(slug=f"{vocabulary.SYNTHETIC}gpu-{number}", defaults=facts)[0]


def _source() -> Source:
    key = Source.digest(TEXT)
    return Source.objects.get_or_create(
        sha256=key, defaults={"text": TEXT, "size": len(TEXT.encode())}
    )[0]


def _submission(number: int) -> Submission:
    method = Method.objects.create(
        slug=f"{vocabulary.SYNTHETIC}{number:03}",
        name=f"Synthetic {number:03}",
        kind=list(vocabulary.METHOD_KINDS)[number % len(vocabulary.METHOD_KINDS)],
        organisation=ORGANISATION,
        description="Made up by manage.py seed. Nothing of it was ever judged.",
    )
    return Submission.objects.create(method=method, label="synthetic", settings={"synthetic": True})


def _candidates(
    submission: Submission, tasks: Sequence[Task], rounds: range, source: Source
) -> list[Candidate]:
    return Candidate.objects.bulk_create(
        [
            Candidate(submission=submission, task=task, round=round, source=source)
            for task in tasks
            for round in rounds
        ],
        batch_size=BATCH,
    )


def _runs(
    candidates: Sequence[Candidate],
    gpus: Sequence[Gpu],
    hardness: dict[int, float],
    skill: float,
    draw: random.Random,
) -> Iterator[Run]:
    """A candidate ends mostly alike on all GPUs; later rounds are a little better."""
    verdicts, weights = list(FAILURES), list(FAILURES.values())
    for candidate in candidates:
        margin = skill - hardness[candidate.task_id] + 0.25 * candidate.round + draw.gauss(0, 0.7)
        (failure,) = draw.choices(verdicts, weights)
        pace = draw.gauss(0.15 * skill - 0.25, 0.8)
        for gpu in gpus:
            ending = (vocabulary.PASSED, "time") if margin + draw.gauss(0, 0.15) > 0 else failure
            yield _run(candidate, gpu, ending, pace + draw.gauss(0, 0.25), draw)


def _run(
    candidate: Candidate, gpu: Gpu, ending: tuple[str, str], log: float, draw: random.Random
) -> Run:
    speedup: float | None = 2**log
    if ending[0] != vocabulary.PASSED:
        speedup = None
    return Run(
        candidate=candidate,
        gpu=gpu,
        task_digest=candidate.task.digest,
        judge_version=JUDGE_VERSION,
        verdict=ending[0],
        stage=ending[1],
        detail="" if speedup else "Made up: nothing was judged.",
        speedup=speedup,
        speedup_low=speedup and speedup * 0.97,
        speedup_high=speedup and speedup * 1.03,
        is_suspect=draw.random() < SUSPECT_SHARE,
        seconds={"total": 1.0},
        environment={"note": "synthetic"},
    )


def _cases(cursor: Any, tasks: Sequence[Task], most: int | None, draw: random.Random) -> int:
    """A temporary table of the tasks' cases; speedups of the timed ones multiply to 1."""
    cursor.execute(
        "CREATE TEMPORARY TABLE seed_case (task_id bigint, position integer, name text, kind text,"
        " shape text, dtype text, family text, reference_ms real, factor real, flops real,"
        " bytes real)"
    )
    rows = []
    for task in tasks:
        chosen = task.cases[-most:] if most else task.cases
        timed = [case for case in chosen if case["kind"] == "timed"]
        logs = [draw.gauss(0, 0.2) for _ in timed]
        factors = iter([2 ** (log - sum(logs) / len(logs)) for log in logs])
        for position, case in enumerate(chosen):
            texts = (case[name] for name in ("name", "kind", "shape", "dtype", "family"))
            is_timed = case["kind"] == "timed"
            numbers = (2 ** draw.uniform(-6, 3), next(factors)) if is_timed else (None, None)
            rows.append((task.pk, position, *texts, *numbers, *_costs(numbers[0], draw)))
    places = ", ".join(["%s"] * len(rows[0])) if rows else ""
    cursor.executemany(f"INSERT INTO seed_case VALUES ({places})", rows)  # noqa: S608  only %s
    return len(rows)


def _costs(reference_ms: float | None, draw: random.Random) -> tuple[float | None, float | None]:
    """(FLOP, bytes) for which the reference reaches a plausible share of the made-up GPU's roof."""
    if reference_ms is None:
        return None, None
    least = reference_ms / 1e3 * draw.uniform(*REACHED)  # seconds, by the roof that bounds it
    if draw.random() < COMPUTE_SHARE:
        return PEAK * least, BANDWIDTH * least * draw.uniform(0.05, 0.9)
    moved = BANDWIDTH * least
    return moved * min(RIDGE * 0.9, 2 ** draw.uniform(-3, 5)), moved


# Written by the database out of the runs: three million rows would take minutes to send.
MEASURE = """
INSERT INTO benchmark_measurement (
  run_id, position, "case", kind, shape, dtype, family, state, verdict, detail, unit,
  error, reference_error, tolerance,
  candidate_ms, candidate_ms_low, candidate_ms_high,
  reference_ms, reference_ms_low, reference_ms_high, speedup, speedup_low, speedup_high,
  flops, bytes, samples)
SELECT id, position, name, kind, shape, dtype, family,
  CASE WHEN passed THEN 'passed' WHEN position = 0 THEN 'failed' ELSE 'not-run' END,
  CASE WHEN passed THEN 'passed' WHEN position = 0 THEN verdict ELSE '' END, '', 'synthetic',
  CASE WHEN passed THEN 1e-7 END, CASE WHEN passed THEN 1e-7 END, CASE WHEN passed THEN 2e-7 END,
  ms / pace, 0.99 * ms / pace, 1.01 * ms / pace,
  ms, 0.99 * ms, 1.01 * ms, pace, 0.98 * pace, 1.02 * pace,
  CASE WHEN ms > 0 THEN flops END, CASE WHEN ms > 0 THEN bytes END, CASE WHEN ms > 0 THEN 50 END
FROM (
  SELECT r.id, r.verdict, r.verdict = 'passed' AS passed, c.*, r.speedup * c.factor AS pace,
    CASE WHEN r.speedup IS NULL THEN NULL ELSE c.reference_ms END AS ms
  FROM benchmark_run r
  JOIN benchmark_candidate k ON k.id = r.candidate_id
  JOIN seed_case c ON c.task_id = k.task_id
  WHERE k.submission_id = %s) AS made
ORDER BY id, position -- as a report writes them: a run's cases lie together
"""


def _measure(submission: Submission) -> int:
    """Measurements of all of the submission's runs; how many."""
    with connection.cursor() as cursor:
        cursor.execute(MEASURE, [submission.pk])
        return int(cursor.rowcount)
