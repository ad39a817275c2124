"""From what researchers have to candidates: bytes in memory in; candidates, claims, refusals out.

Standard library and vocabulary only. Nothing of an upload is imported, run, unpickled or written to
disk.
"""

from runner.intake.model import Claim, Found, Intake, KnownTasks, Refusal, TaskName
from runner.intake.reading import read_paths, read_upload

__all__ = [
    "Claim",
    "Found",
    "Intake",
    "KnownTasks",
    "Refusal",
    "TaskName",
    "read_paths",
    "read_upload",
]
