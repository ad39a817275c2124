"""Turn reports of `kbx evaluate --json` into a record: `docs/measurements/NAME.md` and `NAME.json`.

    python benchmarks/record_verdicts.py NAME --title TITLE [--command TEXT] LABEL=REPORT.json ...

The record has a table of verdicts by label and category of outcome; every figure is counted here.
A recording (`samples/recorded/*.json.gz`) counts as a report, but knows of no line that was refused
or declined: `--refused LABEL=N`, `--declined LABEL=N`. A label that is given again is of the same
method: of a candidate that was judged twice the later file counts. `LABEL=RECORD.json#LABEL` keeps
what an earlier record says.
"""

import argparse
import gzip
import json
import statistics
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import records

from benchmark.suite import registry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--title", required=True)
    parser.add_argument("--command", action="append", default=[], help="may be given several times")
    parser.add_argument("--note", action="append", default=[], help="a paragraph for the record")
    for word in ("refused", "declined"):
        parser.add_argument(f"--{word}", action="append", default=[], metavar="LABEL=N")
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}")
    parser.add_argument("reports", nargs="+", help="LABEL=PATH")
    chosen = parser.parse_args()
    rows: dict[str, dict] = {}
    reports: dict[str, dict] = {}
    for label, _, place in (pair.partition("=") for pair in chosen.reports):
        earlier = records.row(place)
        if earlier:
            rows[label] = earlier
        else:
            reports[label] = joined(reports.get(label), read(place))
            rows[label] = figures(reports[label])
    for word in ("refused", "declined"):
        for label, _, count in (pair.partition("=") for pair in getattr(chosen, word)):
            rows[label][word] += int(count)
    bare = {
        "date": chosen.date,
        "environment": environment(next(iter(reports.values()))),
        "commands": chosen.command,
        "reports": rows,
    }
    records.write(chosen.name, bare, page(chosen.title, bare, chosen.note))


def read(path: str) -> dict:
    """A report, or a recording, which leaves out categories and what was not judged."""
    if not path.endswith(".gz"):
        return records.read(path)
    found: dict = json.loads(gzip.decompress(Path(path).read_bytes()))
    for run in found["runs"]:
        run["category"] = registry.get(run["task"]).category
    return {"declined": [], "refused": [], **found}


def joined(first: dict | None, later: dict) -> dict:
    if first is None:
        return later
    runs = {(run["task"], run["round"]): run for run in [*first["runs"], *later["runs"]]}
    both = {
        name: [*first.get(name, ()), *later.get(name, ())]
        for name in ("declined", "refused", "failed")
    }
    return {**first, **both, "runs": list(runs.values())}


def environment(report: dict) -> dict:
    """Hardware, versions, walls and judge."""
    walls = report["environment"]["walls"]
    return {
        **records.environment(report),
        "walls": sorted(name for name, up in walls.items() if up is True),
        "judge": report["judge"],
    }


def figures(report: dict) -> dict:
    """What one report holds, counted."""
    runs = report["runs"]
    speedups = sorted(run["speedup"] for run in runs if run.get("speedup"))
    seconds = [run["seconds"]["total"] for run in runs if "total" in run.get("seconds", {})]
    return {
        "judged": len(runs),
        "verdicts": dict(Counter(run["verdict"] for run in runs).most_common()),
        "declined": len(report["declined"]),
        "refused": len(report["refused"]),
        "failures_of_ours": len(report.get("failed", [])),
        "suspect": sum(bool(run.get("suspect")) for run in runs),
        "timed": len(speedups),
        "speedup_geometric_mean": statistics.geometric_mean(speedups) if speedups else None,
        "speedup_median": statistics.median(speedups) if speedups else None,
        "slower_than_pytorch": sum(speedup < 1 for speedup in speedups),
        "tasks_by_category": tasks_by_category(runs),
        "solved_by_category": tasks_by_category(
            [run for run in runs if run["verdict"] == "passed" and not run.get("suspect")]
        ),
        "seconds_per_candidate_median": round(statistics.median(seconds), 2) if seconds else None,
    }


def tasks_by_category(runs: list[dict]) -> dict[str, int]:
    """How many tasks have a run, in whichever round, by category."""
    return dict(
        Counter(category for category, _ in sorted({(r["category"], r["task"]) for r in runs}))
    )


def page(title: str, bare: dict, notes: list[str]) -> str:
    """The record to read."""
    found = bare["environment"]
    judge, digest = found["judge"], found["judge"].get("suite_digest") or "not recorded"
    facts = (
        f"Date: {bare['date']}. {records.hardware(found)} Walls up: {', '.join(found['walls'])}. "
        f"Judge version {judge['version']}, suite digest {digest[:16]}."
    )
    lines = [f"# {title}", "", facts, "", "```", *bare["commands"], "```", ""]
    lines += [*verdict_table(bare["reports"]), "", *speed_table(bare["reports"]), ""]
    lines += [*category_table(bare["reports"]), ""]
    for note in notes:
        lines += [note, ""]
    return "\n".join(lines)


def verdict_table(reports: dict) -> list[str]:
    """Verdicts in rows, labels in columns."""
    total: Counter = Counter()
    for row in reports.values():
        total.update(row["verdicts"])
    labels = list(reports)
    lines = ["| outcome | " + " | ".join(labels) + " |", "|---|" + "---:|" * len(labels)]
    for verdict, _ in total.most_common():
        counts = [str(reports[label]["verdicts"].get(verdict, 0)) for label in labels]
        lines.append(f"| {verdict} | " + " | ".join(counts) + " |")
    for word, key in (
        ("judged", "judged"),
        ("declined by this device", "declined"),
        ("refused by intake, by name and line", "refused"),
        ("failures of ours", "failures_of_ours"),
        ("held back as suspect", "suspect"),
    ):
        counts = [str(reports[label][key]) for label in labels]
        lines.append(f"| *{word}* | " + " | ".join(counts) + " |")
    return lines


def speed_table(reports: dict) -> list[str]:
    """Speedups against PyTorch eager on the same board, one line a label."""
    lines = [
        "| | timed | speedup, geometric mean | median | slower than PyTorch | seconds each |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for label, row in reports.items():
        mean, middle = row["speedup_geometric_mean"], row["speedup_median"]
        shown = [f"{value:.3g}x" if value else "" for value in (mean, middle)]
        lines.append(
            f"| {label} | {row['timed']} | {shown[0]} | {shown[1]} |"
            f" {row['slower_than_pytorch']} of {row['timed']} |"
            f" {row['seconds_per_candidate_median']} |"
        )
    return lines


def category_table(reports: dict) -> list[str]:
    """Tasks solved, in whichever round, of those judged."""
    labels = list(reports)
    names = sorted({name for row in reports.values() for name in row.get("tasks_by_category", {})})
    lines = ["| tasks solved | " + " | ".join(labels) + " |", "|---|" + "---:|" * len(labels)]
    for name in (*names, None):
        cells = " | ".join(_solved(reports[label], name) for label in labels)
        lines += [f"| {name or '*all*'} | {cells} |"]
    return lines


def _solved(row: dict, category: str | None) -> str:
    solved, tasks = row["solved_by_category"], row.get("tasks_by_category", {})
    if category is None and tasks:
        return f"{sum(solved.values())} of {sum(tasks.values())}"
    return f"{solved.get(category, 0)} of {tasks[category]}" if category in tasks else ""


if __name__ == "__main__":
    main()
