"""The judge: one candidate, one task, one device, one report.

Pure: the standard library here, torch and triton in the processes that it starts; no Django, no
Celery, no database. Importing this package doesn't import torch, so that a worker's parent process
stays small and free of CUDA.
"""

from runner.engine.apart import JudgeApart
from runner.engine.boards import Probed, probe
from runner.engine.devices import INTERPRETER, discover_devices, find_devices
from runner.engine.judge import Judge
from runner.engine.model import (
    JUDGE_VERSION,
    BoardFailure,
    Candidate,
    Declined,
    DeviceSpec,
    JudgeFailure,
    Limits,
    Options,
)
from runner.engine.report import Report

__all__ = [
    "INTERPRETER",
    "JUDGE_VERSION",
    "BoardFailure",
    "Candidate",
    "Declined",
    "DeviceSpec",
    "Judge",
    "JudgeApart",
    "JudgeFailure",
    "Limits",
    "Options",
    "Probed",
    "Report",
    "discover_devices",
    "find_devices",
    "probe",
]
