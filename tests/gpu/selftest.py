"""The judge tried on a real board, in one command: `python -m tests.gpu.selftest --out FILE`.

Needs torch, triton and a board; nothing else of the product. Each part goes on when another fails.
`--parts` takes some of timer, plain, wrong, twice, baseline, slower, exploits, memory.
"""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmark.vocabulary import PASSED, STAGES
from runner.engine import (
    JUDGE_VERSION,
    Candidate,
    Declined,
    Judge,
    JudgeFailure,
    Limits,
    Options,
    find_devices,
)
from tests.gpu.sources import HOG, as_baseline, with_wrong_constant

ROOT = Path(__file__).resolve().parents[2]
BASELINES = {
    "relu": "torch.nn.functional.relu",
    "softmax": "torch.softmax",
    "matmul": "torch.matmul",
    "sum": "torch.sum",
}
NO_FASTER = 1.05  # a cheat may be as fast as honest work, within the noise
TIMING_ONLY = ("load", "call", "time")
CHECK_ONLY = ("load", "call", "check")
PATIENT = Limits(call=60, check=240)
HURRIED = Limits(
    load=30, call=30, check=120
)  # some cheats hang, and each holds the board up so long


def say(text: str) -> None:
    """A line of the table, at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def plain_sources(only: str = "") -> list[tuple[str, str]]:
    """(task, source) of every plain solution."""
    paths = sorted((ROOT / "samples" / "plain").rglob("*.py"))
    return [(path.stem, path.read_text()) for path in paths if re.search(only, path.stem)]


def exploit_paths(only: str = "") -> list[Path]:
    """Every cheat and every honest control, those first that only a board can show, then the honest
    ones.
    """
    paths = (ROOT / "tests" / "exploits").rglob("*.py")
    chosen = [path for path in paths if re.search(only, exploit_name(path))]
    return sorted(
        chosen, key=lambda path: ("gpu" not in path.parts, "honest" not in path.parts, path)
    )


def exploit_name(path: Path) -> str:
    """Its place in the folder: `gpu/left_stream`."""
    return str(path.relative_to(ROOT / "tests" / "exploits").with_suffix(""))


def header(text: str, word: str) -> str:
    """What a line `# word: value` at the top of an exploit says, or nothing."""
    found = re.search(rf"^# {word}: (.+)$", text, re.MULTILINE)
    return found[1].strip() if found else ""


def judged(judge: Judge, task: str, source: str) -> dict:
    """One run in short; our failures and refusals too, as verdicts in capitals."""
    started = time.monotonic()
    try:
        report = judge.judge(Candidate(task, source)).to_json()
    except Declined as reason:
        return {"task": task, "verdict": "DECLINED", "detail": str(reason)}
    except JudgeFailure as reason:
        return {"task": task, "verdict": "OUR FAILURE", "detail": str(reason)[-3000:]}
    report["wall"] = time.monotonic() - started
    return report


def line(run: dict) -> str:
    """A run on one line."""
    speed = ""
    if run.get("speedup"):
        speed = f"{run['speedup']:.3f} [{run['speedup_low']:.3f}, {run['speedup_high']:.3f}]"
    stages = " ".join(f"{name}={value:.1f}" for name, value in run.get("seconds", {}).items())
    detail = run.get("detail", "")[:230]
    return f"{run['task']:<34.34} {run['verdict']:<13} {speed:<24} {stages}  {detail}"


def case_lines(run: dict) -> Iterable[str]:
    """The timed cases of a run, one line each."""
    for case in run.get("cases", ()):
        if case["candidate_ms"]:
            yield (
                f"    {case['case']:<26.26} candidate {case['candidate_ms']:.5f} ms  "
                f"PyTorch {case['reference_ms']:.5f} ms  "
                f"{case['speedup']:.4f} [{case['speedup_low']:.4f}, {case['speedup_high']:.4f}]  "
                f"own {case['own_share']}  n={case['samples']}"
            )


def exploit_line(row: dict, number: int, total: int) -> str:
    """What came of one cheat or honest control."""
    return (
        f"{number:>3}/{total} {'ok ' if row['caught'] else 'BAD'} {row['name']:<34} "
        f"wanted {row['wanted']:<14} got {row['verdict']:<14} {row['detail'][:150]}"
    )


def doubts_of(run: dict) -> str:
    """What a suspect run's findings say; their codes alone don't tell by how much."""
    doubts = [one["message"] for one in run.get("findings", ()) if "suspect" in one["code"]]
    return "; ".join(doubts) if run.get("suspect") else ""


def summary_of(rows: list[dict], files: int) -> dict:
    """How many cheats got their verdict and how many honest controls passed, of those tried so
    far.
    """
    honest = [row for row in rows if row["honest"]]
    cheats = [row for row in rows if not row["honest"]]
    return {
        "caught": sum(row["caught"] for row in cheats),
        "total": len(cheats),
        "honest_passed": sum(row["caught"] for row in honest),
        "honest_total": len(honest),
        "files": files,
        "rows": sorted(rows, key=lambda row: row["name"]),
    }


def longest(run: dict) -> dict:
    """The case on which PyTorch takes longest."""
    return max(run["cases"], key=lambda case: case["reference_ms"] or 0)


class Selftest:
    """The parts, on one device."""

    def __init__(self, device: str, jobs: int, only: str) -> None:
        self.spec = find_devices(device)[0]
        self.jobs = jobs
        self.only = only
        self.out: dict = {"device": self.spec.to_json(), "judge_version": JUDGE_VERSION}
        self._judge: Judge | None = None

    @contextlib.contextmanager
    def judge(self, stages: tuple[str, ...] = STAGES, limits: Limits = PATIENT) -> Iterator[Judge]:
        """A judge that trusts its candidates: they are ours, and a missing wall must not hide the
        rest. Parts that follow each other and ask for the same share it, as it takes a while to
        start.
        """
        options = Options(stages=stages, trust_candidates=True, limits=limits)
        if self._judge is None or self._judge.options != options:
            self.close()
            self._judge = Judge(self.spec, options).__enter__()
        try:
            yield self._judge
        except BaseException:  # Ctrl-C too: judgements under way end with their processes
            self.close()
            raise

    def close(self) -> None:
        """End the judge."""
        judge, self._judge = self._judge, None
        if judge:
            judge.close()

    def all_of(self, judge: Judge, sources: list[tuple[str, str]]) -> list[dict]:
        """Judge several at once."""
        with ThreadPoolExecutor(self.jobs) as pool:
            return list(pool.map(lambda pair: judged(judge, *pair), sources))

    def timer(self) -> None:
        """Known durations."""
        done = subprocess.run(
            [sys.executable, "-m", "tests.gpu.timer"], capture_output=True, text=True, cwd=ROOT
        )
        say(done.stdout[-3000:] + done.stderr[-3000:])
        self.out["timer"] = json.loads(done.stdout)

    def plain(self) -> None:
        """All plain solutions: they must pass, and be timed."""
        sources = plain_sources(self.only)
        started = time.monotonic()
        with self.judge() as judge:
            ready = time.monotonic()
            self.out["environment"] = judge.environment
            say(f"walls {judge.environment['walls']}")
            runs = self.all_of(judge, sources)
        seconds = time.monotonic() - ready
        for run in runs:
            say(line(run))
            for text in case_lines(run):
                say(text)
        passed = sum(run["verdict"] == "passed" for run in runs)
        say(
            f"plain: {passed} of {len(runs)} passed; start {ready - started:.1f} s, "
            f"{seconds / max(1, len(runs)):.2f} s a candidate"
        )
        self.out["plain"] = {"runs": runs, "start_seconds": ready - started, "seconds": seconds}

    def wrong(self) -> None:
        """The same with every stored value changed: none may pass."""
        sources = [(task, with_wrong_constant(source)) for task, source in plain_sources(self.only)]
        with self.judge(CHECK_ONLY) as judge:
            runs = self.all_of(judge, sources)
        survived = [run["task"] for run in runs if run["verdict"] == "passed"]
        counts: dict[str, int] = {}
        for run in runs:
            counts[run["verdict"]] = counts.get(run["verdict"], 0) + 1
        say(f"wrong constants: {counts}; passed all the same: {survived}")
        self.out["wrong"] = {"verdicts": counts, "survived": survived, "runs": runs}

    def twice(self) -> None:
        """The same candidate twice: speedups within 2 %."""
        rows: list[dict] = []
        self.out["twice"] = rows
        with self.judge() as judge:
            self.out["environment"] = judge.environment
            for task, source in plain_sources(r"^(relu|matmul|sum|softmax|layer_norm|gelu)$"):
                first, second = judged(judge, task, source), judged(judge, task, source)
                say(line(first) + "\n" + line(second))
                if first.get("speedup") and second.get("speedup"):
                    rows.append({"task": task, "ratio": second["speedup"] / first["speedup"]})
                    say(f"twice: {task} second/first = {rows[-1]['ratio']:.4f}")

    def baseline(self, repeats: int = 9) -> None:
        """PyTorch against itself: the interval contains 1."""
        rows: list[dict] = []
        self.out["baseline"] = rows
        with self.judge(TIMING_ONLY) as judge:
            self.out["environment"] = judge.environment
            for task, call in BASELINES.items():
                for _ in range(repeats):
                    run = judged(judge, task, as_baseline(task, call))
                    rows += self._contains_one(run)
        inside = sum(row["contains_one"] for row in rows)
        say(f"baseline against itself: 1 inside {inside} of {len(rows)} intervals")

    @staticmethod
    def _contains_one(run: dict) -> list[dict]:
        say(line(run))
        for text in case_lines(run):
            say(text)
        return [
            {
                "task": run["task"],
                "case": case["case"],
                "speedup": case["speedup"],
                "low": case["speedup_low"],
                "high": case["speedup_high"],
                "ms": case["reference_ms"],
                "contains_one": case["speedup_low"] <= 1 <= case["speedup_high"],
            }
            for case in run.get("cases", ())
            if case["speedup"]
        ]

    def slower(self, repeats: int = 5) -> None:
        """A planted slow-down of about 2 % of the longest case must be seen."""
        rows: list[dict] = []
        self.out["slower"] = rows
        with self.judge(TIMING_ONLY) as judge:
            self.out["environment"] = judge.environment
            for task in ("relu", "matmul"):
                before = longest(judged(judge, task, as_baseline(task, BASELINES[task])))
                extra = 20 * before["reference_ms"]
                for _ in range(repeats):
                    run = judged(judge, task, as_baseline(task, BASELINES[task], extra))
                    case = next(c for c in run["cases"] if c["case"] == before["case"])
                    rows.append(
                        {
                            "task": task,
                            "case": case["case"],
                            "extra_us": extra,
                            "reference_ms": case["reference_ms"],
                            "speedup": case["speedup"],
                            "high": case["speedup_high"],
                            "seen": bool(case["speedup"]) and case["speedup_high"] < 1,
                        }
                    )
                    say(f"slower: {rows[-1]}")

    def exploits(self) -> None:
        """Every known cheat gets its verdict on a board too, and honest work passes beside them."""
        paths = exploit_paths(self.only)
        rows: list[dict] = []
        self.out["exploits"] = {"rows": rows}
        with self.judge(limits=HURRIED) as judge, ThreadPoolExecutor(self.jobs) as pool:
            self.out["environment"] = judge.environment
            under_way = [pool.submit(self._tried, judge, path) for path in paths]
            try:
                for done in as_completed(under_way):
                    rows.append(done.result())
                    say(exploit_line(rows[-1], len(rows), len(paths)))
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                judge.close()  # the pool waits for those under way
                raise
            finally:
                self.out["exploits"] = summary_of(rows, len(exploit_paths()))

    def memory(self) -> None:
        """Beside candidates that take all of the board's memory, honest work passes all the same,
        and none of them becomes a failure of ours.
        """
        plain = plain_sources(r"^(relu|sum|softmax|layer_norm)$")
        sources = [pair for honest in plain for pair in (("relu", HOG), honest)]
        with self.judge() as judge:
            self.out["environment"] = judge.environment
            runs = self.all_of(judge, sources)
        for run in runs:
            say(line(run))
        hogs, honest = runs[::2], runs[1::2]
        self.out["memory"] = {
            "honest": [run["verdict"] for run in honest],
            "hogs": [run["verdict"] for run in hogs],
            "as_wanted": all(run["verdict"] == "passed" for run in honest)
            and all(run["verdict"] in ("passed", "out-of-memory") for run in hogs),
        }
        say(f"memory: {self.out['memory']}")

    def _tried(self, judge: Judge, path: Path) -> dict:
        text = path.read_text()
        here = header(text, "on-board") if self.spec.kind == "cuda" else ""
        wanted, task = here or header(text, "verdict"), header(text, "task")
        suspect = header(text, "suspect") == "yes" and not here
        run = judged(judge, task, text)
        as_wanted = run["verdict"] in wanted.split(" or ")
        same_trust = run["verdict"] != PASSED or bool(run.get("suspect")) == suspect
        caught = as_wanted and same_trust
        rival = header(text, "no-faster-than")
        ratio = None
        if rival and run.get("speedup"):
            other = judged(judge, task, (ROOT / rival).read_text())
            ratio = run["speedup"] / other["speedup"] if other.get("speedup") else None
            held_back = as_wanted and run["suspect"] and "honest" not in path.parts
            caught = held_back or (caught and ratio is not None and ratio < NO_FASTER)
        return {
            "name": exploit_name(path),
            "cheat": header(text, "cheat"),
            "honest": "honest" in path.parts,
            "wanted": wanted + (" suspect" if suspect else ""),
            "verdict": run["verdict"] + (" suspect" if run.get("suspect") else ""),
            "caught": caught,
            "against_honest": ratio,
            "findings": sorted({finding["code"] for finding in run.get("findings", ())}),
            "detail": (run["detail"] or doubts_of(run))[:300],
        }

    def run(self, parts: list[str], path: Path) -> int:
        """Run the parts, write the JSON after each; the number of parts that broke."""
        broken = 0
        for name in parts:
            say(f"== {name} ==")
            part: Callable[[], None] = getattr(self, name)
            started = time.monotonic()
            try:
                part()
            except Exception:  # noqa: BLE001 - the other parts are worth having
                broken += 1
                self.out[f"{name}_broke"] = traceback.format_exc()
                traceback.print_exc(file=sys.stdout)
            finally:  # Ctrl-C too leaves what there is
                say(f"== {name}: {time.monotonic() - started:.1f} s ==")
                path.write_text(json.dumps(self.out, indent=1))
        self.close()
        return broken


PARTS = ("timer", "plain", "exploits", "memory", "twice", "baseline", "slower", "wrong")


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("selftest.json"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--only", default="", help="a pattern: tasks of plain and wrong, exploits")
    parser.add_argument("--parts", default=",".join(PARTS))
    chosen = parser.parse_args()
    return Selftest(chosen.device, chosen.jobs, chosen.only).run(
        chosen.parts.split(","), chosen.out
    )


if __name__ == "__main__":
    sys.exit(main())
