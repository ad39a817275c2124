"""`kbx evaluate`: judge files, folders, JSONL or zip here and now."""

import json
import os
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from statistics import geometric_mean
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmark import vocabulary
from runner.commands.given import GrowingReport, errors, read_candidates, treat, writable
from runner.engine import (
    JUDGE_VERSION,
    Candidate,
    Declined,
    DeviceSpec,
    Judge,
    JudgeApart,
    JudgeFailure,
    Options,
    find_devices,
)
from runner.intake import Found

FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
AnyJudge = Judge | JudgeApart
HEADINGS = ("task", "round", "verdict", "stage", "speedup", "torch.compile", "seconds", "detail")
ATTEMPTS = 2  # our own failures are tried again once


@dataclass
class Outcome:
    """What `--json` writes, as it grows."""

    judge: dict = field(default_factory=dict)
    environment: dict = field(default_factory=dict)
    runs: list[dict] = field(default_factory=list)
    declined: list[dict] = field(default_factory=list)
    refused: list[dict] = field(default_factory=list)
    failed: list[dict] = field(default_factory=list)
    took: dict = field(default_factory=dict)  # seconds, and by how many

    def sort(self) -> None:
        """By task and round: threads finish in any order."""
        for rows in (self.runs, self.declined, self.failed):
            rows.sort(key=lambda row: (row["task"], row["round"], row.get("device", "")))


def _stages(_context: click.Context, _parameter: click.Parameter, value: str) -> tuple[str, ...]:
    chosen = tuple(word.strip() for word in value.split(",") if word.strip())
    unknown = [word for word in chosen if word not in vocabulary.STAGES]
    if unknown or not chosen:
        known = ", ".join(vocabulary.STAGES)
        raise click.BadParameter(f"no stage is called {', '.join(unknown)!r}; there are {known}")
    return chosen


def _devices(_context: click.Context, _parameter: click.Parameter, value: str | None) -> list[Any]:
    try:
        if value is not None:
            return find_devices(value)
        try:
            return find_devices("cuda:0")
        except ValueError:
            return find_devices("cpu")
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH...",
)
@click.option("--task", help="The task that the source is for, or the only one to judge.")
@click.option(
    "--device",
    "devices",
    callback=_devices,
    help="cpu, cuda:N, or all boards. Default: the first board, without one the interpreter.",
)
@click.option(
    "--stages",
    callback=_stages,
    default=",".join(vocabulary.STAGES),
    show_default=True,
    help="Only these stages, in their order.",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=lambda _context, _parameter, value: writable(value),
    help="Write the report here.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep what the --json file already holds of this judge and suite; judge the rest.",
)
@click.option("--jobs", type=click.IntRange(1, 64), help="Candidates in hand at once, per device.")
@click.option(
    "--overlap/--no-overlap",
    default=True,
    show_default=True,
    help="Let others compile while one is timed: where the host has cores to keep quiet.",
)
@click.option(
    "--baseline",
    type=click.Choice(["eager", "compile"]),
    default="eager",
    show_default=True,
    help="compile: on boards, time torch.compile's reference too, beside the eager one.",
)
@click.option(
    "--trust-candidates",
    is_flag=True,
    help="Judge even where this host can't wall strangers' code in. Recorded in every run.",
)
def command(
    paths: tuple[Path, ...],
    task: str | None,
    devices: list[DeviceSpec],
    stages: tuple[str, ...],
    json_path: Path | None,
    resume: bool,
    jobs: int | None,
    overlap: bool,
    baseline: str,
    trust_candidates: bool,
) -> None:
    """Judge files, folders, JSONL or zip here and now: no site, no database, no broker.

    Exit status 0 when everything was judged, whatever the verdicts; 2 for unusable arguments; 1
    when the judge itself failed; 130 after Ctrl-C, with what was judged so far in the report.
    """
    options = Options(
        stages=stages,
        trust_candidates=trust_candidates,
        overlap=None if overlap else False,
        compiled_baseline=baseline == "compile",
    )
    outcome = Outcome()
    report = GrowingReport(json_path)
    before = _held(json_path) if resume else []
    try:
        with ExitStack() as stack:
            started = time.monotonic()
            judges = _started(stack, devices, options)
            outcome.judge = {"version": JUDGE_VERSION, "suite_digest": None}
            outcome.environment = judges[0].environment
            intake = read_candidates(paths, task, judges[0].tasks())
            outcome.refused = [refusal.to_json() for refusal in intake.refusals]
            left = _keep(before, intake.candidates, judges, outcome)
            report.finish(vars(outcome))
            jobs = jobs or _default_jobs(devices[0])
            outcome.took = {"start": time.monotonic() - started, "jobs": jobs, "judged": len(left)}
            if left:
                _judge_all(judges, left, jobs, outcome, report)
            outcome.judge["suite_digest"] = judges[0].suite_digest()
        report.finish(vars(outcome))
    except (JudgeFailure, OSError) as error:
        report.save(vars(outcome))
        errors.print(f"[bold red]The judge failed:[/] {escape(str(error))}", highlight=False)
        raise SystemExit(FAILED) from error
    except KeyboardInterrupt:
        report.save(vars(outcome))
        errors.print(f"[yellow]Stopped[/] with {len(outcome.runs)} judged.", highlight=False)
        raise SystemExit(INTERRUPTED) from None
    _show(outcome)
    raise SystemExit(_exit_status(outcome))


def _started(stack: ExitStack, devices: Sequence[DeviceSpec], options: Options) -> list[AnyJudge]:
    """A judge for each device. Several have a process each, and start side by side."""
    apart = len(devices) > 1
    judges: list[AnyJudge] = [
        JudgeApart(device, options) if apart else Judge(device, options) for device in devices
    ]
    for judge in judges:
        stack.callback(judge.close)
    for judge in judges:
        stack.enter_context(judge)
    return judges


def _default_jobs(device: DeviceSpec) -> int:
    """On a board compiling keeps every core busy, and some wait to be timed; the interpreter
    computes on several cores by itself.
    """
    cores = os.cpu_count() or 2
    return max(1, min(24, 3 * cores // 2) if device.kind == "cuda" else min(8, cores // 2))


# -- resuming --


def _held(path: Path | None) -> list[dict]:
    """The runs of an earlier report; click's error when it is none, or there is no file to name."""
    if path is None:
        raise click.UsageError("--resume continues a report: name its file with --json")
    if not path.exists():
        return []
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))["runs"]
        return [run for run in runs if _identity(run)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise click.BadParameter(
            f"{path} is no report of kbx evaluate ({type(error).__name__}: {error}); "
            "name another file, or leave --resume out",
            param_hint="--json",
        ) from error


def _identity(run: dict) -> tuple:
    """What makes a run the same: what was judged, by whom, on what, how far."""
    about = ("task", "round", "source_sha256", "task_digest", "judge_version", "device")
    environment = run["environment"]
    baselines = environment.get("baselines", ["eager"])
    return (*(run[name] for name in about), tuple(environment["stages"]), tuple(baselines))


def _keep(
    before: list[dict], candidates: Sequence[Found], judges: list[AnyJudge], outcome: Outcome
) -> list[Found]:
    """Take over the earlier runs that would be the same now; the candidates that are left."""
    held = {_identity(run): run for run in before}
    left = []
    for found in candidates:
        same = held.get(_expected(found, judges)) if held else None
        if same:
            outcome.runs.append(same)
        else:
            left.append(found)
    if held:
        errors.print(f"{len(outcome.runs)} were judged before, {len(left)} are left.")
    return left


def _expected(found: Found, judges: list[AnyJudge]) -> tuple:
    judge = judges[0]
    candidate = Candidate(found.task, found.source, found.round, found.place)
    return (
        *(found.task, found.round, candidate.sha256, judge.task_digest(found.task)),
        *(JUDGE_VERSION, judge.device.gpu, judge.options.stages),
        tuple(judge.environment.get("baselines", ["eager"])),
    )


def _exit_status(outcome: Outcome) -> int:
    if outcome.failed:
        return FAILED
    return 0 if outcome.runs or outcome.declined else UNUSABLE


# -- judging --


def _judge_all(
    judges: list[AnyJudge],
    candidates: Iterable[Found],
    jobs: int,
    outcome: Outcome,
    report: GrowingReport,
) -> None:
    """Share the candidates out among the devices: whichever is free takes the next."""
    free: SimpleQueue[AnyJudge] = SimpleQueue()
    for judge in judges * jobs:
        free.put(judge)
    started = time.monotonic()

    def arrived(result: tuple[str, dict]) -> str:
        kind, row = result
        getattr(outcome, kind).append(row)
        outcome.sort()
        outcome.took["seconds"] = time.monotonic() - started
        report.write(vars(outcome))
        return str(row.get("verdict", kind))

    def stop() -> None:
        for judge in judges:  # those under way end at once when their processes do
            judge.close()

    treat(candidates, len(judges) * jobs, lambda found: _judge_one(free, found), arrived, stop)


def _judge_one(free: "SimpleQueue[AnyJudge]", found: Found) -> tuple[str, dict]:
    candidate = Candidate(found.task, found.source, found.round, found.place)
    identity = {"task": found.task, "round": found.round, "source_sha256": candidate.sha256}
    judge = free.get()
    try:
        return "runs", _with_notes(_attempt(judge, candidate), found)
    except Declined as declined:
        return "declined", {**identity, "reason": str(declined)}
    except JudgeFailure as failure:
        return "failed", {**identity, "reason": str(failure)}
    except Exception as error:  # noqa: BLE001 - one candidate must not end the others' judgement
        return "failed", {**identity, "reason": f"{type(error).__name__}: {error}"}
    finally:
        free.put(judge)


def _attempt(judge: AnyJudge, candidate: Candidate) -> dict:
    for _ in range(ATTEMPTS - 1):
        try:
            return judge.judge(candidate).to_json()
        except JudgeFailure as failure:
            if judge.closed:
                raise
            said = escape(str(failure))
            errors.print(f"[yellow]trying {candidate.task} again:[/] {said}", highlight=False)
    return judge.judge(candidate).to_json()


def _with_notes(run: dict, found: Found) -> dict:
    notes = [{"code": "intake", "message": note, "stage": "load"} for note in found.notes]
    return {**run, "findings": [*notes, *run["findings"]], "place": found.place}


# -- showing --


def _show(outcome: Outcome) -> None:
    table = Table(
        title=f"{len(outcome.runs)} judged on {_device_name(outcome)}", title_justify="left"
    )
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    for run in outcome.runs:
        table.add_row(*_row(run))
    for word, rows in (
        ("[dim]declined[/]", outcome.declined),
        ("[red]we failed[/]", outcome.failed),
    ):
        for row in rows:
            between = [""] * (len(HEADINGS) - 4)
            table.add_row(row["task"], str(row["round"]), word, *between, escape(row["reason"]))
    if table.row_count:
        Console().print(table)
    for refusal in outcome.refused:
        errors.print(
            escape(f"refused {refusal['place']}: {refusal['reason']}; {refusal['remedy']}"),
            highlight=False,
            soft_wrap=True,
        )


def _device_name(outcome: Outcome) -> str:
    return str(outcome.environment.get("device", {}).get("name", "no device"))


def _against_compiled(cases: Sequence[dict]) -> str:
    """The speedup against PyTorch's compiler, over the cases of which it has a time; and how many
    it has none of.
    """
    timed = [case for case in cases if case["candidate_ms"]]
    ratios = [c["compiled_ms"] / c["candidate_ms"] for c in timed if c.get("compiled_ms")]
    without = sum(bool(case.get("compiled_detail")) for case in timed)
    words = [f"{geometric_mean(ratios):.3f}"] if ratios else []
    return ", ".join([*words, *([f"failed on {without} of {len(timed)}"] if without else [])])


def _row(run: dict) -> tuple[str, ...]:
    colour = "green" if run["verdict"] == vocabulary.PASSED else "red"
    speedup = ""
    if run["speedup"] is not None:
        speedup = f"{run['speedup']:.3f} [{run['speedup_low']:.3f}, {run['speedup_high']:.3f}]"
    detail = " ".join(run["detail"].split())
    return (
        run["task"],
        str(run["round"]),
        f"[{colour}]{run['verdict']}[/]" + (" (suspect)" if run["suspect"] else ""),
        run["stage"],
        speedup.replace("[", r"\["),
        _against_compiled(run["cases"]),
        f"{run['seconds']['total']:.1f}",
        (detail if len(detail) < 160 else detail[:157] + "...").replace("[", r"\["),
    )
