"""Writes claimed results down: runs of another origin, in a lane of their own.

A claim is what its submitter says that another harness found. No board of ours saw it, so it never
counts beside a measured run. Of a candidate that was only claimed the SHA-256 is known, like of a
recorded one; its source is not stored and never judged.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from benchmark import aggregates, vocabulary
from benchmark.models import Candidate, Gpu, Run, Source, Submission, Task
from runner.intake import Claim

BATCH = 500
VERSION = "claimed"  # in the place of a judge's version: none of ours judged it


def store(submission: Submission, claims: Iterable[Claim], gpu: Gpu) -> int:
    """Write each claim once, inside the caller's transaction, after it bumped the board.

    Returns how many were new. The same claim again changes nothing; another one is a later run.
    """
    told = list(claims)
    candidates = _candidates(submission, told)
    held = _held(submission, gpu)
    runs = [
        _run(claim, candidates[claim.task, claim.round], gpu)
        for claim in told
        if held.get(candidates[claim.task, claim.round].pk) != (_verdict(claim), claim.speedup)
    ]
    Run.objects.bulk_create(runs, batch_size=BATCH)
    aggregates.refresh_submission(submission)
    return len(runs)


def _held(submission: Submission, gpu: Gpu) -> dict[int, tuple[str, float | None]]:
    """The newest claim of each candidate on the GPU."""
    rows = Run.objects.filter(
        candidate__submission=submission, gpu=gpu, origin=vocabulary.CLAIMED
    ).order_by("created_at", "id")
    return {
        candidate: (verdict, speedup)
        for candidate, verdict, speedup in rows.values_list("candidate_id", "verdict", "speedup")
    }


def _candidates(submission: Submission, claims: list[Claim]) -> dict[tuple[str, int], Candidate]:
    """By task and round; those that only a claim tells of are made."""
    found = dict(_by_place(submission))
    missing = [claim for claim in claims if (claim.task, claim.round) not in found]
    tasks = Task.objects.in_bulk({claim.task for claim in missing}, field_name="slug")
    digests = sorted({claim.sha256 for claim in missing})
    Source.objects.bulk_create(
        [Source(sha256=digest, text="", size=0) for digest in digests],
        batch_size=BATCH,
        ignore_conflicts=True,
    )
    made = Candidate.objects.bulk_create(
        [
            Candidate(
                submission=submission,
                task=tasks[claim.task],
                round=claim.round,
                source_id=claim.sha256,
                place=claim.place[:300],
            )
            for claim in missing
        ],
        batch_size=BATCH,
    )
    return found | {(candidate.task.slug, candidate.round): candidate for candidate in made}


def _by_place(submission: Submission) -> Iterator[tuple[tuple[str, int], Candidate]]:
    for candidate in submission.candidates.select_related("task"):
        yield (candidate.task.slug, candidate.round), candidate


def _verdict(claim: Claim) -> str:
    """What the other harness's stage says in our words: its check compares values and shapes."""
    if claim.ok:
        return vocabulary.PASSED
    return vocabulary.CALL_ERROR if claim.stage == "call" else vocabulary.WRONG_VALUES


def _run(claim: Claim, candidate: Candidate, gpu: Gpu) -> Run:
    facts: dict[str, Any] = {"claimed": {**claim.facts, "from": claim.place}}
    return Run(
        candidate=candidate,
        gpu=gpu,
        origin=vocabulary.CLAIMED,
        task_digest=candidate.task.digest,
        judge_version=VERSION,
        verdict=_verdict(claim),
        stage=claim.stage,
        detail=claim.detail,
        speedup=claim.speedup,
        # The harness states no interval: the claim is a point.
        speedup_low=claim.speedup,
        speedup_high=claim.speedup,
        is_suspect=claim.is_suspect,
        environment=facts,
    )
