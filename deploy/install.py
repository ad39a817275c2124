"""Build the project's environment: `.venv` with the locked packages, torch, triton and `kbx`.

Run by the Makefile with any Python 3.11-3.13; standard library only. Does nothing when the
environment is as the lock files say. On a machine without an NVIDIA driver it prefers PyTorch's CPU
build (200 MB instead of 3 GB) where PyTorch's own index can be reached or pip already finds it.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCKED = ROOT / "requirements" / "locked.txt"
TORCH = ROOT / "requirements" / "torch.txt"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SUPPORTED = ((3, 11), (3, 13))


def main() -> int:
    refuse_unsupported_python()
    stamp = VENV / ".installed"
    wanted = fingerprint()
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    if not environment_is_usable():
        create_environment()
    pip("Installing the site's packages (a minute)", "--require-hashes", "-r", str(LOCKED))
    pip(
        "Installing torch and triton, the judge's (a minute or more)",
        *torch_index(),
        "-r",
        str(TORCH),
        "numpy<2.6",
    )
    pip("Installing kbx", "--no-deps", "--editable", str(ROOT))
    stamp.write_text(wanted)
    return 0


def refuse_unsupported_python() -> None:
    low, high = SUPPORTED
    if not low <= sys.version_info[:2] <= high:
        found = platform.python_version()
        sys.exit(f"Python {found} found, 3.11 to 3.13 needed: make PYTHON=python3.12 ...")


def fingerprint() -> str:
    """Hex digest of what the environment is built from, with the Python that builds it."""
    import tomllib  # not at the top: an older Python has none, and is to be refused in words

    digest = hashlib.sha256(platform.python_version().encode())
    for path in (LOCKED, TORCH):
        digest.update(path.read_bytes())
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # Not the tools' settings: a changed lint rule rebuilds nothing.
    installed = [described["build-system"], described["project"], described["tool"]["setuptools"]]
    digest.update(json.dumps(installed, sort_keys=True).encode())
    return digest.hexdigest()


def environment_is_usable() -> bool:
    """Can it be brought up to date in place, with this Python? What runs from it then runs on."""
    python = VENV / "bin" / "python"
    asked = [str(python), "-c", "import pip, platform; print(platform.python_version())"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return False
    return found == platform.python_version()


def create_environment() -> None:
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=False)
    if made.returncode:
        sys.exit("No virtual environment could be made: on Debian, apt-get install python3-venv.")


def pip(title: str, *arguments: str) -> None:
    print(f"{title} ...", flush=True)  # noqa: T201  progress for who waits minutes
    command = [str(VENV / "bin" / "python"), "-m", "pip", "install", "-qq", *arguments]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if subprocess.run(command, check=False, env=environment).returncode:
        sys.exit(f"{title}: pip failed, its message is above. Then run make again.")


def torch_index() -> list[str]:
    """Extra pip arguments for torch: PyTorch's CPU index where no GPU is there and it answers."""
    if shutil.which("nvidia-smi") or not reachable(CPU_INDEX + "/torch/"):
        return []
    return ["--extra-index-url", CPU_INDEX]


def reachable(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  a constant https address
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


if __name__ == "__main__":
    sys.exit(main())
