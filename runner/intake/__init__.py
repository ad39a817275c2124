"""From what researchers have to candidates: bytes in memory in, candidates and refusals out.

Standard library and vocabulary only. Nothing of an upload is imported, run, unpickled or written to
disk.
"""

from runner.intake.model import Found, Intake, KnownTasks, Refusal, TaskName
from runner.intake.reading import read_paths, read_upload

__all__ = ["Found", "Intake", "KnownTasks", "Refusal", "TaskName", "read_paths", "read_upload"]
