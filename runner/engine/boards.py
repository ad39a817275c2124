"""Does a device work at all? For whoever schedules, before it takes work and after it failed.

Run as `python -m runner.engine.boards FD DEVICE`: a process of its own, because a broken board
takes whoever touches it along.
"""

import socket
import sys
from dataclasses import dataclass

from runner.engine import protocol
from runner.engine.devices import discover_devices
from runner.engine.model import DeviceSpec, JudgeFailure
from runner.engine.workers import Worker

PROBE_SECONDS = 90.0  # importing torch on a busy host is most of it
NUMBERS, SIDE = 1 << 24, 1024


@dataclass(frozen=True)
class Probed:
    """Whether a device works, and if not, why, for whoever runs the host."""

    ok: bool
    reason: str = ""


def probe(device: DeviceSpec, seconds: float = PROBE_SECONDS) -> Probed:
    """Is the device there, does it start, keep what is written to it, and compute right? Takes
    seconds and 200 MB of its memory.
    """
    boards = {(board.index, board.uuid_hash) for board in discover_devices()}
    if device.kind == "cuda" and (device.index, device.uuid_hash) not in boards:
        return Probed(False, f"nvidia-smi no longer lists {device.name} as number {device.index}")
    worker = Worker("runner.engine.boards", device, device.torch_name)
    try:
        fault = str(worker.hello(seconds)["fault"])
    except JudgeFailure as failure:
        return Probed(False, str(failure))
    finally:
        worker.close()
    return Probed(not fault, fault)


def find_fault(device: str) -> str:
    """What is wrong with memory or arithmetic there; "" for nothing. A device that can't even start
    raises, whatever it raises.
    """
    import torch

    numbers = torch.arange(NUMBERS, dtype=torch.int32, device=device)
    if not torch.equal(numbers.flip(0).cpu().flip(0), torch.arange(NUMBERS, dtype=torch.int32)):
        return "numbers came back from its memory changed"
    ones = torch.ones((SIDE, SIDE), device=device)
    if not bool((ones @ ones == float(SIDE)).all()):
        return "it computes wrong: a product of matrices of ones"
    return ""


def main() -> None:
    """Say what was found, on the descriptor that the command line names."""
    sock = socket.socket(fileno=int(sys.argv[1]))
    protocol.send(sock, {"ok": True, "fault": find_fault(sys.argv[2])})


if __name__ == "__main__":
    main()
