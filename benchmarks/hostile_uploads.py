"""Read every hostile upload of the tests, and thousands of damaged ones, and count what came of it.

    python benchmarks/hostile_uploads.py [--damaged N]

The hand-made ones are `tests/runner/hostile_uploads.py`; a damaged one is an archive, a file of
predictions or a metrics.json in which a few bytes were exchanged, left out or doubled, from fixed
seeds. An audit hook of the interpreter notes whatever is run, imported or opened for writing
meanwhile. Writes `docs/measurements/intake-hostile.{md,json}`.
"""

import argparse
import json
import platform
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import records

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "runner")]

import hostile_uploads as corpus  # noqa: E402  found by the path above: the tests' own file

from runner.intake import KnownTasks, TaskName, read_upload  # noqa: E402  as above

TASKS = json.loads((ROOT / "benchmark" / "suite" / "published.json").read_text())
KNOWN = KnownTasks({task["name"]: TaskName(task["name"], task["category"]) for task in TASKS})
WATCHED = ("exec", "os.", "subprocess.", "shutil.", "socket.", "import", "pickle.", "ctypes.")
DONE: Counter[str] = Counter()
MIB = 1024 * 1024


def watch(event: str, details: tuple) -> None:
    writes = event == "open" and str(details[1] or "r") not in ("r", "rb")
    if writes or event.startswith(WATCHED):
        DONE[f"{event} {details[0]}"] += 1


def damaged(count: int) -> Iterator[corpus.Hostile]:
    """From good uploads, `count` that have a few bytes changed; the seed is the number."""
    good = {
        "upload.zip": corpus.packed(("relu.py", corpus.GOOD), ("a/p.jsonl", corpus.line())),
        "predictions.jsonl": corpus.line() * 2,
        "metrics.json": b'{"relu": {"call_ok": true, "exe_ok": true, "perf_ok": true}}',
    }
    for number in range(count):
        drawn = random.Random(number)
        filename, data = drawn.choice(list(good.items()))
        changed = bytearray(data)
        for _ in range(drawn.randint(1, 6)):
            at = drawn.randrange(len(changed))
            length = drawn.choice((1, 1, 2, 4, 16))
            piece = drawn.choice((drawn.randbytes(length), b"", bytes(changed[at : at + length])))
            changed[at : at + drawn.choice((0, length))] = piece
        yield corpus.Hostile("damaged", str(number), filename, bytes(changed), None)


def tried(uploads: Iterator[corpus.Hostile]) -> dict[str, dict]:
    """By kind: how many, what came of them, and the slowest."""
    kinds: dict[str, dict] = defaultdict(
        lambda: {"tried": 0, "taken": 0, "refused": 0, "silent": 0, "slowest_seconds": 0.0}
    )
    for one in uploads:
        row = kinds[one.kind]
        started = time.process_time()
        intake = read_upload(one.filename, one.data, KNOWN)
        seconds = time.process_time() - started
        row["tried"] += 1
        if intake.candidates or intake.claims:
            row["taken"] += 1
        else:
            row["refused" if intake.refusals else "silent"] += 1
        if seconds > row["slowest_seconds"]:
            row["slowest_seconds"], row["slowest"] = round(seconds, 3), one.name
    return kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damaged", type=int, default=20_000)
    asked = parser.parse_args()
    uploads = [*corpus.everything()]
    # What reading needs is imported by then: zlib, and the table of letters of other scripts.
    read_upload("warm.zip", corpus.packed(("relu.py", "\u0435 = 1\n" + corpus.GOOD)), KNOWN)
    sys.addaudithook(watch)
    kinds = tried(iter(uploads)) | tried(damaged(asked.damaged))
    left = [mark for mark in corpus.MARKS if Path(mark).exists()]
    bare = {
        "command": f"python benchmarks/hostile_uploads.py --damaged {asked.damaged}",
        "python": platform.python_version(),
        "kinds": kinds,
        "largest_upload_mib": round(max(len(one.data) for one in uploads) / MIB, 1),
        "run_imported_or_written": dict(DONE),
        "left_behind": left,
    }
    records.write("intake-hostile", bare, text(bare))


def text(bare: dict) -> str:
    rows = [
        f"| {kind} | {row['tried']:,} | {row['refused']:,} | {row['taken']:,} | "
        f"{row['slowest_seconds']:.3f} | {row['slowest']} |"
        for kind, row in bare["kinds"].items()
    ]
    total = sum(row["tried"] for row in bare["kinds"].values())
    silent = sum(row["silent"] for row in bare["kinds"].values())
    noted = bare["run_imported_or_written"] or "nothing"
    return "\n".join(
        [
            f"# Hostile uploads: {total:,} tried",
            "",
            f"Python {bare['python']}, one process. `{bare['command']}`",
            "",
            "| kind | tried | refused, with the reason | taken | slowest, s of processor | which |",
            "|---|---:|---:|---:|---:|---|",
            *rows,
            "",
            "None ended the reader or raised. What is taken is text that may well be a candidate: "
            "a source that would run something at its import is the judge's matter, whose walls it "
            "meets; here it is only read. A name counts by its last part.",
            "",
            "Run, imported or opened for writing meanwhile, by the interpreter's own audit events: "
            f"{noted}. Left behind on the disk: {bare['left_behind'] or 'nothing'}. Without a word "
            f"to their author: {silent or 'none'}. The largest upload had "
            f"{bare['largest_upload_mib']} MiB.",
            "",
            "`tests/runner/test_intake_hostile.py` asserts the same of the hand-made ones, and "
            "sends each to the API: what is refused leaves no row, what is taken has all of its "
            "candidates.",
            "",
        ]
    )  # fmt: skip


if __name__ == "__main__":
    main()
