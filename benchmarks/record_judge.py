"""Records of the judge itself in `docs/measurements/`, from what was measured on boards.

    python benchmarks/record_judge.py throughput LABEL=REPORT.json...   # of kbx evaluate
    python benchmarks/record_judge.py repeatability FIRST.json SECOND.json
    python benchmarks/record_judge.py exploits SELFTEST.json...         # of tests.gpu.selftest
    python benchmarks/record_judge.py timer [TIMER.json] SELFTEST.json  # of tests.gpu.timer, too
    python benchmarks/record_judge.py proof PROOF.json... [REPORT.json]  # of kbx prove, and one of
                                                           # kbx evaluate that names the hardware

Each writes `judge-WHAT.md` and `.json`, proof and proof-cpu `suite-proof` and `suite-proof-cpu`;
`--note TEXT` and `--command TEXT` may be given several times. What an earlier record holds is kept
where it is given, too, first: exploits and proof take its `.json` as one more file, throughput
takes `LABEL=RECORD.json#LABEL`.
"""

import argparse
import statistics
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import records

HELD = 0.02  # speedups of one kernel on two occasions should lie within this
LONG_MS = 0.05  # ... for calls from here on
PUBLISHED_SECONDS = 48.0  # a candidate, of the published harness on one H200
Record = tuple[str, dict, list[str]]  # title, bare figures, the page's body


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=sorted(RECORDS))
    parser.add_argument("files", nargs="+")
    parser.add_argument("--command", action="append", default=[])
    parser.add_argument("--note", action="append", default=[])
    parser.add_argument("--date", default=f"{datetime.now(UTC):%Y-%m-%d}")
    chosen = parser.parse_args()
    name, record = RECORDS[chosen.what]
    title, bare, body = record(chosen.files)
    bare = {"date": chosen.date, "commands": chosen.command, **bare}
    facts = f"Date: {chosen.date}. {hardware(bare)}"
    lines = [f"# {title}", "", facts, "", "```", *chosen.command, "```", "", *body, ""]
    for note in chosen.note:
        lines += [note, ""]
    records.write(name, bare, "\n".join(lines))


def environment(report: dict) -> dict:
    """Hardware and versions, whether others compiled meanwhile, and the judge's version."""
    return {
        **records.environment(report),
        "overlap": report["environment"].get("overlap"),
        "judge_version": report.get("judge", {}).get("version") or report.get("judge_version"),
    }


def hardware(bare: dict) -> str:
    found = bare.get("environment")
    if not found:
        return ""
    return f"{records.hardware(found)} Judge version {found['judge_version']}."


def table(columns: list[str], rows: list[list]) -> list[str]:
    lines = ["| " + " | ".join(columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    return [*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows)]


# -- throughput --


def throughput(files: list[str]) -> Record:
    places = {label: place for label, _, place in (one.partition("=") for one in files)}
    figures = {
        label: records.row(place) or speed(records.read(place)) for label, place in places.items()
    }
    first = next(iter(figures.values()))
    bare = {
        "environment": environment(records.read(next(iter(places.values())))),
        **{name: first[name] for name in SPEED},
        "reports": figures,
    }
    rows = [
        [label, row["candidates"], row["boards"], row["jobs"], f"{row['seconds']:.1f}",
         f"{row['seconds_per_candidate']:.2f}", f"{row['gpu_seconds']:.1f}",
         f"{PUBLISHED_SECONDS / row['seconds_per_candidate']:.0f}x"]
        for label, row in figures.items()
    ]  # fmt: skip
    columns = ["", "candidates", "boards", "in hand a board", "seconds", "seconds a candidate"]
    columns += ["of these timed calls", "as fast as the published harness (48 s)"]
    body = [
        *table(columns, rows),
        "",
        "Where the time goes, seconds a candidate at the median:",
        "",
    ]
    stages = ["load", "call", "check", "proof", "time"]
    body += table(
        ["", *stages],
        [[label, *(row["stages"][s] for s in stages)] for label, row in figures.items()],
    )
    told = {label: row for label, row in figures.items() if row["time_steps"]}
    body += ["", "Inside of the time stage, seconds over all runs that were timed:", ""]
    names = list(dict.fromkeys(name for row in told.values() for name in row["time_steps"]))
    body += table(
        ["", *told],
        [[name, *(row["time_steps"].get(name, "") for row in told.values())] for name in names],
    )
    return "How fast the judge judges", bare, body


SPEED = ("candidates", "boards", "seconds", "seconds_per_candidate", "gpu_seconds")


def speed(report: dict) -> dict:
    """`seconds`: from the first candidate's start to the last one's end. `gpu_seconds`: what the
    timed calls themselves took, both sides: no judge that takes as many samples can be faster.
    """
    runs, took = report["runs"], report["took"]
    boards = {run["environment"]["device"].get("uuid_hash") for run in runs}
    timed = [case for run in runs for case in run["cases"] if case["samples"]]
    calls = sum(
        case["samples"] / 2 * (case["candidate_ms"] + case["reference_ms"]) / 1e3 for case in timed
    )
    return {
        "candidates": len(runs),
        "boards": len(boards),
        "jobs": took.get("jobs"),
        "seconds": took["seconds"],
        "seconds_per_candidate": took["seconds"] / len(runs),
        "gpu_seconds": calls,
        "start_seconds": took.get("start"),
        "stages": {name: middle(runs, name) for name in ("load", "call", "check", "proof", "time")},
        "time_steps": time_steps(runs),
    }


def time_steps(runs: list[dict]) -> dict[str, float]:
    """Seconds of each step of the time stage, over all runs."""
    total: Counter[str] = Counter()
    for run in runs:
        total.update(run["environment"].get("time_steps", {}))
    return {name: round(seconds, 1) for name, seconds in total.most_common()}


def middle(runs: list[dict], stage: str) -> float | None:
    values = [run["seconds"][stage] for run in runs if stage in run["seconds"]]
    return round(statistics.median(values), 2) if values else None


# -- repeatability --


def repeatability(files: list[str]) -> Record:
    first, second = (by_candidate(records.read(path)) for path in files)
    both = sorted(set(first) & set(second))
    rows = [ratio_row(key, first[key], second[key]) for key in both]
    ratios = sorted(row["ratio"] for row in rows)
    long = [row["ratio"] for row in rows if row["shortest_ms"] >= LONG_MS]
    alone = [row["ratio"] for row in rows if not row["host_time"]]
    bare = {
        "environment": environment(records.read(files[0])),
        "candidates": len(rows),
        "within_2_percent": held(ratios),
        "long": len(long),
        "long_within_2_percent": held(long),
        "board_s_time": len(alone),
        "board_s_time_within_2_percent": held(alone),
        "ratio_quantiles": quantiles(ratios),
        "intervals_overlap": sum(row["overlap"] for row in rows),
        "rows": rows,
    }
    body = [
        f"{len(rows)} candidates were timed on both occasions. Second speedup over first: "
        + ", ".join(f"{name} {value:.4f}" for name, value in bare["ratio_quantiles"].items())
        + f". Within 2 %: {bare['within_2_percent']} of {len(rows)}; of those whose calls all take "
        f"50 us or more, {bare['long_within_2_percent']} of {len(long)}; of those whose times were "
        f"named the host's, too, on neither occasion, "
        f"{bare['board_s_time_within_2_percent']} of {len(alone)}. Their 95 % intervals "
        f"overlap for {bare['intervals_overlap']} of {len(rows)}.",
        "",
        *table(
            ["furthest apart", "first", "second", "ratio", "shortest call, ms", "host's time"],
            [
                [row["task"], f"{row['first']:.3f}x", f"{row['second']:.3f}x",
                 f"{row['ratio']:.4f}", f"{row['shortest_ms']:.4f}",
                 "named" if row["host_time"] else ""]
                for row in sorted(rows, key=lambda row: -abs(row["ratio"] - 1))[:12]
            ],
        ),
    ]  # fmt: skip
    return "The same kernels judged on two occasions", bare, body


def by_candidate(report: dict) -> dict[tuple, dict]:
    return {
        (run["task"], run["round"], run["source_sha256"], run["task_digest"]): run
        for run in report["runs"]
        if run["speedup"]
    }


def ratio_row(key: tuple, first: dict, second: dict) -> dict:
    timed = [case for run in (first, second) for case in run["cases"] if case["candidate_ms"]]
    return {
        "task": key[0],
        "first": first["speedup"],
        "second": second["speedup"],
        "ratio": second["speedup"] / first["speedup"],
        "shortest_ms": min(min(case["candidate_ms"], case["reference_ms"]) for case in timed),
        "host_time": any(
            finding["code"] == "host-time" for run in (first, second) for finding in run["findings"]
        ),
        "overlap": first["speedup_low"] <= second["speedup_high"]
        and second["speedup_low"] <= first["speedup_high"],
    }


def held(ratios: list[float]) -> int:
    return sum(1 / (1 + HELD) <= ratio <= 1 + HELD for ratio in ratios)


def quantiles(values: list[float]) -> dict[str, float]:
    cut = statistics.quantiles(values, n=20, method="inclusive")
    return {
        "least": values[0], "5 %": cut[0], "median": statistics.median(values),
        "95 %": cut[-1], "most": values[-1],
    }  # fmt: skip


# -- exploits --


def exploits(files: list[str]) -> Record:
    """Of one run, or of several that tried a part each, an earlier record among them: of a
    submission that was tried twice the later file counts.
    """
    reports = [records.read(path) for path in files]
    parts = [report.get("exploits", report) for report in reports]
    tried = {row["name"]: row for part in parts for row in part["rows"]}
    rows = [tried[name] for name in sorted(tried)]
    honest = [row for row in rows if row["honest"]]
    cheats = [row for row in rows if not row["honest"]]
    bare = {
        "caught": sum(row["caught"] for row in cheats),
        "total": len(cheats),
        "honest_passed": sum(row["caught"] for row in honest),
        "honest_total": len(honest),
        "files": max(part.get("files", 0) for part in parts),
        "rows": rows,
        "environment": environment(reports[-1]),
    }
    body = [
        f"Caught: {bare['caught']} of {bare['total']} cheats get the verdict that they must. "
        f"Honest controls: {bare['honest_passed']} of {bare['honest_total']} pass without a "
        f"doubt held against them. {len(rows)} of the folder's {bare['files']} submissions were "
        "tried on a board.",
        "",
        *table(
            ["submission", "catalogue", "must get", "got", ""],
            [
                [row["name"], row["cheat"], row["wanted"], row["verdict"],
                 "" if row["caught"] else "**missed**"]
                for row in rows
            ],
        ),
    ]  # fmt: skip
    return "Cheats and honest controls on a board", bare, body


# -- the timer --


MET = {True: "yes", False: "**no**", None: "not measured"}


def timer(files: list[str]) -> Record:
    """What was not measured is neither met nor missed."""
    known, selftest = records.read(files[0]), records.read(files[-1])
    known = known.get("timer", known)
    rows = [*known_durations(known), *seen(selftest)]
    bare = {
        "all_met": all(row["met"] for row in rows),
        "not_measured": sum(row["met"] is None for row in rows),
        "rows": rows,
        "readings": known,
        "environment": environment(selftest),
    }
    body = table(
        ["acceptance", "measured", "asked for", "met"],
        [[r["what"], r["measured"], r["asked"], MET[r["met"]]] for r in rows],
    )
    return "What the timer must meet, and does", bare, body


def known_durations(known: dict) -> list[dict]:
    own = known["event_us"]
    empty = known["empty_triton_kernel"]["median_us"] - own
    rows = [requirement("an empty kernel", f"{empty:.2f} us", "under 5 us", empty < 5)]
    for name, asked in (("10us", "2 us"), ("100us", "1 %"), ("1ms", "0.1 %")):
        truth, reading = known[name]["kernel_us"], known[name]["median_us"] - own
        away = abs(reading - truth)
        met = away < 2 if name == "10us" else away / truth < (0.01 if name == "100us" else 0.001)
        text = f"{reading:.2f} us where the profiler sees a kernel of {truth:.2f} us"
        rows.append(requirement(f"a spin of {name}", text, f"within {asked}", met))
    return rows


def seen(selftest: dict) -> list[dict]:
    inside = [row["contains_one"] for row in selftest.get("baseline", ())]
    slower = [row["seen"] for row in selftest.get("slower", ())]
    twice = [abs(row["ratio"] - 1) for row in selftest.get("twice", ())]
    return [
        requirement(
            "PyTorch against itself: the interval contains 1",
            f"{sum(inside)} of {len(inside)}", "93 of 100", enough(inside, 0.93),
        ),
        requirement(
            "a planted slow-down of 2 % is seen",
            f"{sum(slower)} of {len(slower)}", "9 of 10", enough(slower, 0.9),
        ),
        requirement(
            "the same candidate judged twice",
            f"at most {max(twice):.2%} apart (n = {len(twice)})" if twice else "0 of 0",
            "within 2 %", max(twice) < HELD if twice else None,
        ),
    ]  # fmt: skip


def enough(held: list[bool], share: float) -> bool | None:
    """Did so many hold? None where none was tried."""
    return sum(held) >= share * len(held) if held else None


def requirement(what: str, measured: str, asked: str, met: bool | None) -> dict:
    return {"what": what, "measured": measured, "asked": asked, "met": met}


# -- the suite's proof --


def proof(files: list[str]) -> Record:
    """Of one run, or of several, an earlier record among them: of a task that was proven twice the
    later file counts.
    """
    found = [records.read(path) for path in files]
    reports = [report for report in found if "rows" in report]
    proven = {row["task"]: row for report in reports for row in report["rows"]}
    rows = list(proven.values())
    bare = {
        "tasks": len(rows),
        "accepted": sum(row["accepted"] is True for row in rows),
        "not_judgeable": sum(row["accepted"] is None for row in rows),
        "mutants_planted": sum(len(row["planted"]) for row in rows),
        "mutants_killed": sum(row["killed"] for row in rows),
        "least_mutants_a_task": min(len(row["planted"]) for row in rows),
        "device": ", ".join(sorted({report["device"] for report in reports})),
        "faults_of_references": sum(bool(row["faults"]) for row in rows),
        "suite_digest": reports[-1]["suite_digest"],
        "rows": rows,
    }
    hosts = [environment(report) for report in found if "runs" in report]
    if hosts:
        bare["environment"] = hosts[-1]
    body = [
        f"{bare['tasks']} tasks on {bare['device']}: {bare['accepted']} plain solutions accepted, "
        f"{bare['not_judgeable']} not judgeable there. Mutants: {bare['mutants_killed']} of "
        f"{bare['mutants_planted']} killed, at least {bare['least_mutants_a_task']} a task. "
        f"PyTorch's own answers, or solutions, are refused on {bare['faults_of_references']} "
        f"tasks. Suite digest {bare['suite_digest'][:16]}.",
        "",
        *table(
            ["task", "plain solution", "cases", "killed", "planted", "survivors", "refused"],
            [
                [row["task"], {True: "accepted", False: "**refused**", None: "not judgeable"}[
                    row["accepted"]], row["cases"], row["killed"], len(row["planted"]),
                 ", ".join(row["survivors"]), "; ".join(row["faults"])]
                for row in rows
            ],
        ),
    ]  # fmt: skip
    return "The suite proven", bare, body


RECORDS: dict[str, tuple[str, Callable[[list[str]], Record]]] = {
    "throughput": ("judge-throughput", throughput),
    "repeatability": ("judge-repeatability", repeatability),
    "exploits": ("judge-exploits", exploits),
    "timer": ("judge-timer", timer),
    "proof": ("suite-proof", proof),
    "proof-cpu": ("suite-proof-cpu", proof),
}


if __name__ == "__main__":
    main()
