"""`kbx compile`: which architectures candidates build for, and what they need there. No GPU."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmark import vocabulary
from benchmark.architectures import ARCHITECTURE_BY_SLUG, Architecture
from runner.commands.given import GrowingReport, errors, read_candidates, treat, writable
from runner.engine import Candidate, JudgeFailure
from runner.engine.compiling import MAX_CONFIGURATIONS, MAX_LAUNCHES, Compiler
from runner.intake import Found

FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
ATTEMPTS = 2  # our own failures are tried again once
COLOURS = {vocabulary.BUILT: "green", vocabulary.BUILD_FAILED: "red", vocabulary.UNTRACED: "dim"}


@dataclass
class Outcome:
    """What `--json` writes, as it grows."""

    environment: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)
    architectures: list[dict] = field(default_factory=list)
    compiled: list[dict] = field(default_factory=list)
    refused: list[dict] = field(default_factory=list)
    failed: list[dict] = field(default_factory=list)

    def sort(self) -> None:
        """By task and round: threads finish in any order."""
        for rows in (self.compiled, self.failed):
            rows.sort(key=lambda row: (row["task"], row["round"], row["place"]))


def _architectures(
    _context: click.Context, _parameter: click.Parameter, value: str
) -> list[Architecture]:
    words = list(dict.fromkeys(word.strip() for word in value.split(",") if word.strip()))
    unknown = [word for word in words if word not in ARCHITECTURE_BY_SLUG]
    if unknown or not words:
        known = ", ".join(ARCHITECTURE_BY_SLUG)
        raise click.BadParameter(f"no architecture {', '.join(unknown)!r} here; there are {known}")
    return [ARCHITECTURE_BY_SLUG[word] for word in words]


@click.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH...",
)
@click.option("--task", help="The task that the source is for, or the only one to compile.")
@click.option(
    "--arch",
    "architectures",
    callback=_architectures,
    default=",".join(ARCHITECTURE_BY_SLUG),
    show_default=True,
    help="Only these architectures.",
)
@click.option(
    "--json",
    "json_path",
    type=click.Path(path_type=Path, dir_okay=False),
    callback=lambda _context, _parameter, value: writable(value),
    help="Write the report here.",
)
@click.option("--jobs", type=click.IntRange(1, 64), help="Candidates in hand at once.")
@click.option(
    "--trust-candidates",
    is_flag=True,
    help="Compile even where this host can't wall strangers' code in. Recorded.",
)
def command(
    paths: tuple[Path, ...],
    task: str | None,
    architectures: list[Architecture],
    json_path: Path | None,
    jobs: int | None,
    trust_candidates: bool,
) -> None:
    """Compile candidates for several GPU architectures, without a GPU.

    Says per architecture whether every kernel builds and fits, or why not, or why it couldn't be
    found out here; with registers, spills and shared memory.

    Exit status 0 when everything was treated, whether it builds or not; 2 for unusable arguments; 1
    when we failed; 130 after Ctrl-C, with what was compiled so far in the report.
    """
    outcome = Outcome(
        limits={"launches": MAX_LAUNCHES, "configurations": MAX_CONFIGURATIONS},
        architectures=[vars(one) for one in architectures],
    )
    report = GrowingReport(json_path)
    try:
        with Compiler(trust_candidates) as compiler:
            outcome.environment = compiler.environment
            tasks = compiler.tasks()
            intake = read_candidates(paths, task, tasks)
            outcome.refused = [refusal.to_json() for refusal in intake.refusals]
            report.finish(vars(outcome))
            aliases = {one["name"]: one["aliases"] for one in tasks}
            work = Work(compiler, architectures, aliases, jobs or max(1, os.cpu_count() or 1))
            work.do(intake.candidates, outcome, report)
        report.finish(vars(outcome))
    except (JudgeFailure, OSError) as error:
        report.save(vars(outcome))
        errors.print(f"[bold red]Compiling failed:[/] {escape(str(error))}", highlight=False)
        raise SystemExit(FAILED) from error
    except KeyboardInterrupt:
        report.save(vars(outcome))
        errors.print(f"[yellow]Stopped[/] with {len(outcome.compiled)} compiled.", highlight=False)
        raise SystemExit(INTERRUPTED) from None
    show(outcome)
    raise SystemExit(FAILED if outcome.failed else 0 if outcome.compiled else UNUSABLE)


@dataclass
class Work:
    """Candidates shared out among threads; each has its own processes."""

    compiler: Compiler
    architectures: list[Architecture]
    aliases: dict[str, Sequence[str]]
    jobs: int

    def do(self, candidates: Iterable[Found], outcome: Outcome, report: GrowingReport) -> None:
        """Compile all of them; the report grows with each."""

        def arrived(result: tuple[str, dict]) -> str:
            kind, row = result
            getattr(outcome, kind).append(row)
            outcome.sort()
            report.write(vars(outcome))
            return in_short(row)

        treat(candidates, self.jobs, self.one, arrived, self.compiler.close, "compiled")

    def one(self, found: Found) -> tuple[str, dict]:
        """("compiled", its builds) or ("failed", why we failed)."""
        candidate = Candidate(found.task, found.source, found.round, found.place)
        row: dict[str, Any] = {
            "task": found.task,
            "round": found.round,
            "source_sha256": candidate.sha256,
            "place": found.place,
        }
        reason = ""
        for _ in range(ATTEMPTS):
            try:
                case, builds = self.compiler.compile(
                    candidate, self.aliases.get(found.task, ()), self.architectures
                )
            except JudgeFailure as failure:
                reason = str(failure)
                if self.compiler.closed:
                    break
            except Exception as error:  # noqa: BLE001 - one must not end the others' compilation
                reason = f"{type(error).__name__}: {error}"
            else:
                return "compiled", row | {"case": case, "builds": [one.to_json() for one in builds]}
        return "failed", row | {"reason": reason}


def in_short(row: dict) -> str:
    """How one ended, on one line: "5 built, 1 failed"."""
    if "builds" not in row:
        return "we failed"
    counts = Counter(build["state"] for build in row["builds"])
    return ", ".join(
        f"{counts[state]} {state}" for state in vocabulary.BUILD_STATES if counts[state]
    )


def show(outcome: Outcome) -> None:
    """A row per candidate, a column per architecture; then what doesn't build, and why."""
    slugs = [one["slug"] for one in outcome.architectures]
    table = Table(title=_title(outcome), title_justify="left")
    for heading in ("task", "round", *slugs):
        table.add_column(heading, overflow="fold")
    for row in outcome.compiled:
        table.add_row(row["task"], str(row["round"]), *map(cell, row["builds"]))
    for row in outcome.failed:
        table.add_row(row["task"], str(row["round"]), f"[red]we failed:[/] {escape(row['reason'])}")
    if table.row_count:
        Console().print(table)
    for row in outcome.compiled:
        for reason, where in reasons(row).items():
            line = f"{row['task']} round {row['round']} ({', '.join(where)}): {reason}"
            errors.print(escape(line), highlight=False, soft_wrap=True)
    for refusal in outcome.refused:
        line = f"refused {refusal['place']}: {refusal['reason']}; {refusal['remedy']}"
        errors.print(escape(line), highlight=False, soft_wrap=True)


def _title(outcome: Outcome) -> str:
    count = len(outcome.compiled)
    return (
        f"{count} compiled by Triton {outcome.environment.get('triton')}: "
        "registers and spilled words per thread, shared KiB per block"
    )


def cell(build: dict) -> str:
    """One architecture's answer, as short as a table needs it."""
    state = build["state"]
    if state != vocabulary.BUILT:
        return f"[{COLOURS[state]}]{state}[/]"
    spills = f" [yellow]{build['spills']} spilled[/]" if build["spills"] else ""
    return f"[green]{build['registers']} reg[/]{spills} {build['shared_bytes'] / 1024:.3g} KiB"


def reasons(row: dict) -> dict[str, list[str]]:
    """Why it doesn't build, with the architectures that say so."""
    found: dict[str, list[str]] = {}
    for build in row["builds"]:
        if build["reason"]:
            found.setdefault(build["reason"], []).append(build["architecture"])
    return found
