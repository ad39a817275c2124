"""The Celery tasks: names and arguments of the messages, nothing else.

Each body imports what it calls: a host with boards runs `judge_job` and has no Django to import,
the site runs the rest and has no torch. `runner.judging` and `runner.recording` say what happens.
"""

from typing import Any

from benchmark.vocabulary import REFUSED, SERVING, STARTING
from kbx_site.celery import app
from runner.patience import site_task


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


@site_task
def record_build_started(source_sha256: str, attempt: int) -> None:
    from runner import building

    building.record_started(source_sha256, attempt)


@site_task
def record_build_failure(source_sha256: str, attempt: int, reason: str) -> None:
    from runner import building

    building.record_failure(source_sha256, attempt, reason)


@site_task
def record_builds(report: dict[str, Any], attempt: int) -> None:
    from runner import building

    building.record_builds(report, attempt)


@site_task
def record_board(
    device: dict[str, Any],
    state: str = SERVING,
    reason: str = "",
    answer: dict[str, str] | None = None,
) -> None:
    from runner import recording, replies
    from runner.engine import JUDGE_VERSION

    board = recording.record_board(device, state, reason, JUDGE_VERSION)
    if board is not None and answer and board.state in (STARTING, REFUSED):
        replies.reply(answer["to"], {"word": answer["word"], **recording.standing(board)})


@site_task
def record_started(job: str, attempt: int, device: dict[str, Any]) -> None:
    from runner import recording

    recording.record_started(job, attempt, device)


@site_task
def record_heartbeat(job: str, attempt: int, stage: str, done: int, total: int) -> None:
    from runner import recording

    recording.record_heartbeat(job, attempt, {"stage": stage, "done": done, "total": total})


@site_task
def record_report(job: str, attempt: int, device: dict[str, Any], report: dict[str, Any]) -> None:
    from runner import recording
    from runner.engine import JUDGE_VERSION

    recording.record_report(job, attempt, device, report, JUDGE_VERSION)


@site_task
def record_declined(job: str, attempt: int, reason: str) -> None:
    from runner import recording

    recording.record_declined(job, attempt, reason)


@site_task
def record_returned(job: str, attempt: int, reason: str) -> None:
    from runner import recording

    recording.record_returned(job, attempt, reason)


@site_task
def record_failure(job: str, attempt: int, reason: str) -> None:
    from runner import recording

    recording.record_failure(job, attempt, reason)


@site_task
def sweep() -> None:
    from runner import building, dispatch, drafting, notifying

    dispatch.sweep()
    building.sweep()
    drafting.sweep()
    notifying.sweep()
