"""Pack reports of `kbx evaluate --json` as a recording: `samples/recorded/NAME.json.gz`.

    python benchmarks/pack_recorded.py REPORT.json... --method NAME --predictions WHERE-FROM
        [--kind model|agent|compiler|human] [--organisation O] [--url U] [--description D]
        [--label L] [--date 2026-11-30] [--round 0="first try"]... [--as-round N] [--out FILE]

Several reports are one method's: of a task and round that two of them have, the later one stays.
`--as-round N` says that all candidates of the reports are of round N, for a method whose rounds
were judged apart: pack again with `--add` for the next. What pages don't show is left out, and so
are the sources: what an error quotes of them is cut to its first and last line, logs are dropped.
Numbers are rounded to more digits than any page shows. `manage.py import_recorded` loads the file.
"""

import argparse
import gzip
import json
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "samples" / "recorded"
FORMAT = 1
DIGITS = 6
LINE = 240  # characters of an error's first and last line
# Everything that pages show of a run and of a case, and nothing else.
RUN = (
    *("task", "round", "source_sha256", "task_digest", "judge_version", "device", "verdict"),
    *("stage", "detail", "suspect", "speedup", "speedup_low", "speedup_high", "cases", "kernels"),
    *("findings", "seconds", "peak_memory_bytes", "environment"),
)
CASE = (
    *("case", "kind", "shape", "dtype", "family", "state", "verdict", "detail", "error"),
    *("reference_error", "tolerance", "unit", "candidate_ms", "candidate_ms_low"),
    *("candidate_ms_high", "reference_ms", "reference_ms_low", "reference_ms_high", "speedup"),
    *("speedup_low", "speedup_high", "flops", "bytes", "own_share", "samples"),
)
PLACE = re.compile(r"(?:/[\w.+-]+)+/(?:site|dist)-packages/")  # where a host keeps its libraries
LEFT_OUT = frozenset({"platform"})  # names the machine that judged, which is nobody's business
KERNEL = ("name", "registers", "spills", "shared_bytes", "calls", "device_ms")


def main() -> None:
    chosen = arguments()
    reports = [json.loads(path.read_text()) for path in chosen.reports]
    earlier = chosen.out.exists() and chosen.add
    document = recording(chosen, reports, unpacked(chosen.out) if earlier else None)
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    chosen.out.write_bytes(packed(document))
    total = sum(path.stat().st_size for path in chosen.out.parent.glob("*.json*"))
    verdicts = sorted({run["verdict"] for run in document["runs"]})
    print(
        f"{chosen.out}: {len(document['runs'])} runs ({', '.join(verdicts)}), "
        f"{chosen.out.stat().st_size / 1024:.0f} KiB; "
        f"all recordings in the folder: {total / 1024:.0f} KiB"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", nargs="+", type=Path)
    parser.add_argument("--method", required=True)
    parser.add_argument("--kind", default="model", choices=["model", "agent", "compiler", "human"])
    parser.add_argument("--organisation", default="")
    parser.add_argument("--url", default="")
    parser.add_argument("--description", default="")
    parser.add_argument("--predictions", required=True, help="where the predictions come from")
    parser.add_argument("--label", default="recorded")
    parser.add_argument("--date", required=True, help="when it was judged: 2026-11-30")
    parser.add_argument("--round", action="append", default=[], metavar="N=TEXT")
    parser.add_argument("--as-round", type=int, metavar="N")
    parser.add_argument("--add", action="store_true", help="to what the file has already")
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    if chosen.out is None:
        slug = re.sub(r"[^a-z0-9]+", "-", chosen.method.lower()).strip("-")
        chosen.out = FOLDER / f"{slug}.json.gz"
    return chosen


def recording(
    chosen: argparse.Namespace, reports: list[dict], earlier: dict | None
) -> dict[str, Any]:
    """The document: a header, what all runs share, and the runs."""
    first = earlier or reports[0]
    environment = {
        name: value for name, value in first["environment"].items() if name not in LEFT_OUT
    }
    runs = {(run["task"], run["round"]): run for run in (earlier or {}).get("runs", ())}
    for report in reports:
        for run in report["runs"]:
            number = run["round"] if chosen.as_round is None else chosen.as_round
            runs[run["task"], number] = packed_run({**run, "round": number}, environment)
    if not runs:
        raise SystemExit("the reports hold no run")
    devices = {run["device"] for run in runs.values()}
    if len(devices) > 1:
        raise SystemExit(f"a recording is of one GPU; these runs are of {', '.join(devices)}")
    device = environment["device"]
    return {
        "format": FORMAT,
        "method": {
            "name": chosen.method,
            "kind": chosen.kind,
            "organisation": chosen.organisation,
            "url": chosen.url,
            "description": chosen.description,
        },
        "label": chosen.label,
        "date": chosen.date,
        "predictions": chosen.predictions,
        "rounds": dict(pair.split("=", 1) for pair in chosen.round)
        or (earlier or {}).get("rounds", {}),
        "device": devices.pop(),
        "hardware": device["name"],
        "architecture": device.get("architecture") or "",
        "judge": first["judge"],
        "environment": environment,
        "runs": [runs[key] for key in sorted(runs)],
    }


def packed_run(run: dict, shared: dict) -> dict[str, Any]:
    kept = {name: run.get(name) for name in RUN}
    kept["detail"] = short(kept["detail"])
    kept["environment"] = {
        name: value
        for name, value in run["environment"].items()
        if name not in LEFT_OUT and shared.get(name) != value
    }
    kept["cases"] = [packed_case(case) for case in run["cases"]]
    kept["kernels"] = [{name: kernel.get(name) for name in KERNEL} for kernel in run["kernels"]]
    kept["findings"] = [
        {**finding, "message": short(finding["message"])} for finding in run["findings"]
    ]
    return without_nothing(rounded(kept))


def packed_case(case: dict) -> dict[str, Any]:
    return {name: case.get(name) for name in CASE} | {"detail": short(case.get("detail"))}


def short(text: str | None) -> str:
    """First and last line, between which errors quote the source, without the host's folders."""
    lines = [line.strip() for line in PLACE.sub("", text or "").splitlines() if line.strip()]
    return " … ".join(dict.fromkeys(line[:LINE] for line in lines[:1] + lines[-1:]))


def rounded(tree: Any) -> Any:
    if isinstance(tree, float):
        return float(f"{tree:.{DIGITS}g}")
    if isinstance(tree, dict):
        return {name: rounded(value) for name, value in tree.items()}
    return [rounded(value) for value in tree] if isinstance(tree, list) else tree


def without_nothing(tree: Any) -> Any:
    """Without null and empty text, which loading puts back."""
    if isinstance(tree, dict):
        return {
            name: without_nothing(value) for name, value in tree.items() if value not in (None, "")
        }
    return [without_nothing(value) for value in tree] if isinstance(tree, list) else tree


def packed(document: dict) -> bytes:
    """The same document gives the same bytes."""
    text = json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return gzip.compress(text.encode(), compresslevel=9, mtime=0)


def unpacked(path: Path) -> dict:
    return dict(json.loads(gzip.decompress(path.read_bytes())))


if __name__ == "__main__":
    main()
