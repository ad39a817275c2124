"""What every record of a measurement shares: where it lies, its pair of files, and the hardware."""

import json
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "measurements"


def write(name: str, bare: dict, text: str, folder: Path = FOLDER) -> None:
    """The pair: `NAME.json` with the bare figures, `NAME.md` to read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(bare, indent=1) + "\n")
    (folder / f"{name}.md").write_text(text)


def read(path: str) -> dict:
    found: dict = json.loads(Path(path).read_text())
    return found


def row(place: str) -> dict | None:
    """Of `RECORD.json#LABEL`: what an earlier record says of that report; None of a report's own
    path.
    """
    path, _, label = place.partition("#")
    return dict(read(path)["reports"][label]) if label else None


def environment(report: dict) -> dict:
    """Hardware and versions, out of a report of `kbx evaluate` or of the judge's self-test."""
    found = report["environment"]
    device = found.get("device", {})
    names = ("python", "torch", "triton", "cuda")
    return {
        "gpu": device.get("name"),
        "architecture": device.get("architecture"),
        "driver": _driver(report),
        **{name: found.get(name) for name in names},
    }


def hardware(found: dict) -> str:
    """The same in a sentence or two."""
    architecture = f" ({found['architecture']})" if found["architecture"] else ""
    driver = f", driver {found['driver']}" if found["driver"] else ""
    cuda = f", CUDA {found['cuda']}" if found["cuda"] else ""
    return (
        f"Hardware: {found['gpu']}{architecture}{driver}. Python {found['python']}, "
        f"torch {found['torch']}, triton {found['triton']}{cuda}."
    )


def _driver(report: dict) -> str | None:
    """As the first timed run found it: nobody else asks the board's driver."""
    clocks = (run.get("environment", {}).get("clocks", {}) for run in report.get("runs", ()))
    return next((one["before"].get("driver") for one in clocks if one.get("before")), None)
