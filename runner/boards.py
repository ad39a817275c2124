"""What a host says of its boards: how each stands, whether it works, and by which contracts it
judges. No Django, no database.

Run as `python -m runner.boards cuda:0`: tries the board out and prints what it found as JSON. A
process of its own, because whoever touches a broken board goes with it, and torch is large.
"""

import json
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from kbx_site import env

if TYPE_CHECKING:
    from runner.engine import DeviceSpec

PROBE_SECONDS = 90  # for the host's own probe; ours has its own limit
LONGEST_FAULT = 1000


def fault_of(spec: "DeviceSpec") -> str:
    """Why the board can't be judged on now; "" when it can. Asks the host's own probe (KBX_PROBE)
    first, where there is one, then ours.
    """
    from runner.engine import probe

    return _hosts_own_fault(env.text("KBX_PROBE", "")) or probe(spec).reason


def _hosts_own_fault(command: str) -> str:
    if not command:
        return ""
    try:
        done = subprocess.run(
            shlex.split(command), capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"KBX_PROBE can't be run: {error}"
    if done.returncode == 0:
        return ""
    said = (done.stdout + done.stderr).strip()[-LONGEST_FAULT:]
    return f"KBX_PROBE ended with {done.returncode}: {said}"


def contract() -> dict[str, Any]:
    """By what this host judges. Imports torch."""
    from benchmark import suite
    from runner.engine import JUDGE_VERSION

    return {
        "judge_version": JUDGE_VERSION,
        "suite_digest": suite.suite_digest(),
        "tasks": {task.name: task.digest for task in suite.all_tasks()},
    }


def try_out(device: str) -> dict[str, Any]:
    """`fault` and `contract`. Both wait for an import of torch, so they wait together."""
    from runner.engine import find_devices

    try:
        [spec, *_] = find_devices(device)
    except ValueError as error:
        return {"fault": str(error), "contract": None}
    with ThreadPoolExecutor(1) as beside:
        fault = beside.submit(fault_of, spec)
        return {"contract": contract(), "fault": fault.result()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(try_out(sys.argv[1])) + "\n")
