"""The Celery tasks: names and arguments of the messages, nothing else.

Each body imports what it calls: a host with boards runs `judge_job` and has no Django to import,
the site runs the rest and has no torch. `runner.judging` and `runner.recording` say what happens.
"""

from typing import Any

from kbx_site.celery import app


@app.task(name="runner.judge_job")
def judge_job(**message: Any) -> None:
    """On a board: judge a candidate and send back what was found."""
    from runner.judging import judge_job as judge

    judge(message)


@app.task(name="runner.compile_source")
def compile_source(**message: Any) -> None:
    """On any host with our environment: build a source for every architecture."""
    from runner.compiling import compile_source as compile_

    compile_(message)


@app.task(name="runner.record_build_started")
def record_build_started(source_sha256: str, attempt: int) -> None:
    from runner import building

    building.record_started(source_sha256, attempt)


@app.task(name="runner.record_build_failure")
def record_build_failure(source_sha256: str, attempt: int, reason: str) -> None:
    from runner import building

    building.record_failure(source_sha256, attempt, reason)


@app.task(name="runner.record_builds")
def record_builds(report: dict[str, Any], attempt: int) -> None:
    from runner import building

    building.record_builds(report, attempt)


@app.task(name="runner.record_board")
def record_board(device: dict[str, Any]) -> None:
    from runner import recording

    recording.record_board(device)


@app.task(name="runner.record_started")
def record_started(job: str, attempt: int, device: dict[str, Any]) -> None:
    from runner import recording

    recording.record_started(job, attempt, device)


@app.task(name="runner.record_heartbeat")
def record_heartbeat(job: str, attempt: int, stage: str, done: int, total: int) -> None:
    from runner import recording

    recording.record_heartbeat(job, attempt, {"stage": stage, "done": done, "total": total})


@app.task(name="runner.record_report")
def record_report(job: str, attempt: int, device: dict[str, Any], report: dict[str, Any]) -> None:
    from runner import recording

    recording.record_report(job, attempt, device, report)


@app.task(name="runner.record_declined")
def record_declined(job: str, attempt: int, reason: str) -> None:
    from runner import recording

    recording.record_declined(job, attempt, reason)


@app.task(name="runner.record_failure")
def record_failure(job: str, attempt: int, reason: str) -> None:
    from runner import recording

    recording.record_failure(job, attempt, reason)


@app.task(name="runner.sweep")
def sweep() -> None:
    from runner import building, dispatch, drafting, notifying

    dispatch.sweep()
    building.sweep()
    drafting.sweep()
    notifying.sweep()
