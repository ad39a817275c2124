"""One session on a machine with one or two boards and no network, in pieces of nine minutes.

    python benchmarks/board_session.py list                    # the pieces, with their commands
    python benchmarks/board_session.py PIECE... --out FOLDER   # run them, one after the other
        [--device cuda:0] [--jobs 24] [--predictions FILE.jsonl]...

Each piece is one command of ours with a limit. At the limit it gets Ctrl-C, at which `kbx evaluate`
saves what was judged; the self-test and `kbx prove` write their files as they grow. A piece leaves
one JSON file in FOLDER (`predictions` one a file), from which record_judge.py, record_verdicts.py
and pack_recorded.py make the records. The last lines say what came of it. Exit status 1 when a
piece failed or ran into its limit.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLAIN = "samples/plain"
LIMIT, GRACE = 500.0, 30.0  # seconds: together less than nine minutes


@dataclass(frozen=True)
class Place:
    """Where to run and where to write."""

    device: str
    jobs: int
    out: Path
    predictions: tuple[str, ...]


@dataclass(frozen=True)
class Piece:
    """A command of ours (after `python -m`), and the file that it leaves."""

    about: str
    command: tuple[str, ...]
    file: str


def pieces(place: Place) -> dict[str, list[Piece]]:
    """Every piece by its name, the most wanted first."""

    def evaluate(about: str, name: str, *more: str, device: str = "") -> Piece:
        where = ("--device", device or place.device, "--jobs", str(place.jobs))
        path = str(place.out / name)
        return Piece(about, ("runner", "evaluate", *more, *where, "--json", path), name)

    def selftest(about: str, name: str, parts: str) -> Piece:
        where = ("--device", place.device, "--jobs", str(place.jobs), "--parts", parts)
        command = ("tests.gpu.selftest", *where, "--out", str(place.out / name))
        return Piece(about, command, name)

    proof = ("runner", "prove", "--device", place.device, "--jobs", "12", "--json")
    some = (f"{PLAIN}/Activation", f"{PLAIN}/Normalization")
    return {
        "samples": [evaluate("all plain samples, all stages", "samples-1.json", PLAIN)],
        "exploits": [selftest("cheats and honest controls", "exploits.json", "exploits")],
        "prove": [Piece("mutants", (*proof, str(place.out / "proof.json")), "proof.json")],
        "timer": [selftest("the timer's acceptance", "timer.json", "timer,twice,baseline,slower")],
        "second": [evaluate("the samples a second time", "samples-2.json", PLAIN)],
        "third": [evaluate("the samples a third time", "samples-3.json", PLAIN)],
        "wrong": [selftest("wrong constants; memory taken", "wrong.json", "memory,wrong")],
        "predictions": [
            evaluate("published predictions", f"{Path(path).stem}.json", path)
            for path in place.predictions
        ],
        "compiled": [
            evaluate("torch.compile beside", "compiled.json", *some, "--baseline", "compile")
        ],
        "alone": [evaluate("nobody compiles beside", "alone.json", PLAIN, "--no-overlap")],
        "two-boards": [evaluate("all boards", "two-boards.json", PLAIN, device="all")],
    }


def run(piece: Piece, limit: float) -> bool:
    """Run one command with Ctrl-C at its limit; did it end by itself, and well?"""
    say(f"== {piece.about}: python -m {' '.join(piece.command)}")
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", *piece.command], cwd=ROOT, start_new_session=True
    )
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        status = None
    how = f"status {status}" if status is not None else f"stopped at its limit of {limit:g} s"
    say(f"== {piece.file}: {how}, {time.monotonic() - started:.0f} s")
    return status == 0


def summary(path: Path) -> str:
    """What a file holds, in a line."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        return f"{path.name}: nothing to read ({error})"
    for name, about in SUMMARIES.items():
        if name in found:
            return f"{path.name}: {about(found)}"
    return f"{path.name}: {sorted(found)}"


def _of_runs(found: dict) -> str:
    verdicts = dict(Counter(run["verdict"] for run in found["runs"]))
    took = found["took"].get("seconds", 0.0)
    each = took / max(1, len(found["runs"]))
    held = [run["task"] for run in found["runs"] if run["suspect"]]
    left = {name: len(found[name]) for name in ("declined", "refused", "failed")}
    return f"{verdicts}, {each:.2f} s a candidate, suspect {held}, {left}"


def _of_exploits(found: dict) -> str:
    rows = found["exploits"]
    missed = [row["name"] for row in rows["rows"] if not row["caught"]]
    caught = f"{rows['caught']} of {rows['total']} caught"
    return f"{caught}, honest {rows['honest_passed']} of {rows['honest_total']}, missed {missed}"


def _of_proof(found: dict) -> str:
    open_ = [row["task"] for row in found["rows"] if row["survivors"] or row["faults"]]
    killed = f"{found['mutants_killed']} of {found['mutants_planted']} killed"
    return f"{found['tasks']} tasks, {found['accepted']} accepted, {killed}, open {open_}"


def _of_wrong(found: dict) -> str:
    return f"{found['wrong']['verdicts']}, survived {found['wrong']['survived']}, {found['memory']}"


def _of_timer(found: dict) -> str:
    inside = sum(row["contains_one"] for row in found.get("baseline", ()))
    seen = sum(row["seen"] for row in found.get("slower", ()))
    twice = [round(row["ratio"], 4) for row in found.get("twice", ())]
    asked = len(found.get("baseline", ())), len(found.get("slower", ()))
    return f"1 inside {inside} of {asked[0]}, slower seen {seen} of {asked[1]}, twice {twice}"


SUMMARIES: dict[str, Callable[[dict], str]] = {
    "runs": _of_runs,
    "exploits": _of_exploits,
    "mutants_planted": _of_proof,
    "wrong": _of_wrong,
    "timer": _of_timer,
}


def say(text: str) -> None:
    """A line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pieces", nargs="+", help="names, or `list`")
    parser.add_argument("--out", type=Path, default=Path("board-session"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", type=int, default=24)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds a command")
    parser.add_argument("--predictions", action="append", default=[])
    chosen = parser.parse_args()
    place = Place(chosen.device, chosen.jobs, chosen.out.resolve(), tuple(chosen.predictions))
    known = pieces(place)
    if chosen.pieces == ["list"]:
        for name, steps in known.items():
            for step in steps:
                say(f"{name}: python -m {' '.join(step.command)}")
        return 0
    unknown = set(chosen.pieces) - set(known)
    if unknown:
        parser.error(f"no piece {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    place.out.mkdir(parents=True, exist_ok=True)
    # Where a shell's background ignores Ctrl-C, our commands would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    steps = [step for name in chosen.pieces for step in known[name]]
    well = [run(step, chosen.limit) for step in steps]
    for step in steps:
        say(summary(place.out / step.file))
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main())
